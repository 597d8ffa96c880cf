package syntax

import "unicode"

// IsSpace is str.isspace of Python for one character: Go's white space and the
// four information separators.
func IsSpace(r rune) bool {
	if r < 0x80 {
		return r == ' ' || r >= '\t' && r <= '\r' || r >= 0x1c && r <= 0x1f
	}
	return unicode.IsSpace(r)
}
