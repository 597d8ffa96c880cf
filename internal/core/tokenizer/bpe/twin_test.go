package bpe

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/tokenizer/split"
)

// naive is BPE as its definition reads: look at all pairs, merge the leftmost of the
// lowest rank, start again.
func naive(s *Spec, piece string) []uint32 {
	if s.IgnoreMerges {
		if id, ok := s.Vocab.Find([]byte(piece)); ok && piece != "" {
			return []uint32{id}
		}
	}
	var ids []uint32
	for i := 0; i < len(piece); {
		_, n := utf8.DecodeRuneInString(piece[i:])
		if !s.Chars {
			n = 1
		}
		id, ok := s.Vocab.Find([]byte(piece[i : i+n]))
		if s.Chars && !ok || !s.Chars {
			for _, b := range []byte(piece[i : i+n]) {
				ids = append(ids, s.Bytes[b])
			}
		} else {
			ids = append(ids, id)
		}
		i += n
	}
	type rule struct{ rank, product uint32 }
	rules := map[[2]uint32]rule{}
	s.pairs(func(rank int, m Merge) {
		k := [2]uint32{m.Left, m.Right}
		if _, ok := rules[k]; !ok {
			rules[k] = rule{uint32(rank), m.Product}
		}
	})
	for {
		best, at := rule{None, 0}, -1
		for i := 0; i+1 < len(ids); i++ {
			if r, ok := rules[[2]uint32{ids[i], ids[i+1]}]; ok && r.rank < best.rank {
				best, at = r, i
			}
		}
		if at < 0 {
			return ids
		}
		ids = slices.Replace(ids, at, at+2, best.product)
	}
}

// letters are few, so that merges meet: ASCII, two and three bytes that share their
// first ones, four bytes.
var letters = []string{"a", "b", "c", " ", "é", "è", "的", "皃", "皀", "是", "昰", "，", "😀", "😁"}

// randomSpec makes a vocabulary of random merges of bytes or characters.
func randomSpec(t *testing.T, r *rand.Rand, chars, ranked bool) *Spec {
	t.Helper()
	s := &Spec{Vocab: NewVocab(1000), Chars: chars, Unknown: None}
	add := func(b []byte) uint32 {
		id := uint32(s.Vocab.Len())
		if err := s.Vocab.Add(id, b); err != nil {
			t.Fatal(err)
		}
		return id
	}
	var parts [][]byte
	for b := range 256 {
		s.Bytes[b] = uint32(s.Vocab.Len())
		if chars { // byte tokens are no text
			add(nil)
		} else {
			add([]byte{byte(b)})
		}
	}
	if chars {
		for _, l := range letters {
			if len(l) > 1 && r.IntN(8) == 0 { // has no entry
				continue
			}
			add([]byte(l))
			parts = append(parts, []byte(l))
		}
	} else {
		for _, b := range []byte(strings.Join(letters, "")) {
			parts = append(parts, []byte{b})
		}
	}
	s.Vocab.Seal()
	seen := map[[2]string]bool{}
	for range 10 + r.IntN(300) {
		left, right := parts[r.IntN(len(parts))], parts[r.IntN(len(parts))]
		if r.IntN(3) > 0 && !chars { // mostly whole letters come to be
			l := letters[r.IntN(len(letters))]
			k := 1 + r.IntN(len(l))
			if k == len(l) {
				continue
			}
			left, right = []byte(l[:k]), []byte(l[k:])
			if r.IntN(6) == 0 { // some are broken by a blank (see apart.go)
				left, right = []byte(" "), []byte(l[:k])
			}
		}
		product := slices.Concat(left, right)
		k := [2]string{string(left), string(right)}
		_, ok1 := s.Vocab.Find(left)
		_, ok2 := s.Vocab.Find(right)
		if len(product) > 20 || seen[k] || !ok1 || !ok2 {
			continue
		}
		seen[k] = true
		id, ok := s.Vocab.Find(product)
		if !ok {
			id = add(product)
			s.Vocab.Seal()
			s.Ranked = append(s.Ranked, id)
			s.Ties = append(s.Ties, len(s.Ties) > 0 && r.IntN(4) == 0)
			parts = append(parts, product)
		}
		l, _ := s.Vocab.Find(left)
		q, _ := s.Vocab.Find(right)
		s.Merges = append(s.Merges, Merge{l, q, id})
	}
	switch r.IntN(4) {
	case 0: // the merges of a product together, as in files made of ranks
		slices.SortStableFunc(s.Merges, func(a, b Merge) int { return cmp.Compare(a.Product, b.Product) })
	case 1, 2: // ranks in another order than the ids
		r.Shuffle(len(s.Merges), func(i, j int) { s.Merges[i], s.Merges[j] = s.Merges[j], s.Merges[i] })
		r.Shuffle(len(s.Ranked), func(i, j int) { s.Ranked[i], s.Ranked[j] = s.Ranked[j], s.Ranked[i] })
	}
	if ranked {
		s.Merges = nil
		if !chars { // ranks of bytes do not tie
			s.Ties = nil
		}
	} else {
		s.Ranked, s.Ties = nil, nil
	}
	s.IgnoreMerges = !chars && r.IntN(3) == 0
	return s
}

// TestTwin holds tables and maps against the definition, over random vocabularies:
// what the comments of chars.go and segments.go prove is tried on cases that real
// vocabularies may not have.
func TestTwin(t *testing.T) {
	for seed := range uint64(160) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := randomSpec(t, r, seed%2 == 1, seed%4 >= 2)
		m, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		p, sc := NewPlain(s), NewScratch()
		for range 60 {
			var b strings.Builder
			if r.IntN(3) == 0 {
				b.WriteByte(' ')
			}
			for range 1 + r.IntN([]int{4, 12, 40, 150}[r.IntN(4)]) {
				b.WriteString(letters[r.IntN(len(letters))])
			}
			text := b.String()
			want := naive(s, text)
			for range 2 { // new, then from the caches
				if got := m.AppendPiece(nil, text, sc); !slices.Equal(got, want) {
					t.Fatalf("vocabulary %d, tables: %+q\n got %v\nwant %v", seed, text, got, want)
				}
			}
			if got, err := p.AppendPiece(t.Context(), nil, text); err != nil || !slices.Equal(got, want) {
				t.Fatalf("vocabulary %d, maps: %+q\n got %v\nwant %v", seed, text, got, want)
			}
			if s.Chars { // cut before blanks, and with a prefix
				sp := &split.BeforeSpaces{Keep: InnerBlanks(s.Vocab)}
				if got := m.AppendText(nil, text, sp, sc); !slices.Equal(got, want) {
					t.Fatalf("vocabulary %d, cut: %+q\n got %v\nwant %v", seed, text, got, want)
				}
				if got, want := m.AppendPrefixed(nil, " ", text, sp, sc), naive(s, " "+text); !slices.Equal(got, want) {
					t.Fatalf("vocabulary %d, prefixed: %+q\n got %v\nwant %v", seed, text, got, want)
				}
			}
		}
	}
}

// specOf makes a vocabulary of the bytes and of these merges.
func specOf(t *testing.T, merges ...[2]string) *Spec {
	t.Helper()
	s := &Spec{Vocab: NewVocab(300), Unknown: None}
	add := func(text string) uint32 {
		id := uint32(s.Vocab.Len())
		if err := s.Vocab.Add(id, []byte(text)); err != nil {
			t.Fatal(err)
		}
		s.Vocab.Seal()
		return id
	}
	for b := range 256 {
		s.Bytes[b] = add(string([]byte{byte(b)}))
	}
	for _, m := range merges {
		left, ok1 := s.Vocab.Find([]byte(m[0]))
		right, ok2 := s.Vocab.Find([]byte(m[1]))
		if !ok1 || !ok2 {
			t.Fatalf("%q", m)
		}
		s.Merges = append(s.Merges, Merge{left, right, add(m[0] + m[1])})
	}
	return s
}

// TestTwinInside: where merges are ignored, an entry is one id as a piece and may be
// several inside one. What the cache knows of either is not taken for the other.
func TestTwinInside(t *testing.T) {
	s := specOf(t, [][2]string{
		{"\xe7", "\x9a"}, {"\xe7\x9a", "\x84"}, {"\xe6", "\x98"}, {"\xe6\x98", "\xaf"},
		{"的", "是"}, {"是", "的"}, {"是的", "的"},
		{"的", "是的的"}, // never comes to be: 的是 is merged first
	}...)
	s.IgnoreMerges = true
	m, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	const entry, inside = "的是的的", "c的是的的, that is all"
	for _, texts := range [][]string{{inside, entry, inside}, {entry, inside, entry}} {
		sc := NewScratch()
		for _, text := range texts {
			if got, want := m.AppendPiece(nil, text, sc), naive(s, text); !slices.Equal(got, want) {
				t.Errorf("%q: got %v, want %v", text, got, want)
			}
		}
	}
}

// TestTwinBehindBlank: a blank and the first byte of a character are an entry. Whether
// that keeps the character from becoming whole is a matter of when its own bytes merge.
func TestTwinBehindBlank(t *testing.T) {
	first, blank := [2]string{"\xe7", "\x9a"}, [2]string{" ", "\xe7"}
	for _, merges := range [][][2]string{{first, blank}, {blank, first}} {
		merges = append(merges, [][2]string{
			{"\xe7\x9a", "\x84"}, {"\xe6", "\x98"}, {"\xe6\x98", "\xaf"}, {"的", "是"}, {"\x9a", "\x84"}, {"\x84", "\xe6"},
		}...)
		s := specOf(t, merges...)
		m, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{" 的是", " 的", " 的是的是", " 是的", " 的a"} {
			if got, want := m.AppendPiece(nil, text, NewScratch()), naive(s, text); !slices.Equal(got, want) {
				t.Errorf("%q with %q first: got %v, want %v", text, merges[0], got, want)
			}
		}
	}
}

// TestPlainOnly: what the tables cannot hold is refused, with the reason.
func TestPlainOnly(t *testing.T) {
	s := randomSpec(t, rand.New(rand.NewPCG(1, 1)), false, false)
	s.Bytes['x'] = None
	if _, err := New(s); !errors.Is(err, ErrPlain) || !strings.Contains(err.Error(), "0x78") {
		t.Error(err)
	}
	s = randomSpec(t, rand.New(rand.NewPCG(1, 1)), true, false)
	s.IgnoreMerges = true
	if _, err := New(s); !errors.Is(err, ErrPlain) {
		t.Error(err)
	}
}

func FuzzTwin(f *testing.F) {
	f.Add(uint64(1), "的是aé😀")
	f.Add(uint64(2), "\xff\xe7\x9a")
	f.Fuzz(func(t *testing.T, seed uint64, text string) {
		s := randomSpec(t, rand.New(rand.NewPCG(seed, 7)), seed%2 == 1, seed%4 >= 2)
		m, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		got := m.AppendPiece(nil, text, NewScratch()) // no panic, whatever the bytes
		if len(text) > 300 || !utf8.ValidString(text) {
			return
		}
		if want := naive(s, text); !slices.Equal(got, want) {
			t.Fatalf("%+q\n got %v\nwant %v", text, got, want)
		}
	})
}
