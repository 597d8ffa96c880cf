package jinja2

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxNesting bounds how deep a value is walked. Python ends at about 1000.
const maxNesting = 500

// str is Python's str(v).
func (r *render) str(v Value) (string, error) {
	switch kindOf(v) {
	case kString:
		return v.AsString(), nil
	case kUndefined:
		return "", nil
	}
	if s, ok := scalarString(v); ok {
		return s, nil
	}
	p := printer{r: r}
	err := p.repr(v, 0)
	return p.b.String(), err
}

// printer writes Python's repr.
type printer struct {
	r *render
	b strings.Builder
}

func (p *printer) repr(v Value, depth int) error {
	if depth > maxNesting {
		return &Exceeded{"the depth of a value that is printed"}
	}
	if err := p.r.meter.step(1); err != nil {
		return err
	}
	if err := p.r.meter.room(p.b.Len()); err != nil {
		return err
	}
	if s, ok := scalarString(v); ok {
		p.b.WriteString(s)
		return nil
	}
	switch k := kindOf(v); k {
	case kString:
		reprString(&p.b, v.AsString())
	case kList:
		return p.list(v, depth)
	case kDict:
		return p.dict(v, depth)
	case kUndefined:
		p.b.WriteString("Undefined")
	default:
		return &Unsupported{"printing a " + k.String()}
	}
	return nil
}

func (p *printer) list(v Value, depth int) error {
	p.b.WriteByte('[')
	for i, item := range v.AsList().Items {
		if i > 0 {
			p.b.WriteString(", ")
		}
		if err := p.repr(item, depth+1); err != nil {
			return err
		}
	}
	p.b.WriteByte(']')
	return nil
}

func (p *printer) dict(v Value, depth int) error {
	d := v.AsDict()
	p.b.WriteByte('{')
	for i, key := range d.Keys {
		if i > 0 {
			p.b.WriteString(", ")
		}
		if err := p.repr(keyValue(key), depth+1); err != nil {
			return err
		}
		p.b.WriteString(": ")
		if err := p.repr(d.Data[key], depth+1); err != nil {
			return err
		}
	}
	p.b.WriteByte('}')
	return nil
}

// scalarString is Python's str of None, a bool or a number.
func scalarString(v Value) (string, bool) {
	switch kindOf(v) {
	case kNone:
		return "None", true
	case kBool:
		if v.AsBool() {
			return "True", true
		}
		return "False", true
	case kInt:
		return strconv.FormatInt(v.AsInt(), 10), true
	case kBig:
		return bigDigits(v), true
	case kFloat:
		return floatRepr(v.AsFloat()), true
	}
	return "", false
}

// floatRepr is Python's repr of a float: the shortest digits that read back as
// the same value, with an exponent below 1e-4 and from 1e16 on.
func floatRepr(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// reprString quotes s as Python does: single quotes, or double ones where that
// saves escapes; what is not printable by its number.
func reprString(b *strings.Builder, s string) {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b.WriteByte(quote)
	for _, c := range s {
		switch {
		case c == rune(quote) || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == ' ' || c < utf8.RuneSelf && c > ' ' && c != 0x7f || c >= utf8.RuneSelf && unicode.IsPrint(c):
			b.WriteRune(c)
		case c < 0x100:
			fmt.Fprintf(b, `\x%02x`, c)
		case c < 0x10000:
			fmt.Fprintf(b, `\u%04x`, c)
		default:
			fmt.Fprintf(b, `\U%08x`, c)
		}
	}
	b.WriteByte(quote)
}
