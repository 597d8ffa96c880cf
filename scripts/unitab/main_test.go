package main

import "testing"

// TestForms makes the tables of a database of four characters.
func TestForms(t *testing.T) {
	db := make([]character, runes)
	for i := range db {
		db[i].category = "Cn"
	}
	db['e'] = character{category: "Ll", age: 1.1}
	db[0x301] = character{category: "Mn", ccc: 230, age: 1.1}
	db['é'] = character{category: "Ll", decomp: []rune{'e', 0x301}, age: 1.1}
	db[0xFB01] = character{category: "Ll", compat: true, decomp: []rune{'é', 'e'}, age: 1.1}
	if got := expand(db, 0xFB01, true); got != "e\u0301e" {
		t.Errorf("%+q", got)
	}
	if got := expand(db, 0xFB01, false); got != "\uFB01" {
		t.Errorf("%+q", got)
	}
	flags := nfcFlags(db, map[rune]string{'é': "e\u0301"}, map[[2]rune]rune{{'e', 0x301}: 'é'})
	if flags['e'] != 0 || flags['é'] != 0 || flags[0x301] != 1 {
		t.Error("the mark alone is at risk")
	}
	if class(&db['é']) != 1 || class(&db[0x301]) != 8 || class(&character{category: "Zs", space: true}) != 128 {
		t.Error("classes")
	}
}
