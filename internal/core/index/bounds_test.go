package index

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// A prefix read every second outlives cold chains whose inner runs are no leaves
// when an eviction begins: their heads go before it. IX-53.
func TestColdChainsGoBeforeAFreshLeaf(t *testing.T) {
	r := newRig(t, Options{MaxBlocks: 2000, Seed: 1, TTL: -1})
	hot := tokens(999, 16*20)
	r.store(r1, gpu, top, hashes(1, 20), hot)
	next, seed := uint64(1000), uint64(5000)
	for second := range 12 {
		for range 10 {
			parent := top
			for range 20 { // each forks off the first block of the one before
				seed++
				r.store(r1, gpu, parent, []uint64{next, next + 1}, tokens(seed, 32))
				parent = next
				next += 2
			}
		}
		r.lookup(block.Prompt{Tokens: hot, Cut: -1})
		r.wait(time.Second)
		if got := r.match(r1, hot).Depth; got != 20 {
			t.Fatalf("second %d: depth %d of the prefix that is read", second, got)
		}
	}
	if s := r.ix.Stats(); s.Evicted == 0 || s.Blocks > 2000 {
		t.Errorf("%d blocks, %d evicted", s.Blocks, s.Evicted)
	}
}

// A hash held on three tiers costs one hash: the cap in bytes holds after every
// sweep all the same, and Stats tells what is in use. IX-52.
func TestCapInBytesWithSeveralTiers(t *testing.T) {
	const limit = 1 << 20
	r := newRig(t, Options{MaxBytes: limit, Seed: 1, TTL: -1})
	next := uint64(1)
	for seed := range uint64(1500) {
		content, h := tokens(seed+1, 16*64), hashes(next, next+63)
		next += 64
		for _, tier := range []event.Tier{gpu, host, event.TierDisk} {
			r.store(r1, tier, top, h, content)
		}
		if seed%100 != 99 {
			continue
		}
		r.wait(time.Second)
		if used, _ := r.ix.used(); used.bytes > limit || used.bytes != r.ix.Stats().Bytes {
			t.Fatalf("%d bytes in use, cap %d, Stats says %d", used.bytes, limit, r.ix.Stats().Bytes)
		}
	}
	if r.ix.Stats().Evicted == 0 {
		t.Error("nothing was evicted: the test shows nothing")
	}
}

// One orphan that waits must not keep those that were attached behind it. IX-41.
func TestAttachedOrphansLeaveTheQueue(t *testing.T) {
	r := newRig(t, Options{Seed: 1, TTL: -1})
	r.apply(r1, r.event(gpu, 1<<60, hashes(1<<61, 1<<61), tokens(1, 16)), Parked)
	next := uint64(1)
	for i := range uint64(20_000) {
		r.apply(r1, r.event(gpu, next, hashes(next+1, next+1), tokens(i%50, 16)), Parked)
		r.store(r1, gpu, top, hashes(next, next), tokens(i%50+100, 16))
		r.remove(r1, gpu, next+1, next)
		next += 2
	}
	if p := &r.ix.member(r1).parked; len(p.queue) > 2*maxOrphans || p.events != 1 {
		t.Errorf("%d in the queue, %d parked", len(p.queue), p.events)
	}
}

// What an engine may say, a snapshot may hold: the longest name the decoder
// takes does not spoil the file.
func TestSnapshotOfLongKind(t *testing.T) {
	ix := New(Options{Seed: 1, TTL: -1})
	ix.Register(0, Owner{Model: "m", Engine: pod.EngineVLLM})
	e := event.Event{Kind: event.Stored, BlockSize: 16, Hashes: []uint64{7}, Tokens: tokens(1, 16), LoRAID: -1}
	ix.Apply(0, &e, 0)
	e.Group, e.SpecKind = 1, strings.Repeat("x", 4096)
	ix.Apply(0, &e, 0)
	var file bytes.Buffer
	if err := ix.Save(&file, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(&file, Options{}, 0, nil); err != nil {
		t.Error(err)
	}
}

// What chunks, further hashes and parked stores take is counted, and is about what
// the heap says.
func TestBytesAreCounted(t *testing.T) {
	const n = 1 << 16
	p := tokens(1, 256)
	for _, c := range []struct {
		name string
		fill func(*rig)
	}{
		{"chunks of one place", func(r *rig) {
			e := r.event(host, top, hashes(0, 0), p)
			e.BlockSize = 256
			for h := range uint64(n) {
				e.Hashes[0] = 1000 + h
				r.apply(r1, e, Applied)
			}
		}},
		{"chunks twice everywhere", func(r *rig) {
			r.size = 1
			r.store(r2, gpu, top, hashes(1<<40, 1<<40), p[:1])
			for h := range uint64(n / 2) {
				for k := range uint64(2) {
					e := r.event(host, top, hashes(2*h+k, 2*h+k), []uint32{uint32(h), 1})
					e.BlockSize = 2
					r.apply(r2, e, Applied)
				}
			}
		}},
		{"parked", func(r *rig) {
			for i := range uint64(1024) {
				r.apply(r1, r.event(gpu, 1<<40+i, hashes(64*i, 64*i+63), tokens(i, 16*64)), Parked)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Options{Seed: 1, TTL: -1})
			r.store(r1, gpu, top, hashes(1<<41, 1<<41), p[:16])
			before := heapInUse()
			c.fill(r)
			heap := heapInUse() - before
			used, _ := r.ix.used()
			if got := float64(used.bytes); got < heap*0.7 || got > heap*1.5 {
				t.Errorf("%.0f bytes are counted, %.0f taken", got, heap)
			}
			runtime.KeepAlive(r)
		})
	}
}

// A member whose chunks lie in one place over and over fills neither the memory
// nor the index: there is a cap of its own, and the cap in bytes.
func TestChunksAreBounded(t *testing.T) {
	chunk := func(r *rig) *event.Event {
		r.size = 1
		r.store(r1, gpu, top, hashes(1<<41, 1<<41), []uint32{9})
		e := r.event(host, top, hashes(0, 0), []uint32{1, 2})
		e.BlockSize = 2
		return e
	}
	t.Run("by the member", func(t *testing.T) {
		r := newRig(t, Options{Seed: 1, TTL: -1})
		e := chunk(r)
		const limit, blocks = 1_048_576, 4096
		e.Hashes, e.Tokens = make([]uint64, blocks/2), make([]uint32, blocks)
		next := uint64(0)
		for v := Applied; v == Applied; {
			for i := range e.Hashes {
				e.Hashes[i] = next
				next++
			}
			e.Tokens[0] = uint32(next)
			v = r.ix.Apply(r1, e, r.now).Verdict
			if n := r.stats(r1).Chunks; n > limit || v != Applied && (v != Full || n < limit-blocks) {
				t.Fatalf("%v with %d chunks", v, n)
			}
		}
		r.remove(r1, host, hashes(0, blocks)...) // makes room again
		r.apply(r1, e, Applied)
		r.tiers(r1, e.Tokens, 0, blocks)
		r.ix.Purge(r1)
		if s := r.ix.Stats(); s.Runs != 0 || r.ix.member(r1).chunks.parts != 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("by the budget", func(t *testing.T) {
		r := newRig(t, Options{Seed: 1, TTL: -1, MaxBytes: 1 << 20})
		e := chunk(r)
		for h := range uint64(100_000) {
			e.Hashes[0] = h
			r.apply(r1, e, Applied)
		}
		r.wait(time.Second)
		if used, _ := r.ix.used(); used.bytes > 1<<20 || r.ix.Stats().Bytes != used.bytes || r.stats(r1).Chunks != 0 {
			t.Errorf("%+v in use, %d chunks", used, r.stats(r1).Chunks)
		}
	})
}

// Parked stores count, and go before anything that can be asked for.
func TestParkedCountInTheBudget(t *testing.T) {
	r := newRig(t, Options{Seed: 1, TTL: -1, MaxBytes: 1 << 20})
	p := tokens(1, 16*64)
	r.store(r1, gpu, top, hashes(1, 64), p)
	for i := range uint64(1000) {
		r.apply(r2, r.event(gpu, 1<<40+i, hashes(64*i, 64*i+63), tokens(i, 16*64)), Parked)
	}
	r.wait(time.Second)
	if s := r.stats(r2); s.OrphansNow != 0 || s.OrphansLost != 1000 || r.ix.Stats().Bytes > 1<<20 {
		t.Errorf("%+v, %d bytes", s, r.ix.Stats().Bytes)
	}
	r.depth(r1, p, 64)
	if n := r.ix.Stats().Evicted; n != 0 {
		t.Errorf("%d blocks evicted", n)
	}
}

// A member can make the index remember 64 further cache groups.
func TestGroupsAreBounded(t *testing.T) {
	r := newRig(t, Options{Seed: 1, TTL: -1})
	r.store(r1, gpu, top, hashes(1, 1), tokens(1, 16))
	for g := 1; g <= 200; g++ {
		r.ix.Apply(r1, r.stored(g, gpu, 1), r.now)
	}
	if s := r.stats(r1); len(s.Others) != 64 || s.Verdicts[OtherGroup] != 200-32 {
		t.Errorf("%d groups, %v", len(s.Others), s.Verdicts)
	}
}

// All windows of a member together hold 4,194,304 hashes.
func TestWindowsAreBounded(t *testing.T) {
	const limit, per = 1 << 22, 1 << 16
	r := newRig(t, Options{Seed: 1, TTL: -1})
	e := r.stored(1, gpu, hashes(1, per)...)
	for n := 0; n < limit; n += per {
		e.Group = 1 + n/per%2
		r.apply(r1, e, Applied)
		for i := range e.Hashes {
			e.Hashes[i] += per
		}
	}
	if o := r.apply(r1, e, Full); o.Unknown != 0 || r.ix.member(r1).resident() != limit {
		t.Errorf("%d hashes", r.ix.member(r1).resident())
	}
	r.ix.Purge(r1)
	if n := r.ix.member(r1).resident(); n != 0 {
		t.Errorf("%d are left", n)
	}
}
