package jinja2

import (
	"strings"

	"github.com/ardanlabs/jinja"
)

// Value is a value of a template. It is the library's; what JSON and Python have
// and the library lacks is marked in it:
//
//	integer beyond 64 bits  a string: bigMark and the digits
//	namespace               a dict whose first key is nsMark
//	generator               a dict whose only key is genMark: map, select and
//	                        others return one. It is always true, has no length,
//	                        and yields its items once
//	key that is no str      a string: keyMark and its repr (dictkey.go)
//
// The marks begin with a byte that is in no valid text, so no input makes them.
type Value = jinja.Value

const (
	bigMark = "\xffi"
	nsMark  = "\xffn"
	genMark = "\xffg"
)

// kind is what Python's type() tells apart.
type kind uint8

const (
	kUndefined kind = iota
	kNone
	kBool
	kInt
	kBig
	kFloat
	kString
	kList
	kDict
	kNamespace
	kGenerator
	kCallable
)

// pythonNames are the types' names in error messages.
var pythonNames = [...]string{"Undefined", "NoneType", "bool", "int", "int", "float", "str", "list", "dict", "Namespace", "generator", "function"}

func (k kind) String() string { return pythonNames[k] }

func kindOf(v Value) kind {
	switch {
	case v.IsString():
		if isBig(v.AsString()) {
			return kBig
		}
		return kString
	case v.IsDict():
		if keys := v.AsDict().Keys; len(keys) > 0 && keys[0] != "" && keys[0][0] == 0xff {
			switch keys[0] {
			case nsMark:
				return kNamespace
			case genMark:
				return kGenerator
			}
		}
		return kDict
	case v.IsList():
		return kList
	case v.IsBool():
		return kBool
	case v.IsInt():
		return kInt
	case v.IsFloat():
		return kFloat
	case v.IsNone():
		return kNone
	case v.IsCallable():
		return kCallable
	}
	return kUndefined
}

func isBig(s string) bool { return len(s) > len(bigMark) && s[0] == 0xff && s[1] == 'i' }

// bigDigits are the sign and digits of an integer beyond 64 bits.
func bigDigits(v Value) string { return strings.TrimPrefix(v.AsString(), bigMark) }

// number reports whether k takes part in arithmetic: bool is an int in Python.
func (k kind) number() bool { return k == kBool || k == kInt || k == kFloat }

// integral is the value of a bool or an int.
func integral(v Value) int64 {
	if v.IsBool() {
		if v.AsBool() {
			return 1
		}
		return 0
	}
	return v.AsInt()
}

// real is the value of a bool, int or float.
func real(v Value) float64 {
	if v.IsFloat() {
		return v.AsFloat()
	}
	return float64(integral(v))
}

// Constructors, under the names the package uses.
var (
	undefined = jinja.Undefined()
	none      = jinja.None()
)

// None is Python's None.
func None() Value { return none }

// String makes a str. s must be valid UTF-8.
func String(s string) Value { return jinja.NewString(s) }

// Bool makes a bool.
func Bool(b bool) Value { return jinja.NewBool(b) }

// Int makes an int.
func Int(n int64) Value { return jinja.NewInt(n) }

// Float makes a float.
func Float(f float64) Value { return jinja.NewFloat(f) }

// List makes a list of the items, which it keeps.
func List(items []Value) Value { return jinja.NewList(items) }

// Dict makes an empty dict.
func Dict() Value { return jinja.NewDict() }

// IsText reports whether v is a Python str. Value.IsString alone is also true
// for an integer beyond 64 bits.
func IsText(v Value) bool { return kindOf(v) == kString }

// Get returns the member of a dict.
func Get(dict Value, key string) (Value, bool) { return dict.AsDict().Get(key) }

// Put sets the member of a dict, at its end when it is new.
func Put(dict Value, key string, v Value) { dict.AsDict().Set(key, v) }

// Delete removes the member of a dict.
func Delete(dict Value, key string) {
	d := dict.AsDict()
	if _, ok := d.Data[key]; !ok {
		return
	}
	delete(d.Data, key)
	keys := make([]string, 0, len(d.Keys)-1)
	for _, k := range d.Keys {
		if k != key {
			keys = append(keys, k)
		}
	}
	d.Keys = keys
}

// Copy is a copy of a dict that shares its members' values.
func Copy(dict Value) Value {
	out := jinja.NewDict()
	src := dict.AsDict()
	for _, k := range src.Keys {
		out.AsDict().Set(k, src.Data[k])
	}
	return out
}

func generator(items []Value) Value {
	g := jinja.NewDict()
	g.AsDict().Set(genMark, List(items))
	return g
}

// drain takes a generator's items; there are none left afterwards.
func drain(g Value) []Value {
	items := g.AsDict().Data[genMark].AsList().Items
	g.AsDict().Data[genMark] = List(nil)
	return items
}
