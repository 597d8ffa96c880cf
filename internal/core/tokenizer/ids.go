package tokenizer

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"math"
	"slices"
)

// Errors of AppendIDs.
var (
	ErrNotIDs  = errors.New("not a list of token ids")
	ErrManyIDs = errors.New("too many token ids")
)

// AppendIDs appends the ids of a JSON array to dst, at most limit of them. Anything
// but one array of integers of 32 bits is ErrNotIDs: an engine may round 1.0 down
// to an id, but which does is not known.
func AppendIDs(dst []uint32, raw []byte, limit int) ([]uint32, error) {
	from, end := len(dst), len(raw)-1
	if end < 1 || raw[0] != '[' || raw[end] != ']' {
		return dst, ErrNotIDs
	}
	i := 1 + spaces(raw[1:])
	if i == end {
		return dst, nil
	}
	dst = slices.Grow(dst, min(bytes.Count(raw, []byte{','})+1, limit))
	for ; ; i++ { // each turn reads an id and the comma behind it; raw[end] stops both loops
		i += spaces(raw[i:])
		digit := uint64(raw[i] - '0') // wraps round for what is none
		if digit > 9 {
			return dst[:from], ErrNotIDs
		}
		id := digit
		for i++; ; i++ {
			if digit = uint64(raw[i] - '0'); digit > 9 {
				break
			}
			if id == 0 { // JSON has no leading zeros
				return dst[:from], ErrNotIDs
			}
			if id = id*10 + digit; id > math.MaxUint32 {
				return dst[:from], ErrNotIDs
			}
		}
		if len(dst)-from == limit {
			return dst[:from], ErrManyIDs
		}
		dst = append(dst, uint32(id))
		i += spaces(raw[i:])
		switch {
		case i == end:
			return dst, nil
		case raw[i] != ',':
			return dst[:from], ErrNotIDs
		}
	}
}

// TakeIDs reads the array of ids that d, inside an object, stands before, in one
// pass where ReadValue and AppendIDs take two: of a long prompt in ids that is most
// of the work of reading the body. When ok is false nothing was read, and the two
// may still give ids or an error. shift is what d's offsets lag behind from here on.
func TakeIDs(d *jsontext.Decoder, limit int) (ids []uint32, shift int64, ok bool) {
	ahead := d.UnreadBuffer() // with what separates the value from its name
	raw := ahead[spaces(ahead):]
	raw = bytes.TrimPrefix(raw, []byte{':'})
	raw = raw[spaces(raw):]
	n := bytes.IndexByte(raw, ']') + 1
	// What follows is copied. A body of many short arrays would copy it for each.
	if rest := len(raw) - n; n < rest {
		return nil, 0, false
	}
	ids, err := AppendIDs(nil, raw[:n], limit)
	if err != nil || len(ids) == 0 {
		return nil, 0, false
	}
	at := d.InputOffset() + int64(len(ahead)-len(raw)+n)
	return ids, at - goOn(d, raw[n:]), true
}

// goOn makes d, inside an object, stand behind a value that rest follows, and
// returns its offset there.
func goOn(d *jsontext.Decoder, rest []byte) int64 {
	const value = `{"":""` // a string: digits, '.' or 'e' in rest would go on a number
	d.Reset(bytes.NewBuffer(append([]byte(value), rest...)), lenient...)
	for range 3 {
		d.ReadToken() // our own, and well formed
	}
	return d.InputOffset()
}

// spaces counts the leading white space of JSON.
func spaces(b []byte) (n int) {
	for n < len(b) && (b[n] == ' ' || b[n] == '\n' || b[n] == '\t' || b[n] == '\r') {
		n++
	}
	return n
}
