package chat

import (
	"math"
	"strconv"
	"strings"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
)

// quoting is how the default of a schema with an enum is written where it is text.
type quoting uint8

const (
	plainInEnum quoting = iota // as it stands
	quotedHere                 // as JSON
)

// defaultNote is what a comment says of a default. Text is put into quotes without
// escapes, anything else is JSON.
func defaultNote(v jinja2.Value, enum bool, q quoting) (string, error) {
	switch {
	case jinja2.IsText(v) && !enum:
		return `default: "` + v.AsString() + `"`, nil
	case jinja2.IsText(v) && q == plainInEnum:
		return "default: " + v.AsString(), nil
	}
	var b strings.Builder
	b.WriteString("default: ")
	err := writeCompact(&b, v)
	return b.String(), err
}

// writeCompact writes JSON as Rust's serde_json does: nothing between its parts, and
// beyond ASCII nothing escaped.
func writeCompact(b *strings.Builder, v jinja2.Value) error {
	switch {
	case v.IsList():
		b.WriteByte('[')
		for i, item := range v.AsList().Items {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeCompact(b, item); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case v.IsDict():
		b.WriteByte('{')
		for i, key := range v.AsDict().Keys {
			if i > 0 {
				b.WriteByte(',')
			}
			writeQuoted(b, key)
			b.WriteByte(':')
			if err := writeCompact(b, member(v, key)); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case jinja2.IsText(v):
		writeQuoted(b, v.AsString())
	case v.IsBool():
		b.WriteString(strconv.FormatBool(v.AsBool()))
	case v.IsNone():
		b.WriteString("null")
	default:
		s, err := compactNumber(v)
		b.WriteString(s)
		return err
	}
	return nil
}

// mostDigits of a fraction are read by serde_json without a rounding of its own.
const mostDigits = 15

// compactNumber refuses what Rust reads or writes in its own way: fractions of many
// digits, those that are written with an exponent, and whole numbers beyond 64 bits.
func compactNumber(v jinja2.Value) (string, error) {
	if v.IsInt() {
		return strconv.FormatInt(v.AsInt(), 10), nil
	}
	if !v.IsFloat() {
		return "", unrenderable("a default that is beyond 64 bits")
	}
	f := v.AsFloat()
	s := strconv.FormatFloat(f, 'f', -1, 64)
	digits := strings.TrimLeft(strings.Replace(strings.TrimPrefix(s, "-"), ".", "", 1), "0")
	if a := math.Abs(f); len(strings.TrimRight(digits, "0")) > mostDigits || a != 0 && (a < 1e-4 || a >= 1e16) || math.IsNaN(a) {
		return "", unrenderable("a default that is a number of many digits")
	}
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s, nil
}

// writeQuoted writes a text as serde_json does.
func writeQuoted(b *strings.Builder, s string) {
	const hex = "0123456789abcdef"
	short := map[byte]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}
	b.WriteByte('"')
	for i := range len(s) {
		c := s[i]
		switch {
		case short[c] != "":
			b.WriteString(short[c])
		case c < ' ':
			b.WriteString(`\u00` + string(hex[c>>4]) + string(hex[c&15]))
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
}
