package parity_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
	"unicode"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/encode"
	"github.com/eppctl/eppctl/internal/core/parity"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
	"github.com/eppctl/eppctl/internal/testdata"
)

// TestProbes: the set is what it says it is: distinct requests that have ids.
func TestProbes(t *testing.T) {
	tok, err := native.LoadHuggingFace(testdata.Gunzip(t, filepath.Join(testdata.Dirs(t, "tokenizer")[0], "vocab", "qwen3.tokenizer.json.gz")))
	if err != nil {
		t.Fatal(err)
	}
	r, err := chat.New(chat.Files{ChatTemplate: []byte(testdata.Template(t, "npm-qwen3"))}, chat.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := encode.New(encode.Options{Tokenizer: tok, Chat: r})
	seen, all := map[string]bool{}, ""
	for _, p := range parity.Probes() {
		e, err := m.Encode(t.Context(), tokenizer.Text{Shape: p.Shape, Body: p.Body})
		if err != nil || len(e.IDs) < 3 || len(e.Doubts) > 0 || e.Cut >= 0 {
			t.Errorf("%s: %+v, %v", p.Name, e, err)
		}
		if seen[p.Name] || seen[string(p.Body)] {
			t.Errorf("%s is there twice", p.Name)
		}
		seen[p.Name], seen[string(p.Body)] = true, true
		var text struct{ Prompt string }
		if err := json.Unmarshal(p.Body, &text); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		all += text.Prompt
	}
	if n := len(parity.Probes()); n < 20 {
		t.Errorf("only %d probes", n)
	}
	for _, class := range []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Arabic, unicode.Hebrew, unicode.Devanagari, unicode.Thai, unicode.Mn, unicode.Nd, unicode.So, unicode.Zs, unicode.Cc, unicode.Cf} {
		if !slices.ContainsFunc([]rune(all), func(r rune) bool { return unicode.Is(class, r) }) {
			t.Errorf("no probe has a character of %v", class.R16[0])
		}
	}
}

func TestCompare(t *testing.T) {
	for _, tc := range []struct {
		ours, theirs []uint32
		at           int // -1 = equal
	}{
		{[]uint32{1, 2, 3}, []uint32{1, 2, 3}, -1},
		{nil, nil, -1},
		{[]uint32{1, 2, 3}, []uint32{1, 9, 3}, 1},
		{[]uint32{1, 2, 3}, []uint32{1, 2}, 2},
		{[]uint32{1, 2}, []uint32{1, 2, 3}, 2},
		{nil, []uint32{1}, 0},
		{[]uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, []uint32{0, 1, 2, 3, 4, 5, 77, 7, 8, 9, 10, 11}, 6},
	} {
		d := parity.Compare("x", tc.ours, tc.theirs)
		if (d == nil) != (tc.at < 0) || d != nil && d.At != tc.at {
			t.Errorf("%v, %v: %v", tc.ours, tc.theirs, d)
		}
	}
	d := parity.Compare("x", []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, []uint32{0, 1, 2, 3, 4, 5, 77})
	if want := `"x" differs from id 6 on: [3 4 5 6 7 8 9] here, [3 4 5 77] in the engine (from id 3)`; d.String() != want {
		t.Errorf("%s\nwant %s", d, want)
	}
}
