package jinja2

import "github.com/ardanlabs/jinja"

// maxRange is the limit of the sandbox.
const maxRange = 100_000

// globals are the functions a template may call by name. Variables of the same
// name hide them.
func (r *render) globals() map[string]Value {
	return map[string]Value{
		"range":           r.bind("range", globalRange),
		"raise_exception": r.bind("raise_exception", raiseException),
		"strftime_now":    r.bind("strftime_now", strftimeNow),
		"cycler":          r.bind("cycler", cycler),
		"joiner":          r.bind("joiner", joiner),
		// The library adds the named arguments of a function of this name to
		// what it returns, in their order, which a Go map has not.
		"dict": r.bind("dict", func(r *render, args []Value, _ map[string]Value) (Value, error) {
			return r.dictOf(jinja.NewDict(), args)
		}),
		"namespace": r.bind("dict", func(r *render, args []Value, _ map[string]Value) (Value, error) {
			ns := jinja.NewDict()
			ns.AsDict().Set(nsMark, none)
			return r.dictOf(ns, args)
		}),
	}
}

// dictOf fills d from what dict(…) may be given by position.
func (r *render) dictOf(d Value, args []Value) (Value, error) {
	if len(args) == 0 {
		return d, nil
	}
	if len(args) > 1 {
		return undefined, refuse("gives dict too many arguments")
	}
	if kindOf(args[0]) == kDict {
		src := args[0].AsDict()
		for _, key := range src.Keys {
			d.AsDict().Set(key, src.Data[key])
		}
		return d, r.meter.step(src.Len())
	}
	items, err := r.items(args[0])
	for _, item := range items {
		if err != nil {
			return undefined, err
		}
		var pair Value
		if pair, err = r.unpack(item, 2); err == nil {
			err = setKey(d.AsDict(), pair.AsList().Items[0], pair.AsList().Items[1])
		}
	}
	return d, err
}

func globalRange(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	if len(args) < 1 || len(args) > 3 || len(kwargs) > 0 {
		return undefined, refuse("calls range with wrong arguments")
	}
	for _, a := range args {
		if k := kindOf(a); k != kInt && k != kBool {
			return undefined, typeError("range", k)
		}
	}
	start, stop, step := int64(0), integral(args[0]), int64(1)
	if len(args) > 1 {
		start, stop = stop, integral(args[1])
	}
	if len(args) > 2 {
		if step = integral(args[2]); step == 0 {
			return undefined, refuse("calls range with step zero")
		}
	}
	var items []Value
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if len(items) == maxRange {
			return undefined, refuse("calls range for more than 100000 numbers")
		}
		items = append(items, Int(i))
		if next := i + step; (next > i) != (step > 0) {
			break
		}
	}
	return List(items), r.meter.step(len(items))
}

func raiseException(r *render, args []Value, _ map[string]Value) (Value, error) {
	if len(args) != 1 {
		return undefined, refuse("calls raise_exception with wrong arguments")
	}
	message, err := r.str(args[0])
	if err != nil {
		return undefined, err
	}
	return undefined, &Refused{What: "raises an exception", Message: message}
}

func cycler(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	if len(args) == 0 || len(kwargs) > 0 {
		return undefined, refuse("calls cycler with wrong arguments")
	}
	items := append([]Value{}, args...)
	at := 0
	c := jinja.NewDict()
	c.AsDict().Set(nsMark, none)
	c.AsDict().Set("current", items[0])
	move := func(to int) {
		at = to
		c.AsDict().Set("current", items[at])
	}
	c.AsDict().Set("next", r.bind("next", func(*render, []Value, map[string]Value) (Value, error) {
		v := items[at]
		move((at + 1) % len(items))
		return v, nil
	}))
	c.AsDict().Set("reset", r.bind("reset", func(*render, []Value, map[string]Value) (Value, error) {
		move(0)
		return none, nil
	}))
	return c, nil
}

var joinerArgs = signature{{"sep", String(", ")}}

func joiner(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	a, err := joinerArgs.fill("joiner", args, kwargs, nil)
	if err != nil {
		return undefined, err
	}
	used := false
	return r.bind("joiner", func(*render, []Value, map[string]Value) (Value, error) {
		if !used {
			used = true
			return String(""), nil
		}
		return a[0], nil
	}), nil
}
