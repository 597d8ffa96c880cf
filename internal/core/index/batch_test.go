package index

import (
	"cmp"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// ApplyBatch means what Apply means for one event after the other: of all that
// the oracle's world tells, nothing can be seen that differs.
func TestBatchIsOneByOne(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 82))
		data := make([]byte, 6000)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		data[0] = byte(seed)
		w := newWorld(t, data)
		w.run()
		alone, batched := w.fresh(), w.fresh()
		for len(w.told) > 0 {
			// Batches of one member each, as far as its events go.
			n := min(1+r.IntN(3*ahead*len(worldMembers)), len(w.told))
			now := w.told[:n]
			w.told = w.told[n:]
			slices.SortStableFunc(now, func(a, b told) int { return cmp.Compare(a.m, b.m) })
			w.now += int64(r.IntN(3)) * int64(time.Second)
			for len(now) > 0 {
				m, batch := now[0].m, []event.Event(nil)
				for len(now) > 0 && now[0].m == m {
					batch, now = append(batch, now[0].e), now[1:]
				}
				var last Outcome
				for i := range batch {
					last = alone.Apply(m, &batch[i], w.now)
				}
				if got := batched.ApplyBatch(m, batch, w.now); got != last.Inflated {
					t.Fatalf("inflated %v, want %v", got, last.Inflated)
				}
			}
			w.same(alone, batched)
		}
	}
}

// fresh is an index as the world's was at first, of engines whose pools are so
// small that their counts do not fit at times.
func (w *world) fresh() *Index {
	ix := New(Options{Seed: w.ix.seed, TTL: -1})
	for _, m := range worldMembers {
		ix.Register(m, Owner{Engine: w.o.members[m].engine, BlockSize: w.size, Blocks: 150})
	}
	return ix
}

func (w *world) same(a, b *Index) {
	w.t.Helper()
	if x, y := a.Stats(), b.Stats(); !reflect.DeepEqual(x, y) {
		w.t.Fatalf("one by one %+v\nin batches %+v", x, y)
	}
	for _, m := range worldMembers {
		x, _ := a.Member(m)
		y, _ := b.Member(m)
		if !reflect.DeepEqual(x, y) {
			w.t.Fatalf("member %d one by one %+v\nin batches %+v", m, x, y)
		}
	}
	for _, p := range w.seqs {
		var x, y Result
		a.Lookup(p, &x)
		b.Lookup(p, &y)
		if !slices.Equal(x.Matches, y.Matches) {
			w.t.Fatalf("one by one %+v\nin batches %+v", x.Matches, y.Matches)
		}
	}
}

// Within a batch a removal ends before what comes behind it begins, and has
// ended when the batch has.
func TestBatchOrder(t *testing.T) {
	p := tokens(1, 64)
	r := newRig(t, Options{})
	store := *r.event(gpu, top, hashes(1, 4), p)
	remove := func(h ...uint64) event.Event { return event.Event{Kind: event.Removed, Hashes: h} }
	for _, c := range []struct {
		name  string
		batch []event.Event
		depth int
	}{
		{"stored last", []event.Event{store, remove(4), remove(3), store}, 4},
		{"removed last", []event.Event{store, remove(4), remove(3)}, 2},
		{"cleared between", []event.Event{store, remove(4), {Kind: event.Cleared}, store, remove(4)}, 3},
		{"two tiers", []event.Event{store, *r.event(host, top, hashes(1, 4), p), remove(4), {Kind: event.Removed, Tier: host, Hashes: hashes(3, 4)}}, 3},
	} {
		r.ix.Purge(r1)
		r.ix.ApplyBatch(r1, c.batch, r.now)
		if got := int(r.match(r1, p).Depth); got != c.depth {
			t.Errorf("%s: depth %d, want %d", c.name, got, c.depth)
		}
	}
	if r.ix.ApplyBatch(pod.Member(700), []event.Event{store}, r.now) {
		t.Error("a member that nobody announced is inflated")
	}
}
