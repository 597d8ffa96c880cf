package jinja2

import "github.com/ardanlabs/jinja"

// function is what emitted source calls as __name. args and kwargs are the
// library's and must not be kept.
type function func(r *render, args []Value, kwargs map[string]Value) (Value, error)

// functions are all of them, by name. Filters are filter_NAME, tests test_NAME.
var functions = map[string]function{}

func init() {
	for _, group := range []map[string]function{guards, access, operators, filters, tests} {
		for name, fn := range group {
			functions[name] = fn
		}
	}
}

// bytesPerStep is how much text counts as one step: what a filter reads in about
// the time of a step, 100 ns.
const bytesPerStep = 256

// bind makes fn callable by the library, for the renders of r.
func (r *render) bind(name string, fn function) Value {
	return jinja.NewCallable(name, func(args []Value, kwargs map[string]Value) (Value, error) {
		if r.err != nil {
			return undefined, r.err
		}
		n := 1
		for i := range args { // reading text costs too
			if args[i].IsString() {
				n += len(args[i].AsString()) / bytesPerStep
			}
		}
		err := r.meter.step(n)
		v := undefined
		if err == nil {
			v, err = fn(r, args, kwargs)
		}
		if err != nil {
			// The library wraps some errors and swallows none; the first
			// is kept, with its type.
			r.err = err
		}
		return v, err
	})
}

// signature names a function's parameters after the first, and their defaults.
type signature []parameter

type parameter struct {
	name     string
	fallback Value
}

// required marks a parameter that has no default.
var required = jinja.NewCallable("required", nil)

// fill sorts what a call gave into the order of the parameters, as Python binds
// arguments.
func (s signature) fill(fn string, args []Value, kwargs map[string]Value, room []Value) ([]Value, error) {
	if len(args) > len(s) {
		return nil, refuse("gives " + fn + " too many arguments")
	}
	known := 0
	room = room[:0]
	for i, p := range s {
		v, named := kwargs[p.name]
		switch {
		case named && i < len(args):
			return nil, refuse("gives " + fn + " the argument " + p.name + " twice")
		case named:
			known++
		case i < len(args):
			v = args[i]
		case p.fallback.IsCallable():
			return nil, refuse("does not give " + fn + " the argument " + p.name)
		default:
			v = p.fallback
		}
		room = append(room, v)
	}
	if known != len(kwargs) {
		return nil, refuse("gives " + fn + " an argument that it does not have")
	}
	return room, nil
}
