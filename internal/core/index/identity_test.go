package index

import (
	"testing"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// Hashes are names that one member gives its blocks; the tokens are what a block
// is.
func TestHashesAreAliases(t *testing.T) {
	p := tokens(1, 128)
	t.Run("KV-41", func(t *testing.T) { // one member, the base model's blocks and an adapter's
		r := newRig(t, Options{})
		r.store(r1, gpu, top, hashes(1, 2), p[:32])
		e := r.event(gpu, top, hashes(11, 12), p[:32])
		e.LoRA, e.LoRAID = "sql", 1
		r.apply(r1, e, Applied)
		r.remove(r1, gpu, 11)
		r.depth(r1, p, 2)
		if got := r.lookup(block.Prompt{Tokens: p, Cut: -1, LoRA: "sql"})[r1].Depth; got != 0 {
			t.Errorf("adapter: depth %d", got)
		}
	})
	t.Run("KV-43", func(t *testing.T) {
		r := newRig(t, Options{})
		r.store(r1, gpu, top, hashes(1, 4), p[:64])
		r.store(r2, gpu, top, hashes(101, 104), p[:64])
		r.depth(r1, p, 4)
		r.depth(r2, p, 4)
		r.remove(r2, gpu, 1, 2, 3, 4) // the other's names
		r.depth(r2, p, 4)
	})
	t.Run("KV-44", func(t *testing.T) { // SGLang removes a whole node at once
		r := newRig(t, Options{})
		long := tokens(3, 16*250)
		r.store(r1, gpu, top, hashes(1, 250), long)
		if n := r.remove(r1, gpu, hashes(51, 250)...); n != 0 {
			t.Errorf("%d unknown", n)
		}
		r.depth(r1, long, 50)
	})
	t.Run("KV-35", func(t *testing.T) { // pages of 16 beside a member with blocks of 64
		r := newRig(t, Options{})
		r.ix.Register(r1, Owner{Model: "m", Engine: pod.EngineSGLang})
		r.size = 64
		r.store(r2, gpu, top, hashes(901, 901), p[:64])
		r.size = 16
		parent := top
		for page := range uint64(4) {
			r.store(r1, gpu, parent, hashes(page+1, page+1), p[16*page:16*page+16])
			parent = page + 1
			got := r.lookup(block.Prompt{Tokens: p[:64], Cut: -1})
			if a, b := got[r1], got[r2]; int(a.Depth)*int(a.Size) != 16*int(page+1) || int(b.Depth)*int(b.Size) != 64 {
				t.Errorf("after page %d: %+v, %+v", page, a, b)
			}
		}
	})
}

// TestTransfersAndSharedPools: what ATOM, Mooncake and the llm-d connector say.
func TestTransfersAndSharedPools(t *testing.T) {
	p := tokens(1, 64)
	t.Run("a transfer", func(t *testing.T) { // as the decoder writes BlockTransferred
		r := newRig(t, Options{})
		r.store(r1, gpu, top, hashes(1, 4), p)
		r.ix.ApplyBatch(r1, []event.Event{
			{Kind: event.Stored, Tier: host, Medium: "CPU", Hashes: hashes(3, 4), LoRAID: -1},
			{Kind: event.Removed, Tier: gpu, Medium: "GPU", Hashes: hashes(3, 4), LoRAID: -1},
		}, r.now)
		r.tiers(r1, p, 2, 2)
	})
	t.Run("a pool of the whole fleet", func(t *testing.T) {
		r := newRig(t, Options{})
		r.store(r1, gpu, top, hashes(1, 4), p)
		named := &event.Event{Kind: event.Stored, Tier: host, Medium: "cpu", Shared: true, Hashes: hashes(1, 4), LoRAID: -1}
		gone := *named
		gone.Kind = event.Removed
		r.apply(r1, named, SharedMedium)
		r.tiers(r1, p, 4)
		r.apply(r1, &gone, SharedMedium)
		r.tiers(r1, p, 4)
		if s := r.stats(r1); s.Verdicts[SharedMedium] != 2 {
			t.Errorf("%+v", s.Verdicts)
		}
	})
}
