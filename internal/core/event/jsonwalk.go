package event

import (
	"bytes"
	"encoding/json/jsontext"
	"math"
)

// jsonOptions: engines write Python's json; to look for double names would cost
// a table per object.
var jsonOptions = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// jsonWalk goes over the members of one object or the elements of one array at
// a time. It parses in place: what it returns are parts of the text, which stay
// valid as long as that does.
type jsonWalk struct {
	dec *jsontext.Decoder
	buf bytes.Buffer // jsontext reads this type without copying from it
	err error        // the first fault in the syntax
}

// open begins with text, which must be a value of the given kind; false when it
// is of another, or none.
func (w *jsonWalk) open(text []byte, kind jsontext.Kind) bool {
	w.buf = *bytes.NewBuffer(text)
	if w.dec == nil {
		w.dec = jsontext.NewDecoder(&w.buf, jsonOptions...)
	} else {
		w.dec.Reset(&w.buf, jsonOptions...)
	}
	if w.dec.PeekKind() != kind {
		return false
	}
	_, err := w.dec.ReadToken()
	w.note(err)
	return err == nil
}

// member returns the next member of the object, the name in its quotes.
func (w *jsonWalk) member() (name, value []byte, ok bool) {
	name, ok = w.element()
	if !ok {
		return nil, nil, false
	}
	value, ok = w.element()
	return name, value, ok
}

// element returns the next element of the array.
func (w *jsonWalk) element() (value []byte, ok bool) {
	switch w.dec.PeekKind() {
	case jsontext.KindEndArray, jsontext.KindEndObject:
		_, err := w.dec.ReadToken()
		w.note(err)
		return nil, false
	}
	value, err := w.dec.ReadValue()
	w.note(err)
	return value, err == nil
}

func (w *jsonWalk) note(err error) {
	if w.err == nil {
		w.err = err
	}
}

// jsonUint reads an unsigned integer of up to 64 bits, exactly.
func jsonUint(v []byte) (u uint64, ok bool) {
	for _, c := range v {
		if c < '0' || c > '9' || u > math.MaxUint64/10 {
			return 0, false
		}
		u *= 10
		if u > math.MaxUint64-uint64(c-'0') {
			return 0, false
		}
		u += uint64(c - '0')
	}
	return u, len(v) > 0
}

// jsonHash reads a block hash: unsigned, or signed with the same bits.
func jsonHash(v []byte) (h uint64, ok bool) {
	if len(v) == 0 || v[0] != '-' {
		return jsonUint(v)
	}
	h, ok = jsonUint(v[1:])
	return -h, ok && h <= 1<<63
}

// jsonInt reads an integer from 0 to limit.
func jsonInt(v []byte, limit int) (n int, ok bool) {
	u, ok := jsonUint(v)
	return int(min(u, uint64(limit))), ok && u <= uint64(limit)
}

// jsonText takes the quotes off a string. Escapes stay: it serves for names that
// have none.
func jsonText(v []byte) []byte {
	if len(v) >= 2 && v[0] == '"' {
		return v[1 : len(v)-1]
	}
	return nil
}

func jsonNull(v []byte) bool { return v == nil || v[0] == 'n' }
