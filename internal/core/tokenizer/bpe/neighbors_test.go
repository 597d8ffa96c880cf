package bpe

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestNeighbors: the rows hold the pairs of characters that stand side by side in
// entries, and no others.
func TestNeighbors(t *testing.T) {
	held := 0
	for seed := range uint64(40) {
		s := randomSpec(t, rand.New(rand.NewPCG(seed, 17)), seed%2 == 0, false)
		m, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range letters {
			for _, b := range letters {
				left, _ := utf8.DecodeRuneInString(a)
				right, _ := utf8.DecodeRuneInString(b)
				if left >= plane || right >= plane || left|right < utf8.RuneSelf {
					continue
				}
				want := false
				for id := range uint32(s.Vocab.Len()) {
					want = want || strings.Contains(string(s.Vocab.Bytes(id)), a+b)
				}
				if want {
					held++
				}
				if got := m.chars.paired(uint32(left), uint32(right)); got != want {
					t.Fatalf("vocabulary %d: %q: %v, want %v", seed, a+b, got, want)
				}
			}
		}
	}
	if held == 0 {
		t.Error("no pair is in an entry")
	}
}

// TestNeighborsOfOne: a character before all others has a row as long as that.
func TestNeighborsOfOne(t *testing.T) {
	s := specOf(t)
	const from, to = 0x4E00, 0x9FFF
	for r := rune(from); r < to; r++ {
		if err := s.Vocab.Add(uint32(s.Vocab.Len()), []byte("的"+string(r))); err != nil {
			t.Fatal(err)
		}
	}
	s.Vocab.Seal()
	m, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	for r := rune(from - 100); r < to+100; r++ {
		if got, want := m.chars.paired('的', uint32(r)), from <= r && r < to; got != want {
			t.Fatalf("%q: %v", "的"+string(r), got)
		}
		if m.chars.paired(uint32(r), '的') && r != '的' {
			t.Fatalf("%q", string(r)+"的")
		}
	}
}
