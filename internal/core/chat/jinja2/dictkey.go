package jinja2

import (
	"strconv"
	"strings"

	"github.com/ardanlabs/jinja"
)

// keyMark begins a key that is no str: None, a bool or a number. Keys of the
// library's dicts are strings, and {1: …} and {"1": …} are two dicts. What
// follows is Python's repr of the key.
const keyMark = "\xffk"

// markedKey is v as a key of a dict of the library. Tuples could be keys in
// Python, and are not here.
func markedKey(v Value) (string, error) {
	if IsText(v) {
		return v.AsString(), nil
	}
	if s, ok := scalarString(v); ok {
		return keyMark + s, nil
	}
	return "", &Unsupported{"a dict key of type " + kindOf(v).String()}
}

// keyValue is the key that a dict of the library has under this name.
func keyValue(key string) Value {
	s, marked := strings.CutPrefix(key, keyMark)
	if !marked {
		return String(key)
	}
	switch s {
	case "None":
		return none
	case "True", "False":
		return Bool(s == "True")
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return Int(n)
	}
	if strings.ContainsAny(s, ".en") {
		f, _ := strconv.ParseFloat(s, 64) // of a repr
		return Float(f)
	}
	return String(bigMark + s)
}

// findKey is the name under which d has v. Keys that are equal are one: 1 is
// found under 1.0 and True.
func findKey(d *jinja.Dict, v Value) (name string, ok bool) {
	name, err := markedKey(v)
	if err != nil || d.Has(name) || name[:min(len(keyMark), len(name))] != keyMark {
		return name, err == nil && d.Has(name)
	}
	for _, other := range equalKeys(v) {
		if d.Has(other) {
			return other, true
		}
	}
	return name, false
}

// equalKeys are the names of all keys that equal a number.
func equalKeys(v Value) []string {
	x := exact(v)
	if x == nil || !x.IsInt() {
		return nil
	}
	digits := x.Num().String()
	names := []string{keyMark + digits}
	if f, err := strconv.ParseFloat(digits, 64); err == nil && strconv.FormatFloat(f, 'f', 0, 64) == digits {
		names = append(names, keyMark+floatRepr(f))
	}
	switch digits {
	case "0":
		names = append(names, keyMark+"-0.0", keyMark+"False")
	case "1":
		names = append(names, keyMark+"True")
	}
	return names
}

// getKey is d's member under the key v.
func getKey(d *jinja.Dict, v Value) (Value, bool) {
	name, ok := findKey(d, v)
	if !ok {
		return undefined, false
	}
	return d.Get(name)
}

// setKey sets d's member under the key v. A key that is there stays as it is
// written.
func setKey(d *jinja.Dict, v, member Value) error {
	name, err := markedKey(v)
	if err != nil {
		return err
	}
	if there, ok := findKey(d, v); ok {
		name = there
	}
	d.Set(name, member)
	return nil
}

// hasMarkedKeys reports whether a key of d is no str.
func hasMarkedKeys(d *jinja.Dict) bool {
	for _, key := range d.Keys {
		if strings.HasPrefix(key, keyMark) {
			return true
		}
	}
	return false
}
