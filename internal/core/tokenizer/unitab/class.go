// Package unitab holds Unicode tables that never change: the classes of Unicode
// 16.0, the normal forms of Unicode 9.0, and what normalisers ask, by the versions
// that answer there: what the tokenizers of the engines were built with. The standard
// library's tables differ, and differ again with each Go release, so that text would
// get other token ids. scripts/unitab.sh makes the tables.
package unitab

import (
	"slices"
	"unicode/utf8"
)

// Class is a set of the classes that split patterns ask for. Each character has
// at most one of the first seven.
type Class = uint8

// The classes. Category Lt counts as upper case, as it does in every pattern.
const (
	Lower    Class = 1 << iota // Ll
	Upper                      // Lu, Lt
	Caseless                   // Lm, Lo
	Mark                       // M
	Number                     // N
	Punct                      // P
	Symbol                     // S
	Space                      // White_Space

	Letter = Lower | Upper | Caseless
)

// Of returns the classes of a character.
func Of(r rune) Class {
	if uint32(r) > utf8.MaxRune {
		return 0
	}
	return classPages[classIndex[r>>7]][r&127]
}

// ASCII returns the classes of a byte below 0x80.
func ASCII(b byte) Class { return classPages[0][b&127] }

// At returns the classes of the character at s[i] and its length in bytes. s is
// valid UTF-8.
func At(s string, i int) (Class, int) {
	b := s[i]
	if b < utf8.RuneSelf {
		return classPages[0][b], 1
	}
	return wide(s, i)
}

func wide(s string, i int) (Class, int) {
	if b := s[i]; b >= 0xE0 && b < 0xF0 && i+2 < len(s) { // most of the world's letters
		r := uint(b&15)<<12 | uint(s[i+1]&63)<<6 | uint(s[i+2]&63)
		return classPages[classIndex[r>>7]][r&127], 3
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return classPages[classIndex[r>>7]][r&127], n
}

// Range is an inclusive range of characters.
type Range struct{ First, Last rune }

// Category returns the ranges of a general category ("Lu") or of a major class
// ("L"), of the script "Han", or of "White_Space". It reports false for a name that is
// not known.
func Category(name string) ([]Range, bool) {
	switch name {
	case "Han":
		return han, true
	case "White_Space":
		return space, true
	}
	if r, ok := categories[name]; ok {
		return r, true
	}
	var out []Range
	for _, minor := range minors {
		if name == minor[:1] {
			out = append(out, categories[minor]...)
		}
	}
	return out, out != nil
}

// minors are the general categories, in the order of the standard.
var minors = []string{
	"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po",
	"Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn",
}

// IsHan reports whether a character is of the Han script.
func IsHan(r rune) bool {
	if r < 0x2E80 {
		return false
	}
	if r >= 0x4E00 && r <= 0x9FFF {
		return true
	}
	return within(han, r)
}

// IsWord reports whether a character is one of a word: \w in the regular
// expressions of the engines' added tokens.
func IsWord(r rune) bool { return within(word, r) }

func within(ranges []Range, r rune) bool {
	_, ok := slices.BinarySearchFunc(ranges, r, func(x Range, r rune) int {
		switch {
		case x.Last < r:
			return -1
		case x.First > r:
			return 1
		}
		return 0
	})
	return ok
}

// Complement returns the characters that are in none of the ranges. Of the
// surrogates, which no text holds, it makes no difference.
func Complement(in []Range) []Range {
	in = slices.Clone(in)
	slices.SortFunc(in, func(a, b Range) int { return int(a.First - b.First) })
	var out []Range
	next := rune(0)
	for _, r := range in {
		if r.First > next {
			out = append(out, Range{next, r.First - 1})
		}
		next = max(next, r.Last+1)
	}
	if next <= utf8.MaxRune {
		out = append(out, Range{next, utf8.MaxRune})
	}
	return out
}
