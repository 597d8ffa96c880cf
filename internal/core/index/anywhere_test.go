package index

import (
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
)

// TestRemovedAnywhere: TensorRT-LLM says that a block is gone, not from where.
func TestRemovedAnywhere(t *testing.T) {
	p := tokens(1, 64)
	gone := func(h ...uint64) *event.Event {
		return &event.Event{Kind: event.Removed, Tier: event.TierAll, Hashes: h}
	}
	named := func(tier event.Tier, h ...uint64) *event.Event {
		return &event.Event{Kind: event.Stored, Tier: tier, Hashes: h}
	}
	t.Run("from the GPU", func(t *testing.T) {
		r := newRig(t, Options{})
		r.store(r1, gpu, top, hashes(1, 4), p)
		if o := r.apply(r1, gone(4, 9), Applied); o.Unknown != 1 {
			t.Errorf("%d unknown", o.Unknown)
		}
		r.depth(r1, p, 3)
	})
	t.Run("from the host, where it moved", func(t *testing.T) {
		r := newRig(t, Options{})
		r.store(r1, gpu, top, hashes(1, 4), p)
		r.apply(r1, named(host, 3, 4), Applied)
		r.remove(r1, gpu, 3, 4)
		r.tiers(r1, p, 2, 2)
		if o := r.apply(r1, gone(4), Applied); o.Unknown != 0 {
			t.Errorf("%d unknown", o.Unknown)
		}
		r.tiers(r1, p, 2, 1)
		r.apply(r1, gone(1), Applied)
		r.depth(r1, p, 0)
	})
	t.Run("in a batch", func(t *testing.T) {
		r := newRig(t, Options{})
		r.store(r1, gpu, top, hashes(1, 4), p)
		r.ix.ApplyBatch(r1, []event.Event{*named(host, 2), *gone(2), *gone(4)}, r.now)
		r.depth(r1, p, 1)
		if s := r.stats(r1); s.Blocks != [event.NumTiers]int{2} {
			t.Errorf("%v", s.Blocks)
		}
	})
	t.Run("of another group", func(t *testing.T) {
		r := newRig(t, Options{})
		r.store(r1, gpu, top, hashes(1, 4), p)
		e := gone(1, 2)
		e.Group = 3
		r.apply(r1, e, OtherGroup)
		r.depth(r1, p, 4)
	})
	t.Run("parked", func(t *testing.T) {
		r := newRig(t, Options{})
		r.apply(r1, r.event(gpu, 1, hashes(2, 4), p[16:]), Parked)
		r.apply(r1, gone(3), Applied)
		r.store(r1, gpu, top, hashes(1, 1), p[:16])
		r.depth(r1, p, 2)
	})
}
