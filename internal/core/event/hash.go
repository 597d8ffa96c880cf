package event

import (
	"encoding/binary"

	"github.com/tinylib/msgp/msgp"
)

// readHash reads a block hash in any form an engine uses and reduces it to 64
// bits, so that one hash is one number whatever the form:
//
//	unsigned      as is
//	signed        its two's complement bits (SGLang: half of them are negative)
//	bin, n >= 8   the last 8 bytes, big-endian: vLLM's own integer form of a
//	              digest is its low 64 bits (vLLM 0.32.0 measured)
//	bin, n < 8    padded with zeros on the left
//
// Engines write an integer in its shortest form, so 100 comes as one byte.
func readHash(b []byte) (h uint64, rest []byte, ok bool) {
	if len(b) >= 9 && (b[0] == 0xcf || b[0] == 0xd3) { // 8 bytes, which nearly all need
		return binary.BigEndian.Uint64(b[1:]), b[9:], true
	}
	switch msgp.NextType(b) {
	case msgp.IntType:
		i, rest, err := msgp.ReadInt64Bytes(b)
		return uint64(i), rest, err == nil
	case msgp.UintType:
		u, rest, err := msgp.ReadUint64Bytes(b)
		return u, rest, err == nil
	case msgp.BinType:
		v, rest, err := msgp.ReadBytesZC(b)
		if err != nil {
			return 0, b, false
		}
		if len(v) >= 8 {
			return binary.BigEndian.Uint64(v[len(v)-8:]), rest, true
		}
		for _, c := range v {
			h = h<<8 | uint64(c)
		}
		return h, rest, true
	}
	return 0, b, false
}

// hashForm names the form of the next hash, for display.
func hashForm(b []byte) string {
	switch msgp.NextType(b) {
	case msgp.IntType, msgp.UintType:
		return "int"
	case msgp.BinType:
		switch n, _, _ := msgp.ReadBytesHeader(b); n {
		case 8:
			return "bin8"
		case 16:
			return "bin16"
		case 32:
			return "bin32"
		}
		return "bin"
	}
	return ""
}
