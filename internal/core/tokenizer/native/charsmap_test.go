package native_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
)

// mapOf is a charsmap of units and replacements.
func mapOf(texts string, units ...uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(4*len(units)))
	for _, u := range units {
		b = binary.LittleEndian.AppendUint32(b, u)
	}
	return append(b, texts...)
}

// unit is an element of a double array: the label of its edge, where its children
// are, and whether one of them is a value.
func unit(label byte, offset uint32, leaf bool) uint32 {
	u := uint32(label) | offset<<10
	if leaf {
		u |= 1 << 8
	}
	return u
}

// oneRule is a map of "a" to a value.
func oneRule(texts string, value uint32) []byte {
	units := make([]uint32, 0x100)
	units['a'] = unit('a', 'a'^'b', true) // its children begin at 'b'
	units['b'] = 1<<31 | value
	return mapOf(texts, units...)
}

// TestBrokenCharsMap: a map that a text could leave, or that names no replacement, is
// refused when the file is loaded.
func TestBrokenCharsMap(t *testing.T) {
	out := make([]uint32, 0x100)
	out['a'] = unit('a', 0x1000, false)
	leaf := make([]uint32, 0x100)
	leaf['a'] = unit('a', 0x1000, true)
	loop := make([]uint32, 0x100)
	loop['a'] = unit('a', 'a', false) // leads to itself: an entry without end
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"empty":              {nil, "0 bytes"},
		"short":              {[]byte{1, 2, 3}, "3 bytes"},
		"no trie":            {mapOf("a\x00"), "trie of 0 bytes"},
		"not whole units":    {[]byte{5, 0, 0, 0, 1, 2, 3, 4, 5}, "trie of 5 bytes"},
		"longer than it is":  {[]byte{255, 255, 255, 255, 0}, "trie of 4294967295 bytes"},
		"no block":           {mapOf("a\x00", 0, 0), "edge out of"},
		"edge":               {mapOf("a\x00", out...), "edge out of"},
		"value":              {mapOf("a\x00", leaf...), "value out of"},
		"not UTF-8":          {oneRule("\xff\x00", 0), "no UTF-8"},
		"value behind":       {oneRule("x\x00", 2), "no replacement"},
		"inside a character": {oneRule("é\x00", 1), "no replacement"},
		"4 MB":               {make([]byte, 4<<20+1), "more than 4194304"},
		"good":               {oneRule("é\x00", 0), ""},
		"no end":             {oneRule("é", 0), ""},
		"endless":            {mapOf("", loop...), "more than 254 bytes"},
	} {
		_, err := native.LoadHuggingFace(marshal(t, object{"normalizer": precompiled(c.b), "pre_tokenizer": byteLevel, "model": byteModel()}))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCharsMapGrows: a map may not make a text many times as long.
func TestCharsMapGrows(t *testing.T) {
	o := object{"normalizer": precompiled(oneRule(strings.Repeat("x", 1<<20), 0)), "pre_tokenizer": byteLevel, "model": byteModel()}
	tok := loadObject(t, o)
	if ids, err := tok.Encode(strings.Repeat("a", 1<<12), false); err == nil {
		t.Errorf("%d ids", len(ids))
	}
	if got, err := tok.Encode("xyz", false); err != nil || len(got) != 3 {
		t.Errorf("%v %v", got, err)
	}
}

// TestReplaceNothing: a Replace whose pattern matches between two characters is an
// error when it does.
func TestReplaceNothing(t *testing.T) {
	tok := loadObject(t, object{"normalizer": replaced(object{"Regex": `(?=x)`}, "_"), "pre_tokenizer": byteLevel, "model": byteModel()})
	if _, err := tok.Encode("axa", false); !errors.Is(err, native.ErrUnsupported) {
		t.Error(err)
	}
	got, err := tok.Encode("aya", false)
	plain, _ := loadObject(t, object{"pre_tokenizer": byteLevel, "model": byteModel()}).Encode("aya", false)
	if err != nil || !slices.Equal(got, plain) {
		t.Errorf("%v %v", got, err)
	}
}

// FuzzCharsMap: whatever the map and the text, there is an error or there are ids.
func FuzzCharsMap(f *testing.F) {
	f.Add(oneRule("é\x00", 0), "a\u0301a")
	f.Add(mapOf("x\x00", slices.Repeat([]uint32{unit('a', 0, true)}, 0x100)...), "aaa")
	f.Fuzz(func(t *testing.T, b []byte, text string) {
		tok, err := native.LoadHuggingFace(marshal(t, object{"normalizer": precompiled(b), "pre_tokenizer": meta("first", true), "model": charModel(true)}))
		if err != nil {
			return
		}
		text = strings.ToValidUTF8(text, "\ufffd")
		if _, err := tok.Encode(text, false); err != nil {
			t.Log(err)
		}
	})
}
