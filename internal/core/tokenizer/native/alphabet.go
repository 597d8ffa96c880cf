package native

import (
	"slices"
	"unicode/utf8"
)

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
	dst = slices.Grow(dst, len(entry))
	room := dst[len(dst) : len(dst)+len(entry)]
	n := 0
	for i := 0; i < len(entry); n++ {
		r := rune(entry[i])
		switch i++; {
		case r < utf8.RuneSelf:
		case i < len(entry) && r >= 0xC2 && r <= alphabetEnd>>6|0xC0 && entry[i]&0xC0 == 0x80:
			r = r&0x1F<<6 | rune(entry[i]&0x3F)
			i++
		default:
			return dst, false
		}
		if r >= alphabetEnd || alphabet[r] < 0 {
			return dst, false
		}
		room[n] = byte(alphabet[r])
	}
	return dst[:len(dst)+n], true
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
