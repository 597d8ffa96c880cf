// Package unitab holds Unicode tables that never change: the classes of Unicode
// 16.0, the normal forms of Unicode 9.0, and what normalisers ask, by the versions
// that answer there: what the tokenizers of the engines were built with. The standard
// library's tables differ, and differ again with each Go release, so that text would
// get other token ids. scripts/unitab.sh makes the tables.
package unitab

import "unicode/utf8"

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
// valid UTF-8. A call of one function, since most of the world's letters have three bytes.
func At(s string, i int) (Class, int) {
	b := s[i]
	if b < utf8.RuneSelf {
		return classPages[0][b], 1
	}
	if b&0xF0 == 0xE0 && i+2 < len(s) {
		r := uint(b&15)<<12 | uint(s[i+1]&63)<<6 | uint(s[i+2]&63)
		return classPages[classIndex[r>>7]][r&127], 3
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return classPages[classIndex[r>>7]][r&127], n
}

var han = scripts["han"]

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
