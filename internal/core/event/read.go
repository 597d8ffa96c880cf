package event

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/tinylib/msgp/msgp"
)

// readInt reads an integer of any width, signed or not.
func readInt(b []byte) (int64, bool) {
	switch msgp.NextType(b) {
	case msgp.IntType, msgp.UintType:
		i, _, err := msgp.ReadInt64Bytes(b)
		return i, err == nil
	}
	return 0, false
}

// readText reads a string without copying it.
func readText(b []byte) ([]byte, bool) {
	if msgp.NextType(b) != msgp.StrType {
		return nil, false
	}
	s, _, err := msgp.ReadStringZC(b)
	return s, err == nil
}

// readToken reads one element of token_ids.
func readToken(b []byte) (id uint32, rest []byte, reason string) {
	// Most of every payload passes here. An id is written in its shortest form;
	// the simulator uses 4 bytes throughout.
	if len(b) >= 5 {
		switch c := b[0]; {
		case c < 0x80:
			return uint32(c), b[1:], ""
		case c == 0xcc:
			return uint32(b[1]), b[2:], ""
		case c == 0xcd:
			return uint32(binary.BigEndian.Uint16(b[1:])), b[3:], ""
		case c == 0xce:
			return binary.BigEndian.Uint32(b[1:]), b[5:], ""
		}
	}
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
