package unitab

import "unicode/utf8"

// AppendLower appends a character in lower case to dst, whatever stands beside it: as
// Rust's char::to_lowercase does, by Unicode 17.0.
func AppendLower(dst []byte, r rune) []byte {
	if r < utf8.RuneSelf {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return append(dst, byte(r))
	}
	if to, ok := find(lower, r); ok {
		return append(dst, to...)
	}
	return utf8.AppendRune(dst, r)
}
