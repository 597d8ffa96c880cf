package bpe

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestReachable: of the ways to part an entry the one is kept that its bytes come to, and
// none of an entry that they do not come to, whether its merges lie together or apart.
func TestReachable(t *testing.T) {
	s := specOf(t, [][2]string{{"t", "h"}, {"h", "e"}, {"th", "e"}, {"e", "n"}, {"th", "en"}}...)
	way := func(left, right string) Merge {
		l, ok1 := s.Vocab.Find([]byte(left))
		r, ok2 := s.Vocab.Find([]byte(right))
		p, ok3 := s.Vocab.Find([]byte(left + right))
		if !ok1 || !ok2 || !ok3 {
			t.Fatal(left, right)
		}
		return Merge{l, r, p}
	}
	together := append(slices.Insert(slices.Clone(s.Merges), 3, way("t", "he")), way("the", "n"))
	apart := append(s.Merges, way("the", "n"), way("t", "he"))
	for _, s.Merges = range [][]Merge{together, apart} {
		var got []string
		for _, m := range keptMerges(t, s) {
			got = append(got, string(s.Vocab.Bytes(m.Left))+"+"+string(s.Vocab.Bytes(m.Right)))
		}
		if want := []string{"t+h", "h+e", "th+e", "e+n", "the+n"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// TestReachablePairs: no pair that stands side by side in some text is left out.
func TestReachablePairs(t *testing.T) {
	met, dropped := 0, 0
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 11))
		s := randomSpec(t, r, false, seed%2 == 0)
		given := 0
		s.pairs(func(int, Merge) { given++ })
		kept := map[Merge]bool{}
		for _, m := range keptMerges(t, s) {
			kept[m] = true
		}
		dropped += given - len(kept)
		for range 200 {
			var b strings.Builder
			for range 1 + r.IntN(12) {
				b.WriteString(letters[r.IntN(len(letters))])
			}
			for _, m := range pairsMet(s, b.String()) {
				if met++; !kept[m] {
					t.Fatalf("vocabulary %d: %q+%q of %q is left out", seed, s.Vocab.Bytes(m.Left), s.Vocab.Bytes(m.Right), b.String())
				}
			}
		}
	}
	if met == 0 || dropped == 0 {
		t.Errorf("%d pairs met, %d left out: nothing was tried", met, dropped)
	}
}

// keptMerges are those that reachable keeps.
func keptMerges(t *testing.T, s *Spec) (kept []Merge) {
	t.Helper()
	sym, merges, err := number(s)
	if err != nil {
		t.Fatal(err)
	}
	_, reached, _ := reachable(sym, s.Vocab, merges, NewScratch())
	for _, x := range reached {
		kept = append(kept, Merge{sym.token[x.left], sym.token[x.right], sym.token[x.product]})
	}
	return kept
}

// pairsMet merges a text as the definition reads, and returns all pairs that stood side
// by side and could merge.
func pairsMet(s *Spec, text string) (met []Merge) {
	type rule struct {
		rank int
		m    Merge
	}
	rules := map[[2]uint32]rule{}
	s.pairs(func(rank int, m Merge) {
		if _, ok := rules[[2]uint32{m.Left, m.Right}]; !ok {
			rules[[2]uint32{m.Left, m.Right}] = rule{rank, m}
		}
	})
	var ids []uint32
	for _, b := range []byte(text) {
		ids = append(ids, s.Bytes[b])
	}
	for {
		at, best := -1, rule{}
		for i := 0; i+1 < len(ids); i++ {
			if r, ok := rules[[2]uint32{ids[i], ids[i+1]}]; ok {
				met = append(met, r.m)
				if at < 0 || r.rank < best.rank {
					at, best = i, r
				}
			}
		}
		if at < 0 {
			return met
		}
		ids = slices.Replace(ids, at, at+2, best.m.Product)
	}
}
