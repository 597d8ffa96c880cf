package native

import "unicode/utf8"

// Byte-level vocabularies write each byte as a printable character: the printable
// ones of Latin-1 as themselves, the others as U+0100 and up in their order.
const alphabetEnd = 0x100 + 68

var alphabet = func() (t [alphabetEnd]int16) {
	for i := range t {
		t[i] = -1
	}
	next := 0x100
	for b := range 0x100 {
		if b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE {
			t[b] = int16(b)
			continue
		}
		t[next] = int16(b)
		next++
	}
	return t
}()

// appendBytes appends the bytes that an entry of a byte-level vocabulary stands for.
// ok is false if it has a character outside the alphabet: no text becomes it.
func appendBytes(dst, entry []byte) (out []byte, ok bool) {
	for i := 0; i < len(entry); {
		r, n := rune(entry[i]), 1
		if r >= utf8.RuneSelf {
			if r, n = utf8.DecodeRune(entry[i:]); r >= alphabetEnd {
				return dst, false
			}
		}
		b := alphabet[r]
		if b < 0 {
			return dst, false
		}
		dst = append(dst, byte(b))
		i += n
	}
	return dst, true
}

// written is how they write each byte.
var written = func() (t [256]rune) {
	for r, b := range alphabet {
		if b >= 0 {
			t[b] = rune(r)
		}
	}
	return t
}()
