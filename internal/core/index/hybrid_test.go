package index

import (
	"slices"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// stored is an event of a further cache group: a sliding window of 33 tokens, so
// that a hit needs two blocks of 16, or, as group 9, full attention.
func (r *rig) stored(group int, tier event.Tier, h ...uint64) *event.Event {
	e := &event.Event{Kind: event.Stored, Tier: tier, Hashes: h, BlockSize: r.size, Group: group, SpecKind: "sliding_window", Window: 33, LoRAID: -1}
	if group == 9 {
		e.SpecKind, e.Window = "full_attention", 0
	}
	return e
}

// lost removes hashes of a group, which removals name by number only.
func lost(group int, h ...uint64) *event.Event {
	return &event.Event{Kind: event.Removed, Group: group, Hashes: h}
}

// newHybrid has twelve blocks in the trie and in two windows on r1.
func newHybrid(t *testing.T) (*rig, []uint32) {
	r, p := newRig(t, Options{TTL: time.Minute}), tokens(1, 16*12)
	for g := 1; g <= 2; g++ { // engines list them before the group that holds all
		r.apply(r1, r.stored(g, gpu, hashes(1, 12)...), Applied)
	}
	r.store(r1, gpu, top, hashes(1, 12), p)
	return r, p
}

func TestHybrid(t *testing.T) {
	// The engine computes the last token anew: of twelve whole blocks it uses
	// eleven, and with one token more all twelve.
	usable := func(r *rig, p []uint32, depth, beyond int) {
		r.Helper()
		q := append(slices.Clone(p), 7)
		if x := r.match(r1, q); int(x.Depth) != depth || int(x.Beyond) != beyond || x.Fastest[gpu] != x.Depth {
			r.Errorf("%+v, want depth %d and %d in vain", x, depth, beyond)
		}
	}
	t.Run("windows whole", func(t *testing.T) {
		r, p := newHybrid(t)
		usable(r, p, 12, 0)
		r.depth(r1, p, 11)
		r.depth(r1, p[:5*16], 4)
		r.depth(r1, tokens(2, 99), 0)
	})
	t.Run("a window cut in the middle", func(t *testing.T) {
		r, p := newHybrid(t)
		r.apply(r1, lost(1, 11), Applied) // ends 11 and 12 miss it: up to 10
		usable(r, p, 10, 2)
		r.apply(r1, lost(2, 9), Applied) // ends 9 and 10 miss it: up to 8
		usable(r, p, 8, 4)
		r.apply(r1, lost(1, 3, 4, 5, 6, 7, 8), Applied) // but 1 and 2 are whole
		usable(r, p, 2, 10)
		r.apply(r1, lost(2, 1, 2), Applied)
		if _, ok := r.lookup(block.Prompt{Tokens: p, Cut: -1})[r1]; ok {
			t.Error("a complete miss is a match")
		}
		r.apply(r1, r.stored(1, gpu, 3, 4, 5, 6, 7, 8, 11), Applied)
		r.apply(r1, r.stored(2, gpu, 9, 1, 2), Applied)
		usable(r, p, 12, 0)
	})
	t.Run("copies are counted", func(t *testing.T) {
		r, p := newHybrid(t)
		r.apply(r1, r.stored(1, gpu, 12), Applied)
		r.apply(r1, lost(1, 12), Applied)
		usable(r, p, 12, 0)
		r.apply(r1, lost(1, 12), Applied)
		usable(r, p, 11, 1)
		if o := r.apply(r1, lost(1, 12), Applied); o.Unknown != 1 {
			t.Errorf("%+v", o)
		}
		if s := r.stats(r1); s.Copies[gpu] != 12+12+11 || s.Blocks[gpu] != 12 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("a block that comes back finds its window", func(t *testing.T) {
		r, p := newHybrid(t)
		r.apply(r1, lost(0, 6), Applied) // of the trie; its windows stay
		usable(r, p, 5, 0)
		r.store(r1, gpu, 5, hashes(6, 6), p[80:96])
		usable(r, p, 12, 0)
	})
	t.Run("KV-50 full attention twice", func(t *testing.T) { // all groups must hold a block
		r, p := newHybrid(t)
		r.apply(r1, r.stored(9, gpu, hashes(1, 7)...), Applied)
		usable(r, p, 7, 5)
		r.apply(r1, lost(9, 3), Applied)
		usable(r, p, 2, 10)
	})
	t.Run("a clear empties the windows", func(t *testing.T) {
		r, p := newHybrid(t)
		r.store(r1, host, top, hashes(1, 12), p)
		r.apply(r1, r.stored(1, host, hashes(1, 8)...), Applied)
		r.apply(r1, r.stored(2, host, hashes(1, 8)...), Applied)
		r.apply(r1, &event.Event{Kind: event.Cleared}, Applied)
		if x := r.match(r1, p); x.Depth != 8 || x.Fastest[host] != 8 || x.Beyond != 4 {
			t.Errorf("%+v", x)
		}
		r.store(r1, gpu, top, hashes(1, 12), p)
		if x := r.match(r1, p); x.Depth != 8 || x.Fastest[gpu] != 8 {
			t.Errorf("%+v", x)
		}
		r.wait(30 * time.Second) // the copies on the host run out
		r.wait(40 * time.Second)
		if x, ok := r.lookup(block.Prompt{Tokens: p, Cut: -1})[r1]; ok {
			t.Errorf("%+v", x)
		}
	})
	t.Run("an expected prompt leaves its window's end", func(t *testing.T) {
		r, p := newHybrid(t)
		long := append(slices.Clone(p), tokens(3, 16*4)...)
		x := r.ix.Expect(r1, &block.Prompt{Model: "m", Tokens: long, Cut: -1})
		if m := r.match(r1, long); m.Depth != 15 || m.Announced != 12 {
			t.Errorf("the same prompt: %+v", m)
		}
		if m := r.match(r1, append(slices.Clone(long[:14*16]), 5)); m.Depth != 12 || m.Beyond != 2 {
			t.Errorf("a branch inside it: %+v", m)
		}
		x.Release()
		if m := r.match(r1, long); m.Depth != 12 {
			t.Errorf("when it has ended: %+v", m)
		}
	})
	t.Run("others are not touched", func(t *testing.T) {
		r, p := newHybrid(t)
		r.store(r2, gpu, top, hashes(1, 12), p)
		r.apply(r1, lost(1, hashes(1, 12)...), Applied)
		r.depth(r2, p, 12)
		r.ix.Purge(r1)
		r.depth(r2, p, 12)
		if r.ix.hybrids.Load() != 0 {
			t.Error("a hybrid member is left")
		}
		r.ix.Purge(r2)
		if s := r.ix.Stats(); s.Runs != 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("groups without a kind", func(t *testing.T) { // engines of before it was published
		r, p := newRig(t, Options{}), tokens(1, 16*12)
		r.store(r1, gpu, top, hashes(1, 12), p)
		e := r.stored(9, gpu, 11, 12)
		e.SpecKind, e.Tokens = "", p // two hashes for twelve blocks
		r.apply(r1, e, OtherGroup)
		if x := r.match(r1, p); x.Depth != 12 || !x.Approximate {
			t.Errorf("%+v", x)
		}
	})
	t.Run("a kind that turns out to be unknown", func(t *testing.T) {
		r, p := newHybrid(t)
		e := r.stored(1, gpu, 1)
		e.SpecKind = "chunked_local_attention"
		r.apply(r1, e, OtherGroup)
		if x := r.match(r1, p); x.Depth != 11 || !x.Approximate {
			t.Errorf("%+v", x)
		}
		if s := r.stats(r1); !s.Approximate || s.Others[0].Exact || s.Copies[gpu] != 24 {
			t.Errorf("%+v", s)
		}
	})
}

// The windows of a whole fleet cost no allocation, and nothing where there are none.
func TestHybridAllocates(t *testing.T) {
	r, p := newRig(t, Options{}), tokens(1, 16*128)
	for m := range pod.Member(200) {
		r.ix.Register(m, Owner{Model: "m", Engine: pod.EngineVLLM})
		r.apply(m, r.stored(1, gpu, hashes(100, 128)...), Applied)
		r.store(m, gpu, top, hashes(1, 128), p)
	}
	q := &block.Prompt{Model: "m", Tokens: append(p, 1), Cut: -1}
	for range 2 {
		r.ix.Lookup(q, &r.out)
	}
	if n := testing.AllocsPerRun(100, func() { r.ix.Lookup(q, &r.out) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if len(r.out.Matches) != 200 || r.out.Matches[7].Depth != 128 {
		t.Errorf("%d matches", len(r.out.Matches))
	}
	if len(r.out.trail) != 0 {
		t.Error("the result keeps the trail")
	}
}
