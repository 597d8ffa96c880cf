package main

import (
	"bytes"
	"maps"
	"slices"
)

// scriptsMovedSince9 are characters that were of another script in Unicode 9.0.
var scriptsMovedSince9 = map[rune]string{0x0589: "Common", 0x061C: "Common", 0x0953: "Devanagari", 0x0954: "Devanagari"}

// scriptAt9 is the script that a character had in Unicode 9.0, "" for what was not
// assigned.
func scriptAt9(db []character, scripts map[string][]bool, r rune) string {
	if name, ok := scriptsMovedSince9[r]; ok {
		return name
	}
	if c := &db[r]; c.age == 0 || c.age > 9 {
		return ""
	}
	for name, set := range scripts {
		if set[r] {
			return name
		}
	}
	return ""
}

// writeScripts writes the numbers of scripts as the pre-tokenizer UnicodeScripts has
// them: Japanese is all of one script, and a blank is of any, like what is not assigned.
func writeScripts(b *bytes.Buffer, db []character, dir string) {
	scripts := sets(dir, "Scripts", func(s span) string { return s.Script })
	names := slices.Sorted(maps.Keys(scripts))
	number := func(name string) byte {
		if name == "Hiragana" || name == "Katakana" {
			name = "Han"
		}
		return byte(slices.Index(names, name) + 1) // 0: any
	}
	if len(names) > 0xFE {
		panic("more scripts than a byte holds")
	}
	t := make([]byte, runes)
	for r := range t {
		t[r] = number(scriptAt9(db, scripts, rune(r)))
	}
	t[0x30FC] = number("Han") // the mark of a long vowel
	t[' '] = 0
	writePages(b, "script", t)
}
