package view

import (
	"testing"

	"github.com/eppctl/eppctl/internal/core/block"
)

// TestSharers: requests in flight count for as much of a prompt as they begin with, on
// whichever pod, and not after their end.
func TestSharers(t *testing.T) {
	prompt := func(same, n int) *block.Prompt {
		p := &block.Prompt{Model: "m", Tokens: make([]uint32, n), Cut: -1}
		for i := same; i < n; i++ {
			p.Tokens[i] = uint32(1000 + same)
		}
		return p
	}
	l, asked := NewLedger(), prompt(2048, 2048)
	var placed []*Placement
	for i, same := range []int{2048, 1024, 1500, 500} {
		placed = append(placed, l.Place(somePod(1, 1), Work{Prompt: prompt(same, 3000+i), Tokens: 3000 + i, Rank: -1}, 0))
	}
	want := func(tokens, n int) {
		t.Helper()
		if got := l.Sharers(asked, tokens); got != n {
			t.Errorf("%d share %d tokens, want %d", got, tokens, n)
		}
	}
	want(2048, 1)
	want(2000, 1) // to the grain of a chunk: 1536
	want(1024, 3)
	want(1023, 3)
	want(511, 0) // no chunk
	want(1<<20, 1)
	placed[0].Move(somePod(2, 1), ms)
	want(2048, 1)
	placed[0].End(2 * ms)
	placed[0].End(3 * ms)
	placed[3].End(3 * ms)
	want(2048, 0)
	want(1024, 2)
	asked.Cut = 600 // the rest is not known
	want(2048, 2)
	asked.LoRA = "another namespace"
	want(1024, 0)
	placed[1].End(4 * ms)
	placed[2].End(4 * ms)
	for i := range l.sharers {
		if n := len(l.sharers[i].of); n != 0 {
			t.Errorf("shard %d keeps %d chunks of nobody", i, n)
		}
	}
	if n := testing.AllocsPerRun(100, func() { l.Sharers(asked, 2048) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
