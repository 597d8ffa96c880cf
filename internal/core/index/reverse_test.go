package index

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
)

// TestReverse holds the reverse map against a Go map, with hashes that share
// their mixed half, so that slots of one value compete, and with enough churn
// for rebuilds and for generations to wrap.
func TestReverse(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 5))
		m := reverse{secret: r.Uint64() | 1, pool: new(tablePool)}
		inverse := m.secret // of an odd number modulo 2^64, by Newton
		for range 6 {
			inverse *= 2 - m.secret*inverse
		}
		hashes := make([]uint64, 600)
		for i := range hashes {
			hashes[i] = r.Uint64()
			if i%3 == 1 {
				hashes[i] = (hashes[i-1]*m.secret&^0xFFFFFFFF | uint64(r.Uint32())) * inverse
				if m.mix(hashes[i]) != m.mix(hashes[i-1]) {
					t.Fatal("the pair does not collide")
				}
			}
		}
		hashes[0] = 0
		type entry struct {
			at    place
			tiers [event.NumTiers]bool
		}
		want := map[uint64]*entry{}
		taken := map[place]bool{}
		for step := range 60_000 {
			h := hashes[r.IntN(len(hashes))]
			tier := event.Tier(r.IntN(int(event.NumTiers)))
			at, ok := m.lookup(h)
			e := want[h]
			if ok != (e != nil) {
				t.Fatalf("seed %d step %d: %x found %v, want %v", seed, step, h, ok, e != nil)
			}
			switch {
			case e == nil && r.IntN(3) > 0: // a chain of neighbours
				run, off, near := r.Uint32N(400), r.Uint32N(50), uint32(0)
				for i := range 1 + r.IntN(20) {
					h := hashes[(r.IntN(2)*300+i)%len(hashes)]
					p := place{run, off + uint32(i)}
					if want[h] != nil || taken[p] {
						continue
					}
					m.reserve(1)
					slot, _, _ := m.find(h)
					near = m.insert(slot, h, p, tier, near)
					want[h], taken[p] = &entry{at: p}, true
					want[h].tiers[tier] = true
				}
			case e == nil:
			case e.at != m.log.place(at):
				t.Fatalf("seed %d step %d: %x at the wrong place", seed, step, h)
			case m.on(at, tier) != e.tiers[tier]:
				t.Fatalf("seed %d step %d: %x on tier %v: %v", seed, step, h, tier, m.on(at, tier))
			case e.tiers[tier]:
				m.lower(at, tier)
				m.recent = at
				e.tiers[tier] = false
				if e.tiers == [event.NumTiers]bool{} {
					delete(want, h)
					delete(taken, e.at)
				}
			case r.IntN(2) == 0:
				m.raise(at, tier)
				e.tiers[tier] = true
			}
			if m.live != len(want) {
				t.Fatalf("seed %d step %d: %d live, want %d", seed, step, m.live, len(want))
			}
		}
		for h, e := range want {
			if at, ok := m.lookup(h); !ok || e.at != m.log.place(at) {
				t.Fatalf("seed %d: %x lost", seed, h)
			}
		}
		segments, live := map[uint32]uint16{}, 0
		for at, s := range m.log.held {
			segments[at/pageHash]++
			live += bits.OnesCount16(s.any())
		}
		if live != len(want) {
			t.Errorf("seed %d: a walk of the log shows %d hashes, want %d", seed, live, len(want))
		}
		for p := range m.log.pages {
			if got, n := m.log.pages[p].held, segments[uint32(p)]; got != n {
				t.Errorf("seed %d: page %d counts %d segments, has %d", seed, p, got, n)
			}
		}
		if n := len(m.table); n > 1000 {
			t.Errorf("seed %d: %d buckets for %d hashes", seed, n, len(want))
		}
	}
}

// A log that is full refuses a store, and says so.
func TestReverseFull(t *testing.T) {
	var l seglog
	l.next = 1<<logBits/segBlocks - 2
	if !l.room(0) || l.room(1) {
		t.Error("room at the end of the log")
	}
	l.next -= 10
	if !l.room(10) || l.room(11) {
		t.Error("room near the end of the log")
	}
}
