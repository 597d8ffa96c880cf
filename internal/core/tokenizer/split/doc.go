// Package split cuts text into the pieces that a tokenizer's model encodes one by
// one. The patterns of the common vocabularies have hand-written splitters, found by
// the text of the pattern; any other pattern goes through a regular expression with
// its Unicode classes written out from package unitab.
//
// All texts are valid UTF-8.
package split

import (
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/tokenizer/unitab"
)

// Splitter is a hand-written splitter. It is immutable; all methods may be called
// from any goroutine.
type Splitter struct {
	// Name says which family of patterns it is.
	Name string
	next func(s string, i int) int // end of the piece that starts at i < len(s)
	rule asciiRule
}

// Next returns the end of the piece of s that starts at byte i.
func (p *Splitter) Next(s string, i int) int { return p.next(s, i) }

// Ends is room for the ends of pieces.
type Ends [256]uint32

// blockPieces is the most pieces one block of 64 bytes can have.
const blockPieces = 64

// Fill puts the ends of the pieces from byte i of s on into ends and returns their
// number and where the last one ends. It stops at the end of s or when the room for
// another block is short.
func (p *Splitter) Fill(s string, i int, ends *Ends) (n, next int) {
	for i < len(s) && n <= len(ends)-blockPieces {
		if p.rule.on && s[i] < utf8.RuneSelf {
			if k, to := p.block(s, i, ends[n:]); k > 0 {
				n, i = n+k, to
				continue
			}
		}
		i = p.next(s, i)
		ends[n] = uint32(i)
		n++
	}
	return n, i
}

const letter = unitab.Letter

// run returns the end of the characters from i on that have one of the classes.
func run(s string, i int, in unitab.Class) int {
	for i < len(s) {
		if isIdeograph(s, i) && in&unitab.Caseless != 0 {
			i = ideographs(s, i+3)
			continue
		}
		c, n := unitab.At(s, i)
		if c&in == 0 {
			break
		}
		i += n
	}
	return i
}

// isIdeograph reports whether s[i] starts one of U+4E00 to U+9FFF, which all are of
// category Lo.
func isIdeograph(s string, i int) bool { return i+2 < len(s) && firstTwo(s, i)-0xE4B8 <= 0xE9BF-0xE4B8 }

// firstTwo is the first two bytes at s[i] as one number, which grows with the character.
// One comparison of it is never guessed wrong within Chinese, where one of each byte is:
// a tenth of the characters start with E4, without order.
func firstTwo(s string, i int) uint { return uint(s[i])<<8 | uint(s[i+1]) }

// runOut returns the end of the characters from i on that have none of the classes.
func runOut(s string, i int, out unitab.Class) int {
	for i < len(s) {
		c, n := unitab.At(s, i)
		if c&out != 0 {
			break
		}
		i += n
	}
	return i
}

// numbers returns the end of at most limit numbers from i on.
func numbers(s string, i, limit int) int {
	for ; limit > 0 && i < len(s); limit-- {
		c, n := unitab.At(s, i)
		if c&unitab.Number == 0 {
			break
		}
		i += n
	}
	return i
}

func isNewline(b byte) bool { return b == '\r' || b == '\n' }

func newlines(s string, i int) int {
	for i < len(s) && isNewline(s[i]) {
		i++
	}
	return i
}

// blanks is what ends the patterns: \s*[\r\n]+|\s+(?!\S)|\s+ at white space. A run
// ends behind its last CR or LF; without one its last character is left to the next
// piece, unless it is the only one or the text ends.
func blanks(s string, i int) int {
	last, newline, j := i, -1, i
	for j < len(s) {
		c, n := unitab.At(s, j)
		if c&unitab.Space == 0 {
			break
		}
		last = j
		j += n
		if isNewline(s[last]) {
			newline = j
		}
	}
	switch {
	case newline >= 0:
		return newline
	case j == len(s) || last == i:
		return j
	}
	return last
}

// contraction returns the length of (?i:'s|'t|'re|'ve|'m|'ll|'d) at s[i], which is
// an apostrophe, or 0. Without regard to case s is also U+017F.
func contraction(s string, i int) int {
	if i+1 >= len(s) {
		return 0
	}
	second := byte(0)
	if i+2 < len(s) {
		second = s[i+2]
	}
	switch s[i+1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if second|0x20 == 'e' {
			return 3
		}
	case 'l':
		if second|0x20 == 'l' {
			return 3
		}
	}
	if s[i+1] == 0xC5 && second == 0xBF {
		return 3
	}
	return 0
}
