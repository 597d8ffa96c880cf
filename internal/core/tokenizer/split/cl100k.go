package split

import "github.com/eppctl/eppctl/internal/core/tokenizer/unitab"

// cl100k is the family of
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
type cl100k struct {
	digits int          // most numbers in a piece
	word   unitab.Class // what a word is made of: letters, in later patterns marks too
	tail   bool         // \s++$ comes first among the blanks: those that end the text are one piece
}

func (f cl100k) next(s string, i int) int {
	if isIdeograph(s, i) {
		return run(s, i+3, f.word)
	}
	c, n := unitab.At(s, i)
	if s[i] == '\'' {
		if k := contraction(s, i); k > 0 {
			return i + k
		}
	}
	if c&f.word != 0 && c&letter != 0 {
		return run(s, i+n, f.word)
	}
	if c&unitab.Number != 0 {
		return numbers(s, i, f.digits)
	}
	j := i + n
	if !isNewline(s[i]) && j < len(s) { // one character before a word
		if d, m := unitab.At(s, j); d&f.word != 0 {
			return run(s, j+m, f.word)
		}
	}
	if c&f.word != 0 { // a mark alone
		return j
	}
	out := unitab.Space | letter | unitab.Number | f.word
	if s[i] != ' ' {
		j = i
	}
	if j < len(s) {
		if d, _ := unitab.At(s, j); d&out == 0 {
			return newlines(s, runOut(s, j, out))
		}
	}
	if f.tail {
		if e := run(s, i, unitab.Space); e == len(s) {
			return e
		}
	}
	return blanks(s, i)
}
