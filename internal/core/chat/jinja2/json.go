package jinja2

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"io"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/ardanlabs/jinja"

	"github.com/eppctl/eppctl/internal/core/pyjson"
)

// maxJSONDepth bounds nesting. Python's own reader ends at about 1000 levels,
// and nothing that deep can be printed here.
const maxJSONDepth = maxNesting

// ParseJSON reads one JSON value as Python's json.loads does: keys keep their
// order, of a key that comes twice the last value stands at the first place, 1.0
// stays a float, integers have any size, a float out of range is infinite, and NaN,
// Infinity and -Infinity are floats.
//
// The error is an *Unsupported for what Python takes and this does not (a lone
// surrogate, nesting), a *Refused for what is no JSON.
func ParseJSON(raw []byte) (Value, error) {
	v, err := (&jsonReader{d: newDecoder(raw, true)}).whole()
	if err != errNotJSON {
		return v, err
	}
	numbers := pyjson.Numbers(raw)
	if numbers == nil {
		return undefined, err
	}
	return (&jsonReader{d: newDecoder(numbers, true), text: raw}).whole()
}

// ParseOrjson reads one JSON value as orjson.loads does (3.13.0): as ParseJSON, but
// that numbers have to be finite, integers beyond 64 bits are floats, and a text that
// is not UTF-8 is refused.
func ParseOrjson(raw []byte) (Value, error) {
	return (&jsonReader{d: newDecoder(raw, false), finite: true}).whole()
}

// newDecoder reads raw in place; broken allows text that is not UTF-8.
func newDecoder(raw []byte, broken bool) *jsontext.Decoder {
	// A bytes.Buffer is read in place.
	return jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(broken))
}

var errNotJSON error = &Refused{What: "is given what is no JSON"}

// jsonReader makes values of a text.
type jsonReader struct {
	d *jsontext.Decoder
	// text is what the text said before its constants became numbers; nil = it has none.
	text   []byte
	finite bool // numbers are read as orjson reads them
}

// whole reads a text that is one value.
func (r *jsonReader) whole() (Value, error) {
	v, err := r.value(0)
	if err == nil {
		if _, end := r.d.ReadToken(); end != io.EOF {
			err = errNotJSON
		}
	}
	return v, err
}

func (r *jsonReader) value(depth int) (Value, error) {
	if depth > maxJSONDepth {
		return undefined, &Unsupported{"JSON nested deeper than " + strconv.Itoa(maxJSONDepth)}
	}
	switch r.d.PeekKind() {
	case 'n', 't', 'f':
		tok, err := r.d.ReadToken()
		switch {
		case err != nil:
			return undefined, errNotJSON
		case tok.Kind() == 'n':
			return none, nil
		}
		return Bool(tok.Kind() == 't'), nil
	case '"':
		raw, err := r.d.ReadValue()
		if err != nil {
			return undefined, errNotJSON
		}
		s, err := readString(raw)
		return String(s), err
	case '0':
		raw, err := r.d.ReadValue()
		if err != nil {
			return undefined, errNotJSON
		}
		if r.text != nil && pyjson.IsNaN(r.text, r.d.InputOffset()-int64(len(raw))) {
			return Float(math.NaN()), nil
		}
		v, err := readNumber(string(raw))
		if r.finite && err == nil {
			return orjsonNumber(v)
		}
		return v, err
	case '[':
		return r.list(depth)
	case '{':
		return r.dict(depth)
	}
	return undefined, errNotJSON
}

// orjsonNumber is what orjson makes of a number that Python's own reader makes v of.
func orjsonNumber(v Value) (Value, error) {
	if kindOf(v) == kBig {
		digits := bigDigits(v)
		if _, err := strconv.ParseUint(digits, 10, 64); err == nil {
			return v, nil
		}
		f, _ := strconv.ParseFloat(digits, 64) // out of range is infinite
		v = Float(f)
	}
	if kindOf(v) == kFloat && math.IsInf(v.AsFloat(), 0) {
		return undefined, errNotJSON
	}
	return v, nil
}

// readString unquotes a JSON string.
func readString(raw jsontext.Value) (string, error) {
	if in := raw[1 : len(raw)-1]; bytes.IndexByte(in, '\\') < 0 && utf8.Valid(in) {
		return string(in), nil
	}
	s, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return "", &Unsupported{"a lone surrogate in JSON"}
	}
	return string(s), nil
}

func readNumber(s string) (Value, error) {
	for i := range len(s) {
		if c := s[i]; c == '.' || c == 'e' || c == 'E' {
			f, err := strconv.ParseFloat(s, 64)
			if err != nil && !errors.Is(err, strconv.ErrRange) {
				return undefined, errNotJSON
			}
			return Float(f), nil // infinite when out of range
		}
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return Int(n), nil
	}
	if len(s) > maxDigits {
		return undefined, refuse("is given an integer of more than 4300 digits")
	}
	return jinja.NewString(bigMark + s), nil
}

func (r *jsonReader) list(depth int) (Value, error) {
	d := r.d
	if _, err := d.ReadToken(); err != nil {
		return undefined, errNotJSON
	}
	var items []Value
	for d.PeekKind() != ']' {
		v, err := r.value(depth + 1)
		if err != nil {
			return undefined, err
		}
		items = append(items, v)
	}
	if _, err := d.ReadToken(); err != nil {
		return undefined, errNotJSON
	}
	return List(items), nil
}

func (r *jsonReader) dict(depth int) (Value, error) {
	d := r.d
	if _, err := d.ReadToken(); err != nil {
		return undefined, errNotJSON
	}
	out := jinja.NewDict()
	dict := out.AsDict()
	for d.PeekKind() == '"' {
		raw, err := d.ReadValue()
		if err != nil {
			return undefined, errNotJSON
		}
		key, err := readString(raw)
		if err != nil {
			return undefined, err
		}
		v, err := r.value(depth + 1)
		if err != nil {
			return undefined, err
		}
		dict.Set(key, v)
	}
	if _, err := d.ReadToken(); err != nil {
		return undefined, errNotJSON
	}
	return out, nil
}
