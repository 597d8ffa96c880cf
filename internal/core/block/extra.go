package block

import (
	"crypto/sha256"
	"encoding/binary"
)

// Digests of extra content are made by the event decoder and by whoever reads a
// renderer's reply, who have no Hasher: they are not secret. Clients may choose names
// of images, and with an open multiplicative hash could choose one whose blocks pass
// for those of another's image. So a string goes through SHA-256 first: to meet a given
// digest of 64 bits takes 2^64 tries.

const (
	extraText = 0xC2B2AE3D27D4EB4F
	extraInt  = 0x165667B19E3779F9
)

// ExtraString adds a string, an image's identifier say, to a digest. A string
// and the same bytes give the same digest.
func ExtraString[S ~string | ~[]byte](e Extra, s S) Extra {
	var few [128]byte // longer than a hash in hex, for which nothing is allocated
	sum := sha256.Sum256(append(few[:0], s...))
	return notZero(fold(uint64(e)^extraText, binary.LittleEndian.Uint64(sum[:])^extraInt))
}

// ExtraInt adds a number, an offset say, to a digest.
func ExtraInt(e Extra, v int64) Extra {
	return notZero(fold(fold(uint64(e)^extraInt, uint64(v)^extraText)^extraInt, extraText))
}

// notZero keeps the value that means "nothing" free.
func notZero(x uint64) Extra {
	if x == 0 {
		return 1
	}
	return Extra(x)
}
