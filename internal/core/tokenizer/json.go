package tokenizer

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"io"

	"github.com/eppctl/eppctl/internal/core/pyjson"
)

// NewDecoder reads JSON as an engine's Python does: duplicate keys are legal
// (the last wins) and invalid UTF-8 inside strings is no reason to refuse.
func NewDecoder(b []byte) *jsontext.Decoder {
	// A bytes.Buffer is read in place, any other reader is copied.
	return jsontext.NewDecoder(bytes.NewBuffer(b), lenient...)
}

var lenient = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// ErrNotObject is returned by Members for a value that is no object.
var ErrNotObject = errors.New("not a JSON object")

// Members reads the object that d stands before and calls f for each member.
// f must read exactly the member's value from d; name is valid until it does.
func Members(d *jsontext.Decoder, f func(name []byte) error) error {
	if d.PeekKind() != jsontext.KindBeginObject {
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		return ErrNotObject
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	var room [64]byte
	for d.PeekKind() == jsontext.KindString {
		raw, err := d.ReadValue()
		if err != nil {
			return err
		}
		name, escaped := raw[1:len(raw)-1], bytes.IndexByte(raw, '\\') >= 0
		if escaped {
			// The error only says that invalid UTF-8 was replaced.
			name, _ = jsontext.AppendUnquote(jsontext.Value(room[:0]), raw)
		}
		if err := f(name); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// Object reads a body that is one object and calls f for each member, as Members does.
// Where the body is no JSON for want of Python's constants (package pyjson), it is read
// once more with numbers in their place: f is called again from the first member on,
// and what the body says of a value stands at the same offsets. constants reports that.
func Object(body []byte, f func(d *jsontext.Decoder, name []byte) error) (constants bool, err error) {
	read := func(text []byte) error {
		d := NewDecoder(text)
		if err := Members(d, func(name []byte) error { return f(d, name) }); err != nil {
			return err
		}
		return End(d)
	}
	if err = read(body); err == nil {
		return false, nil
	}
	numbers := pyjson.Numbers(body)
	if numbers == nil {
		return false, err
	}
	return true, read(numbers)
}

// End reports an error unless only white space is left.
func End(d *jsontext.Decoder) error {
	switch _, err := d.ReadToken(); {
	case err == io.EOF:
		return nil
	case err != nil:
		return err
	}
	return errors.New("more than one JSON value")
}
