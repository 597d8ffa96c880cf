package jinja2

import "github.com/ardanlabs/jinja"

// guards are the functions that the emitter puts around statements: they meter,
// and do what statements need of Python.
var guards = map[string]function{
	"step": func(r *render, args []Value, _ map[string]Value) (Value, error) {
		return String(""), r.meter.text(int(args[0].AsInt()))
	},
	"out": func(r *render, args []Value, _ map[string]Value) (Value, error) {
		s, err := r.str(args[0])
		if err != nil {
			return undefined, err
		}
		return String(s), r.meter.text(len(s))
	},
	// text is out for the result of a filter block, which is joined as text.
	"text": func(r *render, args []Value, _ map[string]Value) (Value, error) {
		if k := kindOf(args[0]); k != kString {
			return undefined, typeError("printing a filter block", k)
		}
		return args[0], r.meter.text(len(args[0].AsString()))
	},
	"enter": func(r *render, args []Value, _ map[string]Value) (Value, error) {
		if len(args) > 0 && len(args[0].AsList().Items) > 0 {
			return undefined, refuse("gives a macro too many arguments")
		}
		return String(""), r.meter.enter()
	},
	"leave": func(r *render, _ []Value, _ map[string]Value) (Value, error) {
		r.meter.depth--
		return String(""), nil
	},
	"iter": func(r *render, args []Value, _ map[string]Value) (Value, error) {
		if args[0].IsList() {
			return args[0], r.meter.step(args[0].AsList().Len())
		}
		items, err := r.items(args[0])
		return List(items), err
	},
	"many": func(_ *render, args []Value, _ map[string]Value) (Value, error) {
		if !args[0].IsList() {
			return undefined, &Unsupported{"a call with *arguments of what is no list"}
		}
		return Int(int64(args[0].AsList().Len())), nil
	},
	"pairs": func(r *render, args []Value, _ map[string]Value) (Value, error) {
		items, err := r.items(args[0])
		for i := 0; err == nil && i < len(items); i++ {
			items[i], err = r.unpack(items[i], 2)
		}
		return List(items), err
	},
	"unpack": func(r *render, args []Value, _ map[string]Value) (Value, error) {
		return r.unpack(args[0], int(args[1].AsInt()))
	},
	"attrset": func(r *render, args []Value, _ map[string]Value) (Value, error) {
		if kindOf(args[0]) != kNamespace {
			return undefined, refuse("sets an attribute of what is no namespace")
		}
		if args[1].AsString()[0] == '_' {
			return undefined, refuse("sets an attribute with an underscore")
		}
		return args[2], nil
	},
	"missing": func(_ *render, args []Value, _ map[string]Value) (Value, error) {
		return undefined, &Unsupported{args[0].AsString()}
	},
	"unknown": func(_ *render, args []Value, _ map[string]Value) (Value, error) {
		return undefined, refuse("uses " + args[0].AsString() + ", which Jinja2 has not")
	},
	"literal": func(_ *render, args []Value, _ map[string]Value) (Value, error) {
		d := jinja.NewDict()
		for i := 0; i < len(args); i += 2 {
			if err := setKey(d.AsDict(), args[i], args[i+1]); err != nil {
				return undefined, err
			}
		}
		return d, nil
	},
}

// items are what iterating over v yields. The slice is the caller's.
func (r *render) items(v Value) ([]Value, error) {
	var items []Value
	switch k := kindOf(v); k {
	case kList:
		items = append(items, v.AsList().Items...)
	case kDict:
		for _, key := range v.AsDict().Keys {
			items = append(items, keyValue(key))
		}
	case kString:
		s := v.AsString()
		if err := r.meter.step(len(s)); err != nil {
			return nil, err
		}
		for i, c := range s {
			items = append(items, String(s[i:i+len(string(c))]))
		}
		return items, nil
	case kGenerator:
		items = drain(v)
	case kUndefined:
	default:
		return nil, typeError("iteration", k)
	}
	return items, r.meter.step(len(items))
}

// unpack makes a list of n items of v.
func (r *render) unpack(v Value, n int) (Value, error) {
	if v.IsList() && v.AsList().Len() == n {
		return v, nil
	}
	items, err := r.items(v)
	if err != nil {
		return undefined, err
	}
	if len(items) != n {
		return undefined, refuse("unpacks a sequence of another length")
	}
	return List(items), nil
}
