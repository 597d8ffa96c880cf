package bpe

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestInOrder: due are those merges that the definition does last on the way from the
// bytes of their product to it, up to where it is said that it cannot be told. The entries
// are of two letters, so that equal ones meet.
func TestInOrder(t *testing.T) {
	due, late, short := 0, 0, 0
	for seed := range uint64(600) {
		s, after := splitsOf(t, rand.New(rand.NewPCG(seed, 12)))
		sym, merges, err := number(s)
		if err != nil {
			t.Fatal(err)
		}
		o := newInOrder(sym, s.Vocab, merges)
		all := int(o.until) == len(sym.token)
		if all {
			late += after
		} else {
			short++
		}
		var got, want []Merge
		for _, x := range o.due {
			if o.told(x.product) {
				got = append(got, Merge{sym.token[x.left], sym.token[x.right], sym.token[x.product]})
			}
		}
		for _, m := range s.Merges {
			text := string(s.Vocab.Bytes(m.Product))
			met := pairsMet(s, text)
			made := met[len(met)-1] == m && slices.Equal(naive(s, text), []uint32{m.Product})
			if made && (all || o.told(sym.of[m.Product])) {
				want = append(want, m)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("vocabulary %d: got %v, want %v", seed, got, want)
		}
		due += len(want)
	}
	if due == 0 || late == 0 || short == 0 {
		t.Errorf("%d merges are due, %d come before a part, of %d vocabularies not all could be told: nothing was tried", due, late, short)
	}
}

// splitsOf makes a random vocabulary of two letters, with some of the ways to part each
// entry in any order. after is how many merges come before one of their parts.
func splitsOf(t *testing.T, r *rand.Rand) (s *Spec, after int) {
	t.Helper()
	s = specOf(t)
	known := []string{"a", "b"}
	var entries []string
	for range 2 + r.IntN(30) {
		text := known[r.IntN(len(known))] + known[r.IntN(len(known))]
		if slices.Contains(known, text) || len(text) > 12 {
			continue
		}
		if err := s.Vocab.Add(uint32(s.Vocab.Len()), []byte(text)); err != nil {
			t.Fatal(err)
		}
		known, entries = append(known, text), append(entries, text)
	}
	s.Vocab.Seal()
	for i, text := range entries {
		id, _ := s.Vocab.Find([]byte(text))
		var ways []Merge
		for k := 1; k < len(text); k++ {
			left, ok1 := s.Vocab.Find([]byte(text[:k]))
			right, ok2 := s.Vocab.Find([]byte(text[k:]))
			late := slices.Contains(entries[i:], text[:k]) || slices.Contains(entries[i:], text[k:])
			if ok1 && ok2 && (!late || r.IntN(4) == 0) {
				ways = append(ways, Merge{left, right, id})
				if late {
					after++
				}
			}
		}
		r.Shuffle(len(ways), func(i, j int) { ways[i], ways[j] = ways[j], ways[i] })
		s.Merges = append(s.Merges, ways[:1+r.IntN(len(ways))]...)
	}
	return s, after
}

// TestNotInOrder: what breaks the order of codes is seen, and nothing that is due is lost.
func TestNotInOrder(t *testing.T) {
	// abc is listed before the merge that it comes by.
	apart := specOf(t, [][2]string{{"b", "c"}, {"a", "b"}, {"ab", "c"}, {"abc", "d"}}...)
	a, _ := apart.Vocab.Find([]byte("a"))
	bc, _ := apart.Vocab.Find([]byte("bc"))
	abc, _ := apart.Vocab.Find([]byte("abc"))
	apart.Merges = append(apart.Merges, Merge{a, bc, abc})
	// A byte starts as an entry that others come to.
	entry := specOf(t, [][2]string{{"a", "b"}, {"a", "ab"}, {"ab", "b"}}...)
	entry.Bytes['x'], _ = entry.Vocab.Find([]byte("ab"))
	for _, s := range []*Spec{apart, entry} {
		sym, merges, err := number(s)
		if err != nil {
			t.Fatal(err)
		}
		if o := newInOrder(sym, s.Vocab, merges); o.until > 0 {
			t.Error("taken for merges in order")
		}
		m, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"abcd", "abc", "ab", "aab", "xb", "axb", "aabb"} {
			if got, want := m.AppendPiece(nil, text, NewScratch()), naive(s, text); !slices.Equal(got, want) {
				t.Errorf("%q: got %v, want %v", text, got, want)
			}
		}
	}
}
