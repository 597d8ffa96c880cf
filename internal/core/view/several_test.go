package view

import (
	"testing"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/pod"
)

func numbered(from, n int) block.Prompt {
	p := block.Prompt{Tokens: make([]uint32, n), Cut: -1}
	for i := range p.Tokens {
		p.Tokens[i] = uint32(from + i)
	}
	return p
}

// The prompts of one request hold what they begin with alike once, and count as one
// that shares it.
func TestSeveralPromptsHoldWhatIsDistinct(t *testing.T) {
	l, p := NewLedger(), somePod(0, 1)
	first, other := numbered(0, 3*chunkTokens+5), numbered(1_000_000, chunkTokens+7)
	longer := numbered(0, 4*chunkTokens)
	r := l.Place(p, Work{Prompt: &first, Further: []block.Prompt{other, longer, first}, Tokens: 11*chunkTokens + 17, Rank: -1}, 0)
	if got, want := l.Load(p, 0).Held, int64(5*chunkTokens+17); got != want {
		t.Errorf("%d tokens held, want %d: four chunks of one beginning, one of another, and the rests", got, want)
	}
	for _, x := range []block.Prompt{first, other, longer} {
		if n := l.Sharers(&x, len(x.Tokens)); n != 1 {
			t.Errorf("%d requests share %d tokens", n, len(x.Tokens))
		}
	}
	r.Move(somePod(1, 1), ms)
	r.End(2 * ms)
	for _, p := range []*pod.Pod{p, somePod(1, 1)} {
		if n := l.Load(p, 2*ms).Held; n != 0 {
			t.Errorf("%d tokens held for nobody", n)
		}
	}
	for i := range l.sharers {
		if n := len(l.sharers[i].of); n != 0 {
			t.Errorf("shard %d keeps %d chunks of nobody", i, n)
		}
	}
}

// An engine must announce a block where one prompt of all surely has a new one.
func TestSeveralPromptsCause(t *testing.T) {
	for uncached, want := range map[int]uint64{47: 0, 48: 1} {
		f := newFlapping(t, 1)
		on := f.pods[0]
		first := numbered(0, 64)
		r := f.Place(on, Work{Prompt: &first, Further: []block.Prompt{numbered(1000, 64), numbered(2000, 64)}, Tokens: 192, Rank: 1, Uncached: uncached}, f.now)
		r.FirstByte(f.now)
		r.End(f.now)
		if got := f.Load.Caused(on, 1); got != want {
			t.Errorf("%d tokens not cached of three prompts: %d blocks are due, want %d", uncached, got, want)
		}
	}
}
