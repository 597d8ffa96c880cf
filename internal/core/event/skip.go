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
	for ; n > 0; n-- {
		// Token ids and hashes are most of a payload: step over integers here.
		if w := intWidth(b); w > 0 {
			if len(b) < w {
				return nil, errShort
			}
			b = b[w:]
			continue
		}
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

// intWidth is the encoded size of the integer b starts with, 0 for anything
// else.
func intWidth(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	switch c := b[0]; {
	case c < 0x80 || c >= 0xe0: // fixint
		return 1
	case c == 0xcc || c == 0xd0:
		return 2
	case c == 0xcd || c == 0xd1:
		return 3
	case c == 0xce || c == 0xd2:
		return 5
	case c == 0xcf || c == 0xd3:
		return 9
	}
	return 0
}
