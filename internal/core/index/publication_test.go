//go:build race

package index

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
)

// watch calls hook at every stage until the test ends.
func watch(t *testing.T, hook func(r *run, at stage, n uint32)) {
	stepHook = hook
	t.Cleanup(func() { stepHook = nil })
}

// The orders of docs/index.md, held at every step of what the oracle's world does.
// There is one goroutine, so what a reader would find is what the index is just then.
func TestPublicationOrder(t *testing.T) {
	seen := map[stage]int{}
	var ix *Index
	watch(t, func(r *run, at stage, n uint32) {
		seen[at]++
		if r.shard != ix.shardOf(r.top()) { // one that is being loaded
			return
		}
		switch at {
		case stageCover:
			if n > r.n.Load() {
				t.Fatalf("coverage up to block %d of a run that shows %d keys", n, r.n.Load())
			}
		case stageLink:
			if r.arr.Load() == nil || r.n.Load() == 0 || r.keys(1)[0] != r.first || ix.runs.get(r.id) != r {
				t.Fatal("a child is linked before it is whole")
			}
			if r.cover.Load() != nil {
				t.Fatal("a child is covered before it is linked")
			}
		case stageUnlink:
			if r.cover.Load() != nil || r.expect != nil {
				t.Fatal("a run leaves the trie while it is covered")
			}
		case stageFree:
			if c, _ := r.parent.find(r); !r.dead || c != nil {
				t.Fatal("a number is freed while its run is in the trie")
			}
			if namesRun(ix, r.id) {
				t.Fatal("a number is freed while a reverse map names it")
			}
		}
	})
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 85))
		data := make([]byte, 3000)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		w := newWorld(t, data)
		if seed%2 == 1 {
			w.capped, w.ix.max.blocks = true, 60
		}
		for ix = w.ix; len(w.data) > 0; ix = w.ix {
			w.step()
		}
	}
	for at := stageLength; at <= stageRelease; at++ {
		if seen[at] == 0 {
			t.Errorf("stage %d was never reached", at)
		}
	}
}

// top is the key of the prompt's first block.
func (r *run) top() block.Key {
	for r.parent != nil && r.parent.parent != nil {
		r = r.parent
	}
	return r.first
}

// namesRun reports whether some member's live hash or chunk names a run.
func namesRun(ix *Index, id uint32) bool {
	for i := range ix.members {
		m := ix.members[i].Load()
		if m == nil {
			continue
		}
		for _, s := range m.rev.log.held {
			if s.run == id {
				return true
			}
		}
		for _, c := range m.chunks.byHash {
			if c.tiers != 0 && slices.ContainsFunc(c.path, func(s stretch) bool { return s.run == id }) {
				return true
			}
		}
	}
	return false
}

// A reader that has loaded a length and not yet the array, while the run grows
// into a new one: it finds the keys of that length, and what it had to find.
func TestReaderLoadsTheLengthFirst(t *testing.T) {
	r := newRig(t, Options{Seed: 1, TTL: -1})
	p := tokens(1, 16*4000)
	r.store(r1, gpu, top, hashes(1, 3), p[:48])
	grow, to := true, uint64(3)
	watch(t, func(_ *run, at stage, _ uint32) {
		if at == stageLength && grow {
			grow = false // the store reads lengths too
			n := to * 4
			r.store(r1, gpu, to, hashes(to+1, n), p[16*to:16*n])
			to = n
		}
	})
	for to < 1000 {
		from := to
		grow = true
		x := r.match(r1, p)
		if grow || x.Depth < int32(from) || x.Depth > int32(to) {
			t.Fatalf("depth %d, the run grew from %d to %d blocks", x.Depth, from, to)
		}
	}
}

// A hash that moves is found at its new place before it leaves the old one.
func TestMoveIsSeenBeforeItsEnd(t *testing.T) {
	r := newRig(t, Options{Seed: 1, TTL: -1})
	p, q := tokens(1, 64), tokens(2, 64)
	r.store(r1, gpu, top, hashes(1, 4), p)
	old := r.ix.runs.get(0)
	moved := 0
	watch(t, func(run *run, at stage, _ uint32) {
		if at != stageRelease || run != old {
			return
		}
		moved++
		h := r.ix.hasher
		key := h.Root(h.Space(block.Namespace{Model: "m", Size: 16}), h.Key(q[:16]))
		if kid := r.ix.shardOf(key).root.kid(0, key); kid == nil || !kid.cover.Load().holds(r1, layer(gpu), 3) {
			t.Error("the hash leaves its old place and is not at its new one")
		}
	})
	r.store(r1, gpu, top, hashes(1, 4), q)
	if moved == 0 {
		t.Error("nothing left the old place")
	}
}

// A list in a reader's hand does not change but in its ends, and these say only
// what was so at some time.
func TestListsDoNotChange(t *testing.T) {
	r := newRig(t, Options{Seed: 1, TTL: -1})
	p := tokens(1, 16*40)
	rnd := rand.New(rand.NewPCG(1, 86))
	type list struct{ now, then []group }
	var lists []list
	for range 3000 {
		a := rnd.IntN(39)
		b := a + 1 + rnd.IntN(39-a)
		m, tier := []event.Tier{gpu, host}, rnd.IntN(2)
		if rnd.IntN(2) == 0 {
			r.remove(r1, m[tier], hashes(uint64(a+1), uint64(b))...)
		} else {
			r.store(r1, m[tier], top, hashes(1, uint64(b)), p[:16*b])
		}
		if run := r.ix.runs.get(0); run != nil {
			lists = append(lists, list{run.groups(), slices.Clone(run.groups())})
		}
		r.now += int64(time.Millisecond)
	}
	for _, l := range lists {
		for i := range l.now {
			a, b := l.now[i], l.then[i]
			a.end, b.end = 0, 0
			if a != b {
				t.Fatalf("a published list changed from %+v to %+v", l.then[i], l.now[i])
			}
		}
	}
}

// What the engine removed while it was parked is not shown, not even until the removal
// that was waiting with it.
func TestRemovedWhileParkedIsNeverShown(t *testing.T) {
	for name, gone := range map[string][]uint64{
		"the tail": {7, 8}, "a hole": {6}, "the head": {3}, "all": {3, 4, 5, 6, 7, 8}, "every other": {4, 6, 8},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{Seed: 1, TTL: -1})
			p := tokens(1, 8*16)
			r.apply(r1, r.event(gpu, 2, hashes(3, 8), p[32:]), Parked)
			r.remove(r1, gpu, gone...)
			held := 2
			for ; held < 8 && !slices.Contains(gone, uint64(held+1)); held++ {
			}
			out := &Result{}
			watch(t, func(*run, stage, uint32) {
				hook := stepHook
				stepHook = nil // the lookup has steps too
				r.ix.Lookup(&block.Prompt{Model: "m", Tokens: p, Cut: -1}, out)
				stepHook = hook
				if len(out.Matches) > 0 && int(out.Matches[0].Depth) > held {
					t.Errorf("depth %d, of which %d are held", out.Matches[0].Depth, held)
				}
			})
			if o := r.apply(r1, r.event(gpu, top, hashes(1, 2), p[:32]), Applied); o.Attached != 1 {
				t.Errorf("%d attached", o.Attached)
			}
			stepHook = nil
			r.depth(r1, p, held)
			r.store(r1, gpu, top, hashes(1, 8), p) // what was left out comes as anything new does
			r.depth(r1, p, 8)
			r.remove(r1, gpu, hashes(1, 8)...) // of what was kept there are two copies now
			r.remove(r1, gpu, hashes(1, 8)...)
			if s := r.ix.Stats(); s.Blocks != 0 || s.Runs != 0 {
				t.Errorf("left over: %+v", s)
			}
		})
	}
}
