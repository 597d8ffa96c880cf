package jinja2

import (
	"unicode/utf8"

	"github.com/ardanlabs/jinja"
)

// access are attributes, items and slices, as Jinja2's sandbox looks them up.
var access = map[string]function{
	"attr": func(_ *render, args []Value, _ map[string]Value) (Value, error) {
		return getattr(args[0], args[1].AsString())
	},
	"item": func(r *render, args []Value, _ map[string]Value) (Value, error) {
		v, err := getitem(args[0], args[1])
		if err == nil && args[0].IsString() { // characters are counted
			err = r.meter.step(len(args[0].AsString()) / 16)
		}
		return v, err
	},
	"slice":  slice,
	"method": callMethod,
}

// bound stands for a method that is looked at and not called: true, defined,
// callable, and an error when it is called after all.
var bound = jinja.NewCallable(boundName, func([]Value, map[string]Value) (Value, error) {
	return undefined, &Unsupported{"calling a method that was kept as a value"}
})

const boundName = "method"

// macroAttributes are what Jinja2 tells of a macro, and the library does not.
var macroAttributes = words("name arguments catch_kwargs catch_varargs caller explicit_caller")

// getattr is obj.name: a method or attribute of the type, else the item.
func getattr(obj Value, name string) (Value, error) {
	switch k := kindOf(obj); k {
	case kUndefined:
		return undefined, refuse("takes an attribute of an undefined value")
	case kDict:
		if dictMethods[name] {
			return bound, nil
		}
		if mutators[name] {
			return undefined, nil // the sandbox's undefined; calling it raises
		}
		v, _ := obj.AsDict().Get(name)
		return v, nil
	case kNamespace:
		v, _ := obj.AsDict().Get(name)
		return v, nil
	case kString:
		if strMethods[name] != nil || otherStrMethods[name] {
			return bound, nil
		}
	case kList:
		if listMethods[name] {
			return bound, nil
		}
	case kCallable:
		if macroAttributes[name] && obj.AsCallable().Name != boundName {
			return undefined, &Unsupported{"the attribute " + name + " of a macro"}
		}
	}
	return undefined, nil
}

// getitem is obj[key]: the item, else for a string key the attribute. So a dict
// without a member "items" has its method items there, and that is true.
func getitem(obj, key Value) (Value, error) {
	k := kindOf(key)
	switch kindOf(obj) {
	case kUndefined:
		return undefined, refuse("takes an item of an undefined value")
	case kDict:
		if k == kString {
			if v, ok := obj.AsDict().Get(key.AsString()); ok {
				return v, nil
			}
			if dictMethods[key.AsString()] {
				return bound, nil
			}
			return undefined, nil
		}
		v, _ := getKey(obj.AsDict(), key)
		return v, nil
	case kList:
		if k == kInt || k == kBool {
			items := obj.AsList().Items
			if i, ok := index(integral(key), len(items)); ok {
				return items[i], nil
			}
			return undefined, nil
		}
	case kString:
		if k == kInt || k == kBool {
			return charAt(obj.AsString(), integral(key)), nil
		}
	}
	if k == kString {
		return getattr(obj, key.AsString())
	}
	return undefined, nil
}

// index resolves a Python index.
func index(i int64, n int) (int, bool) {
	if i < 0 {
		i += int64(n)
	}
	return int(i), i >= 0 && i < int64(n)
}

func charAt(s string, i int64) Value {
	if i == -1 && s != "" {
		_, n := utf8.DecodeLastRuneInString(s)
		return String(s[len(s)-n:])
	}
	if i >= int64(len(s)) {
		return undefined
	}
	at, ok := int(i), i >= 0
	if !ok {
		at, ok = index(i, utf8.RuneCountInString(s))
	}
	if !ok {
		return undefined
	}
	for pos, c := range s {
		if at == 0 {
			return String(s[pos : pos+utf8.RuneLen(c)])
		}
		at--
	}
	return undefined
}

// slice is obj[start:stop:step].
func slice(r *render, args []Value, _ map[string]Value) (Value, error) {
	obj := args[0]
	k := kindOf(obj)
	if k != kList && k != kString {
		return undefined, typeError("a slice", k)
	}
	for _, a := range args[1:] {
		if ak := kindOf(a); ak != kNone && ak != kInt && ak != kBool {
			return undefined, typeError("a slice by", ak)
		}
	}
	if k == kString {
		return sliceString(r, obj.AsString(), args[1:])
	}
	items := obj.AsList().Items
	start, stop, step, err := bounds(args[1:], len(items))
	if err != nil {
		return undefined, err
	}
	var out []Value
	if step == 1 {
		if start < stop {
			out = append(out, items[start:stop]...)
		}
	} else {
		for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
			out = append(out, items[i])
		}
	}
	return List(out), r.meter.step(len(out))
}

func sliceString(r *render, s string, args []Value) (Value, error) {
	if err := r.meter.step(len(s) / 16); err != nil {
		return undefined, err
	}
	ascii := isASCII(s)
	n := len(s)
	if !ascii {
		n = utf8.RuneCountInString(s)
	}
	start, stop, step, err := bounds(args, n)
	if err != nil {
		return undefined, err
	}
	if step == 1 {
		if start >= stop {
			return String(""), nil
		}
		if !ascii {
			start, stop = byteAt(s, start), byteAt(s, stop)
		}
		return String(s[start:stop]), nil
	}
	if err := r.meter.text(len(s) * 4); err != nil {
		return undefined, err
	}
	chars := []rune(s)
	var out []rune
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		out = append(out, chars[i])
	}
	return String(string(out)), nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// byteAt is where character n of s begins.
func byteAt(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// bounds resolves a slice over n items, as Python's slice.indices.
func bounds(args []Value, n int) (start, stop, step int, err error) {
	at := func(v Value, fallback, low, high int) int {
		if v.IsNone() {
			return fallback
		}
		i := integral(v)
		if i < 0 {
			i = max(i+int64(n), int64(low))
		}
		return int(min(max(i, int64(low)), int64(high)))
	}
	step = 1
	if !args[2].IsNone() {
		s := integral(args[2])
		if s == 0 {
			return 0, 0, 0, refuse("slices with step zero")
		}
		step = int(min(max(s, -int64(n)-1), int64(n)+1)) // more has the same effect
	}
	if step > 0 {
		return at(args[0], 0, 0, n), at(args[1], n, 0, n), step, nil
	}
	return at(args[0], n-1, -1, n-1), at(args[1], -1, -1, n-1), step, nil
}
