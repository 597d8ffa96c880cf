package serve

import (
	"reflect"
	"strings"
	"time"
)

// The layout of eppctl.yaml is the set of yaml tags under file; these helpers
// read it, so that messages and the reference page cannot drift from it.

// field is one key of a section and the way to its struct field.
type field struct {
	name  string
	index []int
	typ   reflect.Type
}

// fieldsOf lists the keys of a section in the order of its struct; ",inline"
// takes in the keys of an embedded one.
func fieldsOf(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		switch tag := f.Tag.Get("yaml"); tag {
		case "", "-":
		case ",inline":
			for _, sub := range fieldsOf(f.Type) {
				sub.index = append([]int{i}, sub.index...)
				out = append(out, sub)
			}
		default:
			out = append(out, field{tag, []int{i}, f.Type})
		}
	}
	return out
}

func keysOf(t reflect.Type) []string {
	fields := fieldsOf(t)
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.name
	}
	return keys
}

// configKeys lists every key of eppctl.yaml with its path; list entries are written
// as in "pods[].name".
func configKeys() []string { return appendKeys(nil, reflect.TypeFor[file](), "") }

func appendKeys(keys []string, t reflect.Type, prefix string) []string {
	for _, f := range fieldsOf(t) {
		path, ft := join(prefix, f.name), f.typ
		keys = append(keys, path)
		if ft.Kind() == reflect.Slice && ft.Elem().Kind() == reflect.Struct {
			path, ft = path+"[]", ft.Elem()
		}
		if ft.Kind() == reflect.Struct {
			keys = appendKeys(keys, ft, path)
		}
	}
	return keys
}

// keyElsewhere finds a key of this name in another section.
func keyElsewhere(name string) string {
	for _, k := range configKeys() {
		if strings.HasSuffix(k, "."+name) {
			return k
		}
	}
	return ""
}

// expects says in words what a value of this type looks like.
func expects(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "a duration such as 250ms or 2s"
	case reflect.TypeFor[Bytes]():
		return "a size such as 32MiB"
	}
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a finite number"
	}
	return "a " + t.Kind().String()
}

func join(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

// parent cuts the last step off a key path.
func parent(key string) string {
	return key[:max(strings.LastIndexAny(key, ".["), 0)]
}
