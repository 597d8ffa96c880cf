package jinja2

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/ardanlabs/jinja"
)

// maxJSONDepth bounds nesting. Python's own reader ends at about 1000 levels,
// and nothing that deep can be printed here.
const maxJSONDepth = maxNesting

// ParseJSON reads one JSON value as Python's json.loads does: keys keep their
// order, of a key that comes twice the last value stands at the first place, 1.0
// stays a float, integers have any size, and a float out of range is infinite.
//
// The error is an *Unsupported for what Python takes and this does not (NaN, a
// lone surrogate, nesting), a *Refused for what is no JSON.
func ParseJSON(raw []byte) (Value, error) {
	// A bytes.Buffer is read in place.
	d := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	v, err := readJSON(d, 0)
	if err == nil {
		if _, end := d.ReadToken(); end != io.EOF {
			err = errNotJSON
		}
	}
	if err == errNotJSON && bytes.ContainsAny(raw, "NI") { // NaN, Infinity: JSON for Python
		return undefined, &Unsupported{"NaN or Infinity in JSON"}
	}
	return v, err
}

var errNotJSON error = &Refused{What: "is given what is no JSON"}

func readJSON(d *jsontext.Decoder, depth int) (Value, error) {
	if depth > maxJSONDepth {
		return undefined, &Unsupported{"JSON nested deeper than " + strconv.Itoa(maxJSONDepth)}
	}
	switch d.PeekKind() {
	case 'n', 't', 'f':
		tok, err := d.ReadToken()
		switch {
		case err != nil:
			return undefined, errNotJSON
		case tok.Kind() == 'n':
			return none, nil
		}
		return Bool(tok.Kind() == 't'), nil
	case '"':
		raw, err := d.ReadValue()
		if err != nil {
			return undefined, errNotJSON
		}
		s, err := readString(raw)
		return String(s), err
	case '0':
		raw, err := d.ReadValue()
		if err != nil {
			return undefined, errNotJSON
		}
		return readNumber(string(raw))
	case '[':
		return readList(d, depth)
	case '{':
		return readDict(d, depth)
	}
	return undefined, errNotJSON
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

func readList(d *jsontext.Decoder, depth int) (Value, error) {
	if _, err := d.ReadToken(); err != nil {
		return undefined, errNotJSON
	}
	var items []Value
	for d.PeekKind() != ']' {
		v, err := readJSON(d, depth+1)
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

func readDict(d *jsontext.Decoder, depth int) (Value, error) {
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
		v, err := readJSON(d, depth+1)
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
