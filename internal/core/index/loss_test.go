package index

import (
	"testing"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
)

// A prompt is lost when its first block was held as the engine emptied its cache, and
// what became of it since is not another story: nothing else is called so.
func TestLoss(t *testing.T) {
	const at = 7
	p, other := tokens(1, 160), tokens(2, 160)
	clearGPU := &event.Event{Kind: event.Cleared, Tier: event.TierGPU}
	emptied := func(r *rig) {
		r.apply(r1, clearGPU, Applied)
		r.ix.Emptied(r1, at)
	}
	held := func(r *rig) { r.store(r1, gpu, top, hashes(1, 10), p) }
	for name, c := range map[string]struct {
		do   func(r *rig)
		want bool
	}{
		"cleared":      {func(r *rig) { held(r); emptied(r) }, true},
		"still so":     {func(r *rig) { held(r); emptied(r); r.store(r1, gpu, top, hashes(50, 54), other[:80]) }, true},
		"cleared anew": {func(r *rig) { held(r); emptied(r); r.apply(r1, clearGPU, Applied); r.ix.Emptied(r1, 99) }, true},
		"held by others too": {func(r *rig) {
			held(r)
			r.store(r2, gpu, top, hashes(1, 10), p)
			emptied(r)
		}, true},
		"a child's run": {func(r *rig) {
			held(r)
			r.store(r1, gpu, 5, hashes(20, 22), other[:48])
			emptied(r)
		}, true},
		"restarted":     {func(r *rig) { held(r); r.ix.Restart(r1); r.ix.Emptied(r1, at) }, true},
		"never held":    {func(r *rig) { r.store(r1, gpu, top, hashes(1, 10), other); emptied(r) }, false},
		"held behind":   {func(r *rig) { r.store(r1, gpu, top, hashes(1, 20), append(other[:160:160], p...)); emptied(r) }, false},
		"evicted first": {func(r *rig) { held(r); r.remove(r1, gpu, hashes(1, 10)...); emptied(r) }, false},
		"evicted since": {func(r *rig) {
			held(r)
			emptied(r)
			r.store(r1, gpu, top, hashes(1, 1), p[:16])
			r.remove(r1, gpu, 1)
		}, false},
		"refilled": {func(r *rig) {
			held(r)
			emptied(r)
			r.store(r1, gpu, top, hashes(50, 59), other)
			r.store(r1, gpu, 59, hashes(60, 60), p[:16])
		}, false},
		"in another tier": {func(r *rig) {
			held(r)
			r.store(r1, host, top, hashes(1, 10), p)
			emptied(r)
			r.remove(r1, host, hashes(1, 10)...)
		}, false},
		"nobody says that the engine lost it": {func(r *rig) { held(r); r.ix.Restart(r1) }, false},
		"lost sight of":                       {func(r *rig) { held(r); r.ix.Purge(r1); r.ix.Emptied(r1, at) }, false},
		"lost sight of since":                 {func(r *rig) { held(r); emptied(r); r.ix.Purge(r1) }, false},
		"other blocks since": {func(r *rig) {
			held(r)
			r.ix.Restart(r1)
			r.ix.Emptied(r1, at)
			r.size = 32
			r.store(r1, gpu, top, hashes(1, 1), p[:32])
			r.remove(r1, gpu, 1)
		}, false},
		"a hybrid's": {func(r *rig) { r.apply(r1, r.stored(1, gpu, 1), Applied); held(r); emptied(r) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{})
			c.do(r)
			for _, q := range []*block.Prompt{
				{Model: "m", Tokens: p, Cut: -1},
				{Model: "m", Tokens: append(p[:16:16], other...), Cut: -1}, // the first block is enough
			} {
				if when, lost := r.ix.Lost(r1, q); lost != c.want || lost && when != at {
					t.Errorf("lost %v at %d, want %v at %d", lost, when, c.want, at)
				}
			}
			for why, q := range map[string]*block.Prompt{
				"no whole block":      {Model: "m", Tokens: p[:16], Cut: -1},
				"unknown content":     {Model: "m", Tokens: p, Cut: 15},
				"another salt":        {Model: "m", Salt: "x", Tokens: p, Cut: -1},
				"another adapter":     {Model: "m", LoRA: "x", Tokens: p, Cut: -1},
				"another model":       {Model: "x", Tokens: p, Cut: -1},
				"another first block": {Model: "m", Tokens: tokens(3, 160), Cut: -1},
			} {
				if _, lost := r.ix.Lost(r1, q); lost {
					t.Errorf("%s: lost", why)
				}
			}
			if _, lost := r.ix.Lost(r2, &block.Prompt{Model: "m", Tokens: p, Cut: -1}); lost {
				t.Error("lost by another member")
			}
		})
	}
}

// What one loss keeps is bounded, and asking allocates nothing.
func TestLossIsBounded(t *testing.T) {
	r := newRig(t, Options{})
	for i := range uint64(maxLost + 100) {
		r.store(r1, gpu, top, hashes(i+1, i+1), tokens(i, 16))
	}
	r.ix.Restart(r1)
	r.ix.Emptied(r1, 1)
	if n := len(r.ix.lost[r1].Load().first); n != maxLost {
		t.Errorf("%d prompts are kept, want %d", n, maxLost)
	}
	q := &block.Prompt{Model: "m", Tokens: tokens(1, 160), Cut: -1}
	if n := testing.AllocsPerRun(100, func() { r.ix.Lost(r1, q) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
