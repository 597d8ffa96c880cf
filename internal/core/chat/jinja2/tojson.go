package jinja2

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

var toJSONArgs = signature{{"ensure_ascii", Bool(false)}, {"indent", none}, {"separators", none}, {"sort_keys", Bool(false)}}

// filterToJSON is json.dumps with transformers' defaults: no escapes for HTML or
// beyond ASCII, keys in their order.
func filterToJSON(r *render, args []Value, kwargs map[string]Value) (Value, error) {
	var room [4]Value
	a, err := toJSONArgs.fill("tojson", args[1:], kwargs, room[:])
	if err != nil {
		return undefined, err
	}
	w := jsonWriter{r: r, ascii: a[0].IsTruthy(), sort: a[3].IsTruthy(), item: ", ", key: ": "}
	if !a[1].IsNone() {
		if w.pad, err = r.padding("tojson", a[1]); err != nil {
			return undefined, err
		}
		w.lines, w.item = true, ","
	}
	if !a[2].IsNone() {
		sep, err := r.items(a[2])
		if err != nil {
			return undefined, err
		}
		if len(sep) != 2 || !IsText(sep[0]) || !IsText(sep[1]) {
			return undefined, refuse("gives tojson wrong separators")
		}
		w.item, w.key = sep[0].AsString(), sep[1].AsString()
	}
	if err := w.value(args[0], 0); err != nil {
		return undefined, err
	}
	return r.made(w.b.String())
}

// jsonWriter writes JSON as Python's json does.
type jsonWriter struct {
	r           *render
	b           strings.Builder
	ascii, sort bool
	lines       bool
	item, key   string
	pad         string
}

func (w *jsonWriter) value(v Value, depth int) error {
	if depth > maxNesting {
		return &Exceeded{"the depth of a value that is printed"}
	}
	if err := w.r.meter.step(1); err != nil {
		return err
	}
	if err := w.r.meter.room(w.b.Len()); err != nil {
		return err
	}
	switch k := kindOf(v); k {
	case kNone:
		w.b.WriteString("null")
	case kBool:
		if v.AsBool() {
			w.b.WriteString("true")
		} else {
			w.b.WriteString("false")
		}
	case kInt, kBig:
		s, _ := scalarString(v)
		w.b.WriteString(s)
	case kFloat:
		w.float(v.AsFloat())
	case kString:
		w.string(v.AsString())
	case kList:
		return w.list(v.AsList().Items, depth)
	case kDict:
		return w.dict(v, depth)
	default:
		return typeError("tojson", k)
	}
	return nil
}

func (w *jsonWriter) float(f float64) {
	switch {
	case math.IsNaN(f):
		w.b.WriteString("NaN")
	case math.IsInf(f, 1):
		w.b.WriteString("Infinity")
	case math.IsInf(f, -1):
		w.b.WriteString("-Infinity")
	default:
		w.b.WriteString(floatRepr(f))
	}
}

func (w *jsonWriter) newline(depth int) error {
	if !w.lines {
		return nil
	}
	if err := w.r.meter.room(w.b.Len() + depth*len(w.pad)); err != nil {
		return err
	}
	w.b.WriteByte('\n')
	for range depth {
		w.b.WriteString(w.pad)
	}
	return nil
}

func (w *jsonWriter) list(items []Value, depth int) error {
	w.b.WriteByte('[')
	for i, item := range items {
		if i > 0 {
			w.b.WriteString(w.item)
		}
		if err := w.newline(depth + 1); err != nil {
			return err
		}
		if err := w.value(item, depth+1); err != nil {
			return err
		}
	}
	if len(items) > 0 {
		if err := w.newline(depth); err != nil {
			return err
		}
	}
	w.b.WriteByte(']')
	return nil
}

func (w *jsonWriter) dict(v Value, depth int) error {
	d := v.AsDict()
	keys := d.Keys
	if w.sort && hasMarkedKeys(d) {
		return &Unsupported{"tojson with sort_keys of keys that are no str"}
	}
	if w.sort {
		keys = slices.Sorted(slices.Values(keys))
	}
	w.b.WriteByte('{')
	for i, key := range keys {
		if i > 0 {
			w.b.WriteString(w.item)
		}
		if err := w.newline(depth + 1); err != nil {
			return err
		}
		if err := w.name(key, depth); err != nil {
			return err
		}
		w.b.WriteString(w.key)
		if err := w.value(d.Data[key], depth+1); err != nil {
			return err
		}
	}
	if len(keys) > 0 {
		if err := w.newline(depth); err != nil {
			return err
		}
	}
	w.b.WriteByte('}')
	return nil
}

// name writes a key, which JSON has as a string.
func (w *jsonWriter) name(key string, depth int) error {
	if !strings.HasPrefix(key, keyMark) {
		w.string(key)
		return nil
	}
	w.b.WriteByte('"')
	err := w.value(keyValue(key), depth)
	w.b.WriteByte('"')
	return err
}

var jsonEscapes = [...]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\f': `\f`, '\b': `\b`}

func (w *jsonWriter) string(s string) {
	w.b.WriteByte('"')
	from := 0
	for i, c := range s {
		esc := ""
		switch {
		case int(c) < len(jsonEscapes) && jsonEscapes[c] != "":
			esc = jsonEscapes[c]
		case c < 0x20, w.ascii && c >= 0x7f && c < 0x10000:
			esc = fmt.Sprintf(`\u%04x`, c)
		case w.ascii && c >= 0x10000:
			c -= 0x10000
			esc = fmt.Sprintf(`\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		default:
			continue
		}
		w.b.WriteString(s[from:i])
		w.b.WriteString(esc)
		from = i + runeLen(s[i])
	}
	w.b.WriteString(s[from:])
	w.b.WriteByte('"')
}

// runeLen is the length of a character by its first byte.
func runeLen(first byte) int {
	switch {
	case first < 0x80:
		return 1
	case first < 0xe0:
		return 2
	case first < 0xf0:
		return 3
	}
	return 4
}
