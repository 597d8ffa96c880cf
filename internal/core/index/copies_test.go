package index

import (
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
)

// One block that goes by more hashes than 16 bits count: it is held until the
// last of them is removed, and its run with it.
func TestManyHashesOfOnePlace(t *testing.T) {
	const n = 70_000
	p := tokens(1, 64)
	t.Run("blocks", func(t *testing.T) {
		r := newRig(t, Options{Seed: 1, TTL: -1})
		for h := range uint64(n) {
			r.store(r1, gpu, top, hashes(h+1, h+1), p[:16])
		}
		r.remove(r1, gpu, hashes(1, 10_000)...)
		r.store(r2, gpu, top, hashes(1, 4), tokens(2, 64)) // takes the run's number, were it free
		r.depth(r1, p, 1)
		r.store(r1, gpu, n, hashes(n+1, n+1), p[16:32]) // below the last of them
		r.depth(r1, p, 2)
		r.remove(r1, gpu, hashes(10_001, n-1)...)
		r.depth(r1, p, 2)
		r.remove(r1, gpu, n)
		r.depth(r1, p, 0)
		r.remove(r1, gpu, n+1)
		r.depth(r2, tokens(2, 64), 4)
		if s := r.ix.Stats(); s.Runs != 1 || r.stats(r1).Blocks[gpu] != 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("chunks", func(t *testing.T) { // and then the TTL
		r := newRig(t, Options{Seed: 1})
		r.store(r1, gpu, top, hashes(1, 1), p[:16])
		e := r.event(host, top, hashes(0, 0), p)
		e.BlockSize = 64
		for h := range uint64(n) {
			e.Hashes[0] = 1000 + h
			r.apply(r1, e, Applied)
		}
		r.tiers(r1, p, 1, 3)
		if n := r.remove(r1, host, hashes(1000, 1000+n-2)...); n != 0 {
			t.Errorf("%d unknown", n)
		}
		r.tiers(r1, p, 1, 3)
		r.wait(DefaultTTL * 2)
		r.tiers(r1, p, 1)
	})
	t.Run("windows", func(t *testing.T) {
		r := newRig(t, Options{Seed: 1, TTL: -1})
		for h := uint64(1); h <= n; h++ {
			r.apply(r1, r.stored(1, gpu, h), Applied)
			r.store(r1, gpu, top, hashes(h, h), p[:16])
		}
		r.apply(r1, &event.Event{Kind: event.Removed, Group: 1, Hashes: hashes(1, n-1)}, Applied)
		r.depth(r1, p, 1)
		r.apply(r1, lost(1, n), Applied)
		r.depth(r1, p, 0)
		r.remove(r1, gpu, hashes(1, n)...)
		if s := r.ix.Stats(); s.Runs != 0 {
			t.Errorf("%+v", s)
		}
	})
}
