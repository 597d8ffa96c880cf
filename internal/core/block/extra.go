package block

// Digests of extra content are made by the event decoder, which has no Hasher:
// they are not secret. A request never names extra content (its match ends
// there), so a crafted collision could only confuse blocks nobody looks up.

const (
	extraText = 0xC2B2AE3D27D4EB4F
	extraInt  = 0x165667B19E3779F9
)

// ExtraString adds a string, an image's identifier say, to a digest. A string
// and the same bytes give the same digest.
func ExtraString[S ~string | ~[]byte](e Extra, s S) Extra {
	x := fold(uint64(e)^extraText, uint64(len(s))^extraInt)
	for ; len(s) > 0; s = s[min(8, len(s)):] {
		x = fold(x^word(s), extraText)
	}
	return notZero(x)
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
