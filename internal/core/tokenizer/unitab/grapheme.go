package unitab

import "unicode/utf8"

// breakClass is what the borders of grapheme clusters ask of a character (UAX #29).
type breakClass uint8

// The order is that of scripts/unitab.
const (
	anyBreak breakClass = iota
	breakCR
	breakLF
	breakControl
	breakExtend
	breakZWJ
	breakRegional
	breakPrepend
	breakSpacing
	breakL
	breakV
	breakT
	breakLV
	breakLVT
	breakConsonant // InCB=Consonant
	breakPictographic

	breakMask  breakClass = 0x0F
	incbExtend breakClass = 0x10 // more bits: InCB of what is between consonants
	incbLinker breakClass = 0x20
)

func breakOf(r rune) breakClass { return breakClass(breakPages[breakIndex[r>>7]][r&127]) }

// Grapheme returns the length in bytes of the extended grapheme cluster that s begins
// with, by Unicode 17.0; s is not empty.
func Grapheme(s string) int {
	r, n := utf8.DecodeRuneInString(s)
	if n == len(s) || r < utf8.RuneSelf && s[1] < utf8.RuneSelf && r != '\r' {
		return n
	}
	var g cluster
	g.add(breakOf(r))
	for n < len(s) {
		r, size := utf8.DecodeRuneInString(s[n:])
		c := breakOf(r)
		if g.ends(c & breakMask) {
			break
		}
		g.add(c)
		n += size
	}
	return n
}

// cluster is what the rules ask of the characters so far.
type cluster struct {
	last      breakClass
	regionals int
	// conjunct is 1 behind a consonant, 2 behind one and a linker, with nothing else
	// than linkers and extenders in between (GB9c).
	conjunct uint8
	// emoji is 1 behind a pictograph and extenders, 2 behind the joiner then (GB11).
	emoji uint8
}

func (g *cluster) add(c breakClass) {
	in := c & breakMask
	switch {
	case in == breakConsonant:
		g.conjunct = 1
	case c&incbLinker != 0:
		if g.conjunct > 0 {
			g.conjunct = 2
		}
	case c&incbExtend == 0:
		g.conjunct = 0
	}
	switch {
	case in == breakPictographic:
		g.emoji = 1
	case in == breakZWJ && g.emoji == 1:
		g.emoji = 2
	case in != breakExtend || g.emoji != 1:
		g.emoji = 0
	}
	if in == breakRegional {
		g.regionals++
	} else {
		g.regionals = 0
	}
	g.last = in
}

// ends reports whether the cluster ends before a character of class c.
func (g *cluster) ends(c breakClass) bool {
	switch {
	case g.last == breakCR && c == breakLF: // GB3
		return false
	case g.last == breakCR || g.last == breakLF || g.last == breakControl: // GB4
		return true
	case c == breakCR || c == breakLF || c == breakControl: // GB5
		return true
	case g.last == breakL && (c == breakL || c == breakV || c == breakLV || c == breakLVT): // GB6
		return false
	case (g.last == breakLV || g.last == breakV) && (c == breakV || c == breakT): // GB7
		return false
	case (g.last == breakLVT || g.last == breakT) && c == breakT: // GB8
		return false
	case c == breakExtend || c == breakZWJ || c == breakSpacing || g.last == breakPrepend: // GB9, GB9a, GB9b
		return false
	case c == breakConsonant && g.conjunct == 2: // GB9c
		return false
	case c == breakPictographic && g.emoji == 2: // GB11
		return false
	case c == breakRegional && g.last == breakRegional: // GB12, GB13
		return g.regionals%2 == 0
	}
	return true
}
