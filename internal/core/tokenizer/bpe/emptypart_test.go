package bpe

import (
	"slices"
	"strings"
	"testing"
)

// TestEmptyPart: a merge of nothing and an entry, of any length, is never due.
func TestEmptyPart(t *testing.T) {
	s := specOf(t, [2]string{"a", "b"})
	add := func(text string) uint32 {
		id := uint32(s.Vocab.Len())
		if err := s.Vocab.Add(id, []byte(text)); err != nil {
			t.Fatal(err)
		}
		s.Vocab.Seal()
		return id
	}
	none, long := add(""), add(strings.Repeat("x", shortMerge+1))
	s.Merges = append(s.Merges, Merge{none, long, long}, Merge{long, none, long})
	m, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	if !m.sym.direct {
		t.Error("the table of sure pairs was not built")
	}
	for _, text := range []string{"ab", "xab", strings.Repeat("x", 40)} {
		if got, want := m.AppendPiece(nil, text, NewScratch()), naive(s, text); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}
