package unigram

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var unknown = uint32(0)

func model(t testing.TB, r *rand.Rand) (*Model, []Piece) {
	t.Helper()
	pieces := []Piece{{Text: "<unk>"}}
	seen := map[string]bool{}
	for range 4 + r.IntN(20) {
		var b strings.Builder
		for range 1 + r.IntN(4) {
			b.WriteString([]string{"a", "b", "é", "中"}[r.IntN(4)])
		}
		if s := b.String(); !seen[s] {
			seen[s] = true
			pieces = append(pieces, Piece{Text: s, Score: -1 - 9*r.Float64()})
		}
	}
	m, err := New(pieces, &unknown, false)
	if err != nil {
		t.Fatal(err)
	}
	return m, pieces
}

// best tries every way to put s together and returns the highest score.
func best(pieces []Piece, missing float64, s string) float64 {
	if s == "" {
		return 0
	}
	_, n := utf8.DecodeRuneInString(s)
	top, alone := math.Inf(-1), false
	for _, p := range pieces[1:] {
		if strings.HasPrefix(s, p.Text) {
			alone = alone || len(p.Text) == n
			top = max(top, p.Score+best(pieces, missing, s[len(p.Text):]))
		}
	}
	if !alone {
		top = max(top, missing+best(pieces, missing, s[n:]))
	}
	return top
}

// TestBestWay holds the way found against all ways. That the ids are those of the
// engines is in native's TestComponents.
func TestBestWay(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		m, pieces := model(t, r)
		for range 40 {
			var b strings.Builder
			for range r.IntN(9) {
				b.WriteString([]string{"a", "b", "é", "中", "z"}[r.IntN(5)])
			}
			s := b.String()
			got, text := 0.0, ""
			for _, id := range appended(t, m, s) {
				got += pieces[id].Score
				text += pieces[id].Text
			}
			if strings.Contains(text, "<unk>") { // neighbours are one: their number is lost
				continue
			}
			if want := best(pieces, m.missing, s); text != s || math.Abs(got-want) > 1e-9 {
				t.Fatalf("%q: %q of %v, best is %v", s, text, got, want)
			}
		}
	}
}

func appended(t testing.TB, m *Model, s string) []uint32 {
	t.Helper()
	ids, err := m.Append(t.Context(), nil, s)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// TestTie: of ways of the same score the one whose last piece is the longest, as in
// Hugging Face tokenizers and sentencepiece.
func TestTie(t *testing.T) {
	m, err := New([]Piece{{Text: "<unk>", Score: 0}, {Text: "a", Score: -1}, {Text: "ab", Score: -2}, {Text: "bc", Score: -2}, {Text: "c", Score: -1}, {Text: "b", Score: -1}}, &unknown, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := appended(t, m, "abc"); !slices.Equal(got, []uint32{1, 3}) {
		t.Error(got)
	}
}

func TestUnknown(t *testing.T) {
	m, err := New([]Piece{{Text: "<unk>", Score: 0}, {Text: "a", Score: -1}}, &unknown, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := appended(t, m, "azéa"); !slices.Equal(got, []uint32{1, 0, 1}) {
		t.Error(got)
	}
	for _, c := range [][]Piece{nil, {{Text: "a", Score: 0}, {Text: "a", Score: 0}}} {
		if _, err := New(c, &unknown, false); err == nil {
			t.Errorf("%v", c)
		}
	}
	if _, err := New([]Piece{{Text: "a", Score: 0}}, nil, false); err == nil {
		t.Error("no unk_id")
	}
	if _, err := New([]Piece{{Text: "a", Score: 0}}, &unknown, true); err == nil {
		t.Error("no bytes")
	}
}

// counting is a context that counts how often it is looked at.
type counting struct {
	context.Context
	looks int
}

func (c *counting) Err() error {
	c.looks++
	return nil
}

// TestLooksByWork: the context is looked at as often where few characters take long as
// where many take no time.
func TestLooksByWork(t *testing.T) {
	const size = 1 << 11
	m, err := New([]Piece{{Text: "<unk>"}, {Text: strings.Repeat("a", size), Score: -1}}, &unknown, false)
	if err != nil {
		t.Fatal(err)
	}
	for letter, steps := range map[string]int{"a": size * size / 2, "b": size} {
		c := &counting{Context: t.Context()}
		if _, err := m.Append(c, nil, strings.Repeat(letter, size)); err != nil {
			t.Fatal(err)
		}
		if most := steps/stepsPerLook + 1; c.looks > most || c.looks < most*3/4-1 {
			t.Errorf("%q: %d looks in %d steps", letter, c.looks, steps)
		}
	}
}

// TestTooManyNodes: entries that would take gigabytes are refused.
func TestTooManyNodes(t *testing.T) {
	pieces := []Piece{{Text: "<unk>"}, {Text: strings.Repeat("a", maxNodes), Score: -1}}
	if _, err := New(pieces, &unknown, false); err == nil || !strings.Contains(err.Error(), "16777216") {
		t.Error(err)
	}
	if _, err := NewSentencePiece(pieces, unknown, nil); err == nil || !strings.Contains(err.Error(), "16777216") {
		t.Error(err)
	}
	pieces[1].Text = pieces[1].Text[:1000]
	if _, err := NewSentencePiece(pieces, unknown, nil); err != nil {
		t.Error(err)
	}
}

func FuzzAppend(f *testing.F) {
	f.Add(uint64(1), "abé中z")
	f.Add(uint64(2), "\xff\xe4")
	f.Fuzz(func(t *testing.T, seed uint64, s string) {
		m, _ := model(t, rand.New(rand.NewPCG(seed, 3)))
		if ids := appended(t, m, s); len(ids) > len(s) || len(ids) == 0 && s != "" {
			t.Fatalf("%d ids of %d bytes", len(ids), len(s))
		}
	})
}

// BenchmarkAppend encodes 180 English words, a piece each.
func BenchmarkAppend(b *testing.B) {
	var pieces []Piece
	for i, text := range strings.Fields("<unk> a b c d e f g h i j k l m n o p q r s t u v w x y z th he in er an re on at en nd ti es or te of ed is it al ar st to nt the and ing ion") {
		pieces = append(pieces, Piece{Text: text, Score: -float64(i) / 10})
	}
	m, err := New(pieces, &unknown, false)
	if err != nil {
		b.Fatal(err)
	}
	words := strings.Fields(strings.Repeat("the quick brown fox jumps over lazy dogs and ", 20))
	var out []uint32
	b.ReportAllocs()
	for b.Loop() {
		out = out[:0]
		for _, w := range words {
			out, _ = m.Append(context.Background(), out, w)
		}
	}
}
