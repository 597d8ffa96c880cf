package jinja2

import (
	"strings"
	"unicode/utf8"
)

// Methods of text that look for other text in it.

// part is s[start:end] in characters, as find and others take it. from is where
// it begins, in bytes and in characters.
func part(s string, args []Value) (sub string, from, chars int, ok bool, err error) {
	for _, a := range args {
		if k := kindOf(a); k != kNone && k != kInt && k != kBool {
			return "", 0, 0, false, typeError("an index", k)
		}
	}
	if len(args) == 0 {
		return s, 0, 0, true, nil
	}
	n := utf8.RuneCountInString(s)
	limits := append(append([]Value{}, args...), none, none)
	start, stop, _, err := bounds([]Value{limits[0], limits[1], none}, n)
	if err != nil {
		return "", 0, 0, false, err
	}
	if !limits[0].IsNone() && integral(limits[0]) > int64(n) || start > stop {
		return "", 0, 0, false, nil
	}
	from = byteAt(s, start)
	return s[from:byteAt(s, stop)], from, start, true, nil
}

func affix(name string, has func(s, affix string) bool) strMethod {
	return func(r *render, s string, args []Value, kwargs map[string]Value) (Value, error) {
		if err := noKwargs(name, kwargs); err != nil || len(args) < 1 || len(args) > 3 {
			return undefined, refuse("calls str." + name + " with wrong arguments")
		}
		sub, _, _, ok, err := part(s, args[1:])
		if err != nil {
			return undefined, err
		}
		options := []Value{args[0]}
		if args[0].IsList() { // a tuple in Python
			options = args[0].AsList().Items
		}
		found := false
		for _, o := range options {
			x, err := want(name, o)
			if err != nil {
				return undefined, err
			}
			found = found || ok && has(sub, x)
		}
		return Bool(found), r.meter.step(len(options))
	}
}

// search is find or index. absent -2 raises.
func search(name string, at func(s, sub string) int, absent int64) strMethod {
	return func(r *render, s string, args []Value, kwargs map[string]Value) (Value, error) {
		if err := noKwargs(name, kwargs); err != nil || len(args) < 1 || len(args) > 3 {
			return undefined, refuse("calls str." + name + " with wrong arguments")
		}
		x, err := want(name, args[0])
		if err != nil {
			return undefined, err
		}
		sub, _, chars, ok, err := part(s, args[1:])
		if err != nil {
			return undefined, err
		}
		if err := r.meter.step(len(s) / textPerStep); err != nil {
			return undefined, err
		}
		i := -1
		if ok {
			i = at(sub, x)
		}
		switch {
		case i >= 0:
			return Int(int64(chars + utf8.RuneCountInString(sub[:i]))), nil
		case absent == -2:
			return undefined, refuse("looks for the index of what is not in a str")
		}
		return Int(absent), nil
	}
}

func countMethod(r *render, s string, args []Value, kwargs map[string]Value) (Value, error) {
	if err := noKwargs("count", kwargs); err != nil || len(args) < 1 || len(args) > 3 {
		return undefined, refuse("calls str.count with wrong arguments")
	}
	x, err := want("count", args[0])
	if err != nil {
		return undefined, err
	}
	sub, _, _, ok, err := part(s, args[1:])
	if err != nil || !ok {
		return Int(0), err
	}
	return Int(int64(strings.Count(sub, x))), r.meter.step(len(s) / textPerStep)
}
