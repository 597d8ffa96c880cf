package event

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/tinylib/msgp/msgp"
)

// readInt reads an integer of any width, signed or not.
func readInt(b []byte) (int64, bool) {
	if len(b) > 0 && b[0] < 0x80 { // sizes and groups
		return int64(b[0]), true
	}
	switch msgp.NextType(b) {
	case msgp.IntType, msgp.UintType:
		i, _, err := msgp.ReadInt64Bytes(b)
		return i, err == nil
	}
	return 0, false
}

// readText reads a string without copying it.
func readText(b []byte) ([]byte, bool) {
	if n := shortText(b); n > 0 && n <= len(b) {
		return b[1:n], true
	}
	if msgp.NextType(b) != msgp.StrType {
		return nil, false
	}
	s, _, err := msgp.ReadStringZC(b)
	return s, err == nil
}

// appendIDs appends up to n leading token ids, for which dst has room, as long as
// each is an unsigned integer in its shortest form and sure to be whole, and
// returns how many elements are left. Most of every payload passes here; the
// simulator uses 4 bytes throughout.
func appendIDs(dst []uint32, b []byte, n int) (ids []uint32, rest []byte, left int) {
	i, k := 0, len(dst)
	ids = dst[:k+n]
	for k < len(ids) && i+5 <= len(b) {
		switch c := b[i]; {
		case c == 0xcd && k+4 <= len(ids) && fourWords(b, i): // the most of a vocabulary
			from, to := b[i:i+12], ids[k:k+4]
			to[0] = uint32(binary.BigEndian.Uint16(from[1:]))
			to[1] = uint32(binary.BigEndian.Uint16(from[4:]))
			to[2] = uint32(binary.BigEndian.Uint16(from[7:]))
			to[3] = uint32(binary.BigEndian.Uint16(from[10:]))
			i, k = i+12, k+4
			continue
		case c == 0xcd:
			ids[k] = uint32(binary.BigEndian.Uint16(b[i+1:]))
			i += 3
		case c == 0xce:
			ids[k] = binary.BigEndian.Uint32(b[i+1:])
			i += 5
		case c < 0x80:
			ids[k] = uint32(c)
			i++
		case c == 0xcc:
			ids[k] = uint32(b[i+1])
			i += 2
		default:
			return ids[:k], b[i:], len(ids) - k
		}
		k++
	}
	return ids[:k], b[i:], len(ids) - k
}

// fourWords reports whether four integers of 2 bytes begin at b[i].
func fourWords(b []byte, i int) bool {
	return i+12 <= len(b) && b[i] == 0xcd && b[i+3] == 0xcd && b[i+6] == 0xcd && b[i+9] == 0xcd
}

// readToken reads one element of token_ids.
func readToken(b []byte) (id uint32, rest []byte, reason string) {
	switch msgp.NextType(b) {
	case msgp.IntType, msgp.UintType:
		i, rest, err := msgp.ReadInt64Bytes(b)
		if err != nil || i < 0 || i > math.MaxUint32 {
			return 0, b, SkipTokenType
		}
		return uint32(i), rest, ""
	case msgp.ArrayType:
		return readPair(b)
	case msgp.StrType: // TensorRT-LLM puts the hash of an image among the ids
		return 0, b, SkipStringTokens
	}
	return 0, b, SkipTokenType
}

func equalFold(a, b string) bool { return len(a) == len(b) && strings.EqualFold(a, b) }
