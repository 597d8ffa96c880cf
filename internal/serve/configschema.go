package serve

import (
	"reflect"
	"strings"
	"time"
)

// The layout of eppctl.yaml is the set of yaml tags under file; these helpers
// read it, so that messages and the reference page cannot drift from it.

func fieldsOf(t reflect.Type) map[string]int {
	m := make(map[string]int, t.NumField())
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("yaml"); name != "" && name != "-" {
			m[name] = i
		}
	}
	return m
}

// keysOf lists the keys of a section in the order of its struct.
func keysOf(t reflect.Type) []string {
	var keys []string
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("yaml"); name != "" && name != "-" {
			keys = append(keys, name)
		}
	}
	return keys
}

// Keys lists every key of eppctl.yaml with its path; list entries are written
// as in "pods[].name".
func Keys() []string { return appendKeys(nil, reflect.TypeFor[file](), "") }

func appendKeys(keys []string, t reflect.Type, prefix string) []string {
	for i := range t.NumField() {
		name := t.Field(i).Tag.Get("yaml")
		if name == "" || name == "-" {
			continue
		}
		path, ft := join(prefix, name), t.Field(i).Type
		keys = append(keys, path)
		for ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		if reflect.PointerTo(ft).Implements(reflect.TypeFor[nodeDecoder]()) {
			continue
		}
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
	for _, k := range Keys() {
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
