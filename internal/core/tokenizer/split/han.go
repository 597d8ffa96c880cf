package split

import (
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/tokenizer/unitab"
)

// isHan reports whether the character at s[i] is of the Han script.
func isHan(s string, i int) bool {
	if s[i] < 0xE2 { // U+2E80 is the first
		return false
	}
	r, _ := utf8.DecodeRuneInString(s[i:])
	return unitab.IsHan(r)
}

func hanRun(s string, i int) int {
	for i < len(s) && isHan(s, i) {
		_, n := unitab.At(s, i)
		i += n
	}
	return i
}
