package index

import (
	"bytes"
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
		if used := r.ix.used().bytes; used > limit || used != r.ix.Stats().Bytes {
			t.Fatalf("%d bytes in use, cap %d, Stats says %d", used, limit, r.ix.Stats().Bytes)
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
