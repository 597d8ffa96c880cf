package split

import "github.com/eppctl/eppctl/internal/core/tokenizer/unitab"

// o200k is the family of
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
type o200k struct {
	digits      int
	contraction bool
	slash       bool // [\r\n/]* behind punctuation, else [\r\n]*
	han         bool // [\p{Han}]+ comes first, and Han is no part of other words
}

const (
	upperLike = unitab.Upper | unitab.Caseless | unitab.Mark
	lowerLike = unitab.Lower | unitab.Caseless | unitab.Mark
)

func (f o200k) next(s string, i int) int {
	if f.han {
		if j := hanRun(s, i); j > i {
			return j
		}
	}
	c, n := unitab.At(s, i)
	if end := f.word(s, i, c, n); end > 0 {
		if f.contraction && end < len(s) && s[end] == '\'' {
			end += contraction(s, end)
		}
		return end
	}
	if c&unitab.Number != 0 {
		return numbers(s, i, f.digits)
	}
	j := i
	if s[i] == ' ' {
		j++
	}
	if j < len(s) {
		const out = unitab.Space | letter | unitab.Number
		if d, _ := unitab.At(s, j); d&out == 0 {
			j = newlines(s, runOut(s, j, out))
			for f.slash && j < len(s) && s[j] == '/' {
				j = newlines(s, j+1)
			}
			return j
		}
	}
	return blanks(s, i)
}

// word matches the two word forms, each first with and then without the one
// character before it; that order shows when the character is a mark. 0 is no match.
func (f o200k) word(s string, i int, c unitab.Class, n int) int {
	lead := c&(letter|unitab.Number) == 0 && !isNewline(s[i])
	var upper int // where the second form ends behind a lead
	if lead {
		var lower int
		if lower, upper = f.body(s, i+n); lower > 0 {
			return lower
		}
	}
	if c&(letter|unitab.Mark) != 0 {
		lower, alone := f.body(s, i)
		switch {
		case lower > 0:
			return lower
		case upper == 0:
			return alone
		}
	}
	return upper
}

// body matches (upper-like)*(lower-like)+ from i on and, in case that fails,
// (upper-like)+. The sets overlap: when no lower-like character stands behind the
// first run, it gives back what follows its own last one.
func (f o200k) body(s string, i int) (lower, upper int) {
	j := i
	for j < len(s) {
		if !f.han && isIdeograph(s, j) {
			j += 3
			lower = j
			continue
		}
		c, n := unitab.At(s, j)
		if c&upperLike == 0 || f.han && isHan(s, j) {
			break
		}
		j += n
		if c&lowerLike != 0 {
			lower = j
		}
	}
	if k := f.lower(s, j); k > j {
		return k, 0
	}
	if lower == 0 && j > i {
		upper = j
	}
	return lower, upper
}

func (f o200k) lower(s string, i int) int {
	if !f.han {
		return run(s, i, lowerLike)
	}
	for i < len(s) && !isHan(s, i) {
		c, n := unitab.At(s, i)
		if c&lowerLike == 0 {
			break
		}
		i += n
	}
	return i
}
