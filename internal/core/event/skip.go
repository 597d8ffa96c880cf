package event

import (
	"errors"

	"github.com/tinylib/msgp/msgp"
)

// maxDepth bounds nesting. Real batches nest 5 deep (batch, events, event,
// extra_keys, block, image).
const maxDepth = 16

// Structural errors. Behind one of these the next value cannot be found, so
// they end the batch.
var (
	errShort = errors.New("truncated, or a count beyond the remaining bytes")
	errDepth = errors.New("nested too deep")
	errByte  = errors.New("invalid msgpack byte")
)

// skip returns what follows the next value. depth is how deep b lies already.
// The sockets have no authentication: a header may claim 2^32 elements, so no
// count is believed that the bytes left could not hold.
func skip(b []byte, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, errDepth
	}
	if n := shortText(b); n > 0 { // keys, tags, media
		if n > len(b) {
			return nil, errShort
		}
		return b[n:], nil
	}
	var n int
	switch t := msgp.NextType(b); t {
	case msgp.ArrayType, msgp.MapType:
		var err error
		if n, b, err = readHeader(b, t); err != nil {
			return nil, err
		}
	case msgp.InvalidType:
		if len(b) == 0 {
			return nil, errShort
		}
		return nil, errByte
	default:
		rest, err := msgp.Skip(b)
		if err != nil {
			return nil, errShort
		}
		return rest, nil
	}
	// Token ids and hashes are most of a payload.
	for b, n = skipInts(b, n); n > 0; b, n = skipInts(b, n-1) {
		var err error
		if b, err = skip(b, depth+1); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// readHeader reads an array or map header and returns the number of values
// that follow (two per map entry), which the rest can hold.
func readHeader(b []byte, t msgp.Type) (n int, rest []byte, err error) {
	var count uint32
	if t == msgp.MapType {
		count, rest, err = msgp.ReadMapHeaderBytes(b)
		n = 2 * int(count)
	} else {
		count, rest, err = msgp.ReadArrayHeaderBytes(b)
		n = int(count)
	}
	if err != nil || n > len(rest) {
		return 0, nil, errShort
	}
	return n, rest, nil
}

const msgpackNil = 0xc0

// shortText is the length of a string of up to 31 bytes with its header, whose
// first byte says it all; 0 = another value.
func shortText(b []byte) int {
	if len(b) == 0 || b[0]>>5 != 0b101 {
		return 0
	}
	return 1 + int(b[0]&0x1f)
}

// skipInts steps over up to n leading integers and nils, as long as each is sure
// to be whole, and returns how many values are left.
func skipInts(b []byte, n int) (rest []byte, left int) {
	i := 0
	for ; n > 0 && i+9 <= len(b); n-- {
		switch c := b[i]; {
		case c == 0xcd && n >= 4 && fourWords(b, i): // most token ids
			i += 12
			n -= 3 // and one more, as for the others
		case c == 0xcd:
			i += 3
		case c == 0xce:
			i += 5
		case c == 0xcf, c == 0xd3:
			i += 9
		case c < 0x80, c >= 0xe0, c == msgpackNil: // fixint, and what most extra keys are
			i++
		case c == 0xcc, c == 0xd0:
			i += 2
		case c == 0xd1:
			i += 3
		case c == 0xd2:
			i += 5
		default:
			return b[i:], n
		}
	}
	return b[i:], n
}

// isInt reports whether b starts with an integer.
func isInt(b []byte) bool {
	t := msgp.NextType(b)
	return t == msgp.IntType || t == msgp.UintType
}
