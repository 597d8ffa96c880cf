package workload

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/zeebo/xxh3"
)

// IX-90, the published check values of the workload: a program that agrees with them
// measures the same traffic.
func TestCheckValues(t *testing.T) {
	w := New(64)
	first := w.Conversations[0].Tokens[:8]
	if want := []uint32{91937, 65778, 75633, 124287, 80577, 86539, 5834, 59393}; !slices.Equal(first, want) {
		t.Errorf("root begins %v, want %v", first, want)
	}
	b, err := binary.Append(nil, binary.LittleEndian, w.Conversations[0].Tokens[:Size])
	if err != nil {
		t.Fatal(err)
	}
	if got := xxh3.Hash(b); got != 0xbccb4c2f75248d8f {
		t.Errorf("hash of the first block: %x", got)
	}

	byHolders := map[int]int{}
	var entries, someHost, allHost int
	for i := range w.Conversations {
		c := &w.Conversations[i]
		byHolders[len(c.Holders)]++
		entries += len(c.Holders)
		for _, h := range c.Holders {
			switch {
			case h.Host > h.GPU:
				allHost++
			case h.Host > 0:
				someHost++
			}
		}
	}
	members, stored, loads, events := map[member]bool{}, 0, 0, 0
	w.Stores(true, PerEvent, func(s *Stretch) {
		events++
		stored += s.To - s.From
		for _, a := range s.Names() {
			members[member{s.Rank, a}] = true
		}
	})
	for i := range w.Conversations { // what is told to an index without events
		for _, h := range w.Conversations[i].Holders {
			loads += max(h.GPU, h.Host)
		}
	}
	for _, v := range []struct {
		name      string
		got, want int
	}{
		{"conversations", len(w.Conversations), 1536},
		{"with one holder", byHolders[1], 1066},
		{"with two", byHolders[2], 348},
		{"with four", byHolders[4], 122},
		{"holder entries", entries, 2250},
		{"holders with their head on the host", someHost, 556},
		{"holders with everything on the host", allHost, 269},
		{"store events", events, 56729},
		{"stored blocks", stored, 1799887},
		{"distinct blocks", w.Distinct(true), 986640},
		{"memberships", len(members), 1392357},
		{"blocks of whole-prompt loads", loads, 1525781},
	} {
		if v.got != v.want {
			t.Errorf("%s: %d, want %d", v.name, v.got, v.want)
		}
	}
	for i, want := range map[int]Holder{0: {Rank: 3, GPU: 512}, 40: {Rank: 28, GPU: 2048}} {
		if got := w.Conversations[i].Holders[0]; got.Rank != want.Rank || got.GPU != want.GPU {
			t.Errorf("conversation %d is held by %+v, want %+v", i, got, want)
		}
	}
	if want := []int{891, 1250, 1031, 900, 1042}; !slices.Equal(w.Order[:5], want) {
		t.Errorf("order begins %v, want %v", w.Order[:5], want)
	}

	events, stored = 0, 0
	w.Stores(false, PerEvent, func(s *Stretch) {
		events++
		stored += s.To - s.From
	})
	if events != 45258 || stored != 1436673 {
		t.Errorf("GPU only: %d events of %d blocks, want 45258 of 1436673", events, stored)
	}
	if n := w.Distinct(false); n/1000 != 923 {
		t.Errorf("GPU only: %d distinct blocks, want 923 thousand", n)
	}
}

type member struct {
	rank  int
	alias uint64
}

func TestLargeFleetUsesEveryRank(t *testing.T) {
	w := New(1024)
	seen := map[int]bool{}
	for i := range w.Conversations {
		for _, h := range w.Conversations[i].Holders {
			if h.Rank < 0 || h.Rank >= 1024 {
				t.Fatalf("rank %d", h.Rank)
			}
			seen[h.Rank] = true
		}
	}
	if len(seen) < 800 {
		t.Errorf("only %d of 1,024 ranks hold anything", len(seen))
	}
}

func TestStoresAreChained(t *testing.T) {
	w := New(64)
	last := map[member]bool{}
	w.Stores(true, PerEvent, func(s *Stretch) {
		if parent, ok := s.Parent(); ok && !last[member{s.Rank, parent}] {
			t.Fatalf("rank %d, block %d: the parent was never stored", s.Rank, s.From)
		}
		if s.To <= s.From || s.To-s.From > PerEvent || len(s.Content()) != Size*len(s.Names()) {
			t.Fatalf("stretch [%d, %d)", s.From, s.To)
		}
		last[member{s.Rank, s.Aliases[s.To-1]}] = true
	})
}
