package jinja2

import "strings"

// callMethod is obj.name(…).
func callMethod(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	obj, name := args[0], args[1].AsString()
	args = args[2:]
	switch k := kindOf(obj); k {
	case kString:
		if m := strMethods[name]; m != nil {
			return m(r, obj.AsString(), args, kwargs)
		}
		if otherStrMethods[name] {
			return undefined, &Unsupported{"str." + name}
		}
	case kDict:
		if dictMethods[name] {
			return callDict(r, obj, name, args, kwargs)
		}
		if mutators[name] {
			return undefined, refuse("changes a dict")
		}
	case kList:
		if listMethods[name] {
			return callList(r, obj, name, args, kwargs)
		}
		if mutators[name] {
			return undefined, refuse("changes a list")
		}
	}
	fn, err := getattr(obj, name)
	if err != nil {
		return undefined, err
	}
	if !fn.IsCallable() {
		return undefined, refuse("calls what is no function")
	}
	return fn.AsCallable().Fn(args, kwargs)
}

// mutators are the methods that the sandbox does not give to a template.
var mutators = map[string]bool{"append": true, "clear": true, "extend": true, "insert": true, "pop": true, "popitem": true,
	"remove": true, "reverse": true, "setdefault": true, "sort": true, "update": true}

var (
	dictMethods = map[string]bool{"get": true, "items": true, "keys": true, "values": true, "copy": true, "fromkeys": true}
	listMethods = map[string]bool{"count": true, "index": true, "copy": true}
)

func callDict(r *render, obj Value, name string, args []Value, kwargs map[string]Value) (Value, error) {
	d := obj.AsDict()
	if len(kwargs) > 0 {
		return undefined, refuse("gives dict." + name + " an argument that it does not have")
	}
	if name == "get" {
		if len(args) < 1 || len(args) > 2 {
			return undefined, refuse("calls dict.get with a wrong number of arguments")
		}
		switch k := kindOf(args[0]); k {
		case kList, kDict:
			return undefined, typeError("dict.get", k)
		default:
			if v, ok := getKey(d, args[0]); ok {
				return v, nil
			}
		}
		if len(args) == 2 {
			return args[1], nil
		}
		return none, nil
	}
	if name == "fromkeys" {
		return undefined, &Unsupported{"dict.fromkeys"}
	}
	if len(args) > 0 {
		return undefined, refuse("gives dict." + name + " too many arguments")
	}
	if name == "copy" {
		return Copy(obj), r.meter.step(d.Len())
	}
	// Views of a dict are lists here; who counts or iterates sees no difference.
	out := make([]Value, 0, d.Len())
	for _, key := range d.Keys {
		switch name {
		case "items":
			out = append(out, List([]Value{keyValue(key), d.Data[key]}))
		case "keys":
			out = append(out, keyValue(key))
		case "values":
			out = append(out, d.Data[key])
		}
	}
	return List(out), r.meter.step(len(out))
}

func callList(r *render, obj Value, name string, args []Value, kwargs map[string]Value) (Value, error) {
	items := obj.AsList().Items
	if name == "copy" && len(args) == 0 {
		return List(append([]Value{}, items...)), r.meter.step(len(items))
	}
	if len(args) != 1 || len(kwargs) > 0 {
		return undefined, &Unsupported{"this call of list." + name}
	}
	count := int64(0)
	for i, item := range items {
		same, err := r.alike(item, args[0], 0)
		if err != nil {
			return undefined, err
		}
		if same && name == "index" {
			return Int(int64(i)), nil
		}
		if same {
			count++
		}
	}
	if name == "index" {
		return undefined, refuse("looks for the index of what is not in a list")
	}
	return Int(count), nil
}

// otherStrMethods are the methods of a str that are not here.
var otherStrMethods = words("casefold encode expandtabs format_map isascii isdecimal isidentifier isprintable istitle maketrans swapcase translate isnumeric")

func words(s string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(s) {
		m[w] = true
	}
	return m
}
