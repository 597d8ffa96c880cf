package split

import "github.com/eppctl/eppctl/internal/core/tokenizer/unitab"

// gpt2 is
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
type gpt2 struct{}

func (gpt2) next(s string, i int) int {
	if s[i] == '\'' {
		if k := contraction(s, i); k > 0 && isLowerASCII(s[i+1:i+k]) {
			return i + k
		}
	}
	j := i
	if s[i] == ' ' {
		j++
	}
	if j < len(s) {
		switch c, _ := unitab.At(s, j); {
		case c&letter != 0:
			return run(s, j, letter)
		case c&unitab.Number != 0:
			return run(s, j, unitab.Number)
		case c&unitab.Space == 0:
			return runOut(s, j, unitab.Space|letter|unitab.Number)
		}
	}
	last := i
	for j = i; j < len(s); {
		c, n := unitab.At(s, j)
		if c&unitab.Space == 0 {
			break
		}
		last = j
		j += n
	}
	if j == len(s) || last == i {
		return j
	}
	return last
}

func isLowerASCII(s string) bool {
	for i := range len(s) {
		if s[i] < 'a' || s[i] > 'z' {
			return false
		}
	}
	return true
}
