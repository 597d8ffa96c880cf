package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strconv"
)

// unicode17 is what unicode17.mjs prints: ranges with both ends, lower case by the
// number of the character.
type unicode17 struct {
	Lower        map[string][]rune
	Numeric      [][2]rune
	Breaks       map[string][][2]rune
	Conjunct     map[string][][2]rune
	Pictographic [][2]rune
}

func readUnicode17(file string) (u unicode17) {
	b, err := os.ReadFile(file)
	must(err)
	must(json.Unmarshal(b, &u))
	return u
}

// moved are characters whose category was another one in the old version that a
// library has: the age of a character does not tell that.
type moved map[rune]string

var (
	movedSince8 = moved{0x166D: "Po", 0x1734: "Mn", 0x1885: "Lo", 0x1886: "Lo", 0xA9BD: "Mc", 0x111C9: "Po", 0x1171E: "Mn"}
	movedSince9 = moved{0x1CF2: "Mc", 0x1CF3: "Mc", 0x111C9: "Po"}
)

// categoryAt is the category that a character had in a version.
func categoryAt(db []character, r rune, version float64, moves moved) string {
	if c, ok := moves[r]; ok {
		return c
	}
	if c := &db[r]; c.age > 0 && c.age <= version {
		return c.category
	}
	return "Cn"
}

// trait must agree with the constants of package unitab.
func trait(db []character, r rune) (v byte) {
	switch c := categoryAt(db, r, 8, movedSince8); {
	case c[0] == 'P':
		v = 1
	case c == "Cc" || c == "Cf" || c == "Co":
		v = 2
	case c == "Mn":
		v = 4
	}
	if categoryAt(db, r, 9, movedSince9)[0] == 'M' {
		v |= 8
	}
	return v
}

func writeTraits(b *bytes.Buffer, db []character, u unicode17) {
	t := make([]byte, runes)
	for r := range t {
		t[r] = trait(db, rune(r))
	}
	mark(t, u.Numeric, 16)
	writePages(b, "trait", t)
}

// mark adds bits to the characters of ranges.
func mark(t []byte, list [][2]rune, bits byte) {
	for _, x := range list {
		for r := x[0]; r <= x[1]; r++ {
			t[r] |= bits
		}
	}
}

// breaks are the classes of characters for the borders of grapheme clusters (UAX #29),
// in the order of the constants of package unitab. The last two are no values of the
// property itself: rules GB9c and GB11 ask for them.
var breaks = []string{"", "CR", "LF", "Control", "Extend", "ZWJ", "Regional_Indicator", "Prepend", "SpacingMark", "L", "V", "T", "LV", "LVT", "Consonant", "Pictographic"}

const incbExtend, incbLinker = 0x10, 0x20

func writeBreaks(b *bytes.Buffer, u unicode17) {
	t := make([]byte, runes)
	for i, name := range breaks {
		list := u.Breaks[name]
		switch name {
		case "Consonant":
			list = u.Conjunct[name]
		case "Pictographic":
			list = u.Pictographic
		}
		mark(t, list, byte(i))
	}
	mark(t, u.Conjunct["Extend"], incbExtend)
	mark(t, u.Conjunct["Linker"], incbLinker)
	writePages(b, "break", t)
}

func writeLower(b *bytes.Buffer, u unicode17) {
	number := func(s string) rune {
		n, err := strconv.Atoi(s)
		must(err)
		return rune(n)
	}
	all := map[rune]string{}
	for r, to := range u.Lower {
		all[number(r)] = string(to)
	}
	writeStrings(b, "lower", all)
}
