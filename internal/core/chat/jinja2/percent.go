package jinja2

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// percent is format % args, and the filter format. named is what %(name)s looks
// up, nil for none.
func (r *render) percent(format string, args []Value, named map[string]Value) (Value, error) {
	return r.formatted(format, args, named, false)
}

// formatted is percent. mapping: args is one value with items, not a tuple, which
// Python does not miss when the format does not use it.
func (r *render) formatted(format string, args []Value, named map[string]Value, mapping bool) (Value, error) {
	var b strings.Builder
	next := 0
	for {
		at := strings.IndexByte(format, '%')
		if at < 0 {
			b.WriteString(format)
			break
		}
		b.WriteString(format[:at])
		spec, n := parseConversion(format[at+1:])
		format = format[at+1+n:]
		switch {
		case spec.verb == 0:
			return undefined, refuse("formats with an incomplete format")
		case spec.verb == '%':
			b.WriteByte('%')
			continue
		}
		v, ok := named[spec.name]
		if spec.name == "" {
			if ok = next < len(args); ok {
				v = args[next]
			}
			next++
		}
		if !ok && mapping && named == nil {
			return undefined, &Unsupported{"% of a list, which may be a tuple"}
		}
		if !ok {
			return undefined, refuse("formats too few arguments")
		}
		s, err := r.convert(spec, v)
		if err != nil {
			return undefined, err
		}
		if err := r.meter.room(b.Len() + len(s)); err != nil {
			return undefined, err
		}
		b.WriteString(s)
	}
	if next < len(args) && named == nil && !mapping {
		return undefined, refuse("formats too many arguments")
	}
	return r.made(b.String())
}

// conversion is one % of a format.
type conversion struct {
	name             string
	minus, zero      bool
	width, precision int // precision -1 = none
	verb             byte
	other            bool // flags that are not read here
}

// parseConversion reads what follows a %, and its length.
func parseConversion(s string) (c conversion, n int) {
	c.precision = -1
	if strings.HasPrefix(s, "(") {
		end := strings.IndexByte(s, ')')
		if end < 0 {
			return c, len(s)
		}
		c.name, n = s[1:end], end+1
	}
	for ; n < len(s); n++ {
		switch s[n] {
		case '-':
			c.minus = true
			continue
		case '0':
			c.zero = true
			continue
		case '+', ' ', '#':
			c.other = true
			continue
		}
		break
	}
	digits := func() int {
		from := n
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		v, err := strconv.Atoi(s[from:n])
		if err != nil && n > from {
			c.other = true
		}
		return v
	}
	c.width = digits()
	if n < len(s) && s[n] == '.' {
		n++
		c.precision = digits()
	}
	if n < len(s) {
		c.verb = s[n]
		n++
	}
	return c, n
}

// convert formats one value.
func (r *render) convert(c conversion, v Value) (s string, err error) {
	k := kindOf(v)
	if c.other {
		return "", &Unsupported{"this form of %"}
	}
	switch c.verb {
	case 's':
		s, err = r.str(v)
		if c.precision >= 0 {
			s = s[:byteAt(s, c.precision)]
		}
		c.zero = false
	case 'd', 'i':
		switch {
		case k == kFloat && v.AsFloat() >= -0x1p63 && v.AsFloat() < 0x1p63:
			s = strconv.FormatInt(int64(v.AsFloat()), 10)
		case k == kInt, k == kBool:
			s = strconv.FormatInt(integral(v), 10)
		case k == kBig:
			s = bigDigits(v)
		default:
			return "", typeError("%d", k)
		}
		if c.precision >= 0 {
			return "", &Unsupported{"this form of %"}
		}
	case 'r':
		p := printer{r: r}
		err = p.repr(v, 0)
		s, c.zero = p.b.String(), false
		if c.precision >= 0 {
			s = s[:byteAt(s, c.precision)]
		}
	case 'c':
		s, err = character(v)
		c.zero = false
	case 'x', 'X', 'o':
		if k != kInt && k != kBool {
			return "", typeError("%"+string(c.verb), k)
		}
		s = strconv.FormatInt(integral(v), map[byte]int{'x': 16, 'X': 16, 'o': 8}[c.verb])
		if c.verb == 'X' {
			s = strings.ToUpper(s)
		}
		if c.precision >= 0 {
			return "", &Unsupported{"this form of %"}
		}
	case 'f', 'F':
		if !k.number() {
			return "", typeError("%f", k)
		}
		if c.precision < 0 {
			c.precision = 6
		}
		if err := r.meter.room(c.precision); err != nil {
			return "", err
		}
		f := real(v)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			if s = floatRepr(f); c.verb == 'F' {
				s = strings.ToUpper(s)
			}
			break
		}
		s = strconv.FormatFloat(f, 'f', c.precision, 64)
	default:
		return "", &Unsupported{"this form of %"}
	}
	if err != nil {
		return "", err
	}
	pad := c.width - utf8.RuneCountInString(s)
	if pad <= 0 {
		return s, nil
	}
	if err := r.meter.text(pad); err != nil {
		return "", err
	}
	switch {
	case c.minus:
		return s + strings.Repeat(" ", pad), nil
	case c.zero && strings.HasPrefix(s, "-"):
		return "-" + strings.Repeat("0", pad) + s[1:], nil
	case c.zero:
		return strings.Repeat("0", pad) + s, nil
	}
	return strings.Repeat(" ", pad) + s, nil
}

// character is %c: a code point, or a str of one character.
func character(v Value) (string, error) {
	switch k := kindOf(v); k {
	case kInt, kBool:
		n := integral(v)
		if n < 0 || n > unicode.MaxRune {
			return "", refuse("makes a character of what is no code point")
		}
		if !utf8.ValidRune(rune(n)) {
			return "", &Unsupported{"a lone surrogate"}
		}
		return string(rune(n)), nil
	case kString:
		if s := v.AsString(); utf8.RuneCountInString(s) == 1 {
			return s, nil
		}
		return "", refuse("makes a character of several")
	default:
		return "", typeError("%c", k)
	}
}
