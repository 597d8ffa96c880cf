package split

import (
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/tokenizer/unitab"
)

// deepseek is a chain of three Splits, each on the pieces of the one before; what a
// pattern does not match stays a piece:
//
//	\p{N}{1,3}
//	[一-龥぀-ゟ゠-ヿ]+
//	[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// So the third sees stretches without numbers that are all in the second's set or
// all outside. Both borders are a property of single characters, and each function
// here takes the side it is on.
type deepseek struct{}

// side is which stretch a position belongs to.
type side uint8

const (
	outside side = iota
	inside       // the set of the second Split
	number
)

const (
	wordClass  = letter | unitab.Mark
	punctClass = unitab.Punct | unitab.Symbol
)

// at returns the classes, the length and the side of the character at s[i].
func (deepseek) at(s string, i int) (unitab.Class, int, side) {
	c, n := unitab.At(s, i)
	if c&unitab.Number != 0 {
		return c, n, number
	}
	if n == 3 && s[i] >= 0xE3 && s[i] <= 0xE9 {
		r := uint(s[i]&15)<<12 | uint(s[i+1]&63)<<6 | uint(s[i+2]&63)
		if r >= 0x4E00 && r <= 0x9FA5 || r >= 0x3040 && r <= 0x30FF {
			return c, n, inside
		}
	}
	return c, n, outside
}

// isCommon reports whether s[i] starts one of U+4E00 to U+9F7F, which all are of
// category Lo and in the set of the second Split: all but 38 of its ideographs.
func isCommon(s string, i int) bool {
	return i+2 < len(s) && firstTwo(s, i)-0xE4B8 < 0xE9BE-0xE4B8
}

func (d deepseek) next(s string, i int) int {
	if isCommon(s, i) {
		return d.run(s, i+3, wordClass, inside)
	}
	c, n, on := d.at(s, i)
	switch {
	case on == number:
		return numbers(s, i, 3)
	case on == outside && isCommon(s, i+n):
		return i + n // the last character of its stretch, whatever it is
	}
	if j := d.match(s, i, c, n, on); j > i {
		return j
	}
	for i += n; i < len(s); i += n { // what no alternative matches stays together
		var now side
		if c, n, now = d.at(s, i); now != on || d.match(s, i, c, n, on) > i {
			break
		}
	}
	return i
}

// match is the third pattern at s[i], where a character of n bytes with classes c is; i
// if it does not match.
func (d deepseek) match(s string, i int, c unitab.Class, n int, on side) int {
	if isPunct(s[i]) && i+1 < len(s) && isLetter(s[i+1]) {
		j := i + 2
		for j < len(s) && isLetter(s[j]) {
			j++
		}
		return j
	}
	if c&(letter|punctClass) == 0 && !isNewline(s[i]) {
		if j := d.run(s, i+n, wordClass, on); j > i+n {
			return j
		}
	}
	if c&wordClass != 0 {
		return d.run(s, i+n, wordClass, on)
	}
	if k := d.punct(s, i, c, n, on); k > i {
		if on == outside {
			k = newlines(s, k)
		}
		return k
	}
	if c&unitab.Space == 0 {
		return i
	}
	end := d.run(s, i, unitab.Space, on)
	if end < len(s) {
		if _, _, next := d.at(s, end); next != on {
			return blanks(s[:end], i) // the stretch ends here
		}
	}
	return blanks(s, i)
}

// punct is " ?[\p{P}\p{S}]+" at s[i]; i if it does not match.
func (d deepseek) punct(s string, i int, c unitab.Class, n int, on side) int {
	if c&punctClass != 0 {
		return d.run(s, i+n, punctClass, on)
	}
	if s[i] == ' ' {
		if k := d.run(s, i+1, punctClass, on); k > i+1 {
			return k
		}
	}
	return i
}

// run returns the end of the characters from i on that have one of the classes, none of
// them Number, and are on a side.
func (d deepseek) run(s string, i int, in unitab.Class, on side) int {
	for i < len(s) {
		if b := s[i]; b < utf8.RuneSelf {
			if on != outside || unitab.ASCII(b)&in == 0 {
				break
			}
			i++
			continue
		}
		if isCommon(s, i) {
			if on != inside || in&unitab.Caseless == 0 {
				break
			}
			i = ideographs(s, i)
			continue
		}
		if on == inside && !mayBeInside(s, i) {
			break
		}
		c, n, now := d.at(s, i)
		if c&in == 0 || now != on {
			break
		}
		i += n
	}
	return i
}

// mayBeInside reports whether s[i], which is not common, starts one of U+3040 to U+30FF
// or of U+9F80 to U+9FBF, as all do that are inside.
func mayBeInside(s string, i int) bool {
	if i+2 >= len(s) {
		return false
	}
	two := firstTwo(s, i)
	return two-0xE381 <= 0xE383-0xE381 || two == 0xE9BE
}

func isPunct(b byte) bool {
	return b >= '!' && b <= '/' || b >= ':' && b <= '@' || b >= '[' && b <= '`' || b >= '{' && b <= '~'
}

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }
