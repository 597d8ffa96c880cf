package bpe

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestSure: each of the three conditions alone keeps a pair from being sure.
func TestSure(t *testing.T) {
	for _, x := range []struct {
		name   string
		merges [][2]string
		text   string
		want   []string
	}{
		{"nothing else", [][2]string{{"b", "c"}}, "abcd", []string{"a", "bc", "d"}},
		{"the left one goes later", [][2]string{{"b", "c"}, {"a", "b"}}, "abcd", []string{"a", "bc", "d"}},
		{"the left one goes first", [][2]string{{"a", "b"}, {"b", "c"}}, "abcd", []string{"ab", "c", "d"}},
		{"the right one goes first", [][2]string{{"c", "d"}, {"b", "c"}}, "abcd", []string{"a", "b", "cd"}},
		{"the left one may go to a longer symbol", [][2]string{{"x", "a"}, {"xa", "b"}, {"b", "c"}}, "abcd", []string{"a", "b", "c", "d"}},
		{"the right one may go to a longer symbol", [][2]string{{"d", "x"}, {"c", "dx"}, {"b", "c"}}, "abcd", []string{"a", "b", "c", "d"}},
		{"at the borders of the piece", [][2]string{{"x", "a"}, {"xa", "b"}, {"b", "c"}}, "bc", []string{"bc"}},
		{"overlapping ones of one rank", [][2]string{{"a", "a"}}, "aaa", []string{"a", "a", "a"}},
		{"two apart", [][2]string{{"a", "b"}, {"c", "d"}}, "abcd", []string{"ab", "cd"}},
	} {
		s := specOf(t, x.merges...)
		m, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		sc := NewScratch()
		var got []string
		for _, symbol := range sc.ids[:m.startBytes([]byte(x.text), sc)] {
			got = append(got, string(s.Vocab.Bytes(m.sym.token[symbol])))
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}

// TestSureProduct: a pair is not sure whose product has a part in a merge of lower rank,
// which would be due at once.
func TestSureProduct(t *testing.T) {
	s := specOf(t, [][2]string{{"a", "b"}, {"ab", "c"}, {"c", "d"}}...)
	s.Merges[0], s.Merges[1] = s.Merges[1], s.Merges[0]
	m, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	sc := NewScratch()
	if n := m.startBytes([]byte("ab"), sc); n != 2 {
		t.Errorf("%d symbols", n)
	}
	if got, want := m.AppendPiece(nil, "abcd", sc), naive(s, "abcd"); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestSureTwin: pieces of few letters, of which many are sure, come to what the
// definition says.
func TestSureTwin(t *testing.T) {
	sure := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 13))
		s := randomSpec(t, r, false, seed%2 == 0)
		m, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		sc := NewScratch()
		for range 300 {
			var b strings.Builder
			for range 2 + r.IntN(14) {
				b.WriteByte("abc "[r.IntN(4)])
			}
			text := b.String()
			sure += len(text) - m.startBytes([]byte(text), sc)
			if got, want := m.merge([]byte(text), sc, nil), naive(s, text); !s.IgnoreMerges && !slices.Equal(got, want) {
				t.Fatalf("vocabulary %d: %q\n got %v\nwant %v", seed, text, got, want)
			}
		}
	}
	if sure == 0 {
		t.Error("no pair was sure")
	}
}
