package sim

import (
	"math/rand/v2"
	"testing"
	"time"
)

func testScheduler(blocks int, sglang bool) *scheduler {
	p := H100x2
	p.Budget, p.MaxRunning = 64, 4
	return &scheduler{prof: p, size: 4, pool: newPool(blocks), sglang: sglang}
}

func (s *scheduler) drain(t *testing.T) []kvEvent {
	t.Helper()
	var events []kvEvent
	for range 100_000 {
		if _, busy := s.plan(); !busy {
			return append(events, s.events...)
		}
		events = append(events, s.finish()...)
	}
	t.Fatal("the scheduler never gets idle")
	return nil
}

func TestSchedulerCachedTokens(t *testing.T) {
	for _, sglang := range []bool{false, true} {
		s := testScheduler(64, sglang)
		run := func(n int) int {
			q := newSequence(namespace{}, sequenceOf(n), 3)
			s.waiting = append(s.waiting, q)
			s.drain(t)
			if got := len(q.out); got != 3 {
				t.Fatalf("%d tokens, want 3", got)
			}
			return q.cached
		}
		// cached = min(matched, (n-1)/size)*size, as real engines report.
		for _, tt := range []struct{ n, want int }{{15, 0}, {15, 12}, {16, 12}, {17, 16}, {3, 0}, {12, 8}} {
			if got := run(tt.n); got != tt.want {
				t.Errorf("sglang %v, %d tokens: %d cached, want %d", sglang, tt.n, got, tt.want)
			}
		}
	}
}

// A follower of the events knows exactly what the pool holds, whatever happened:
// eviction, preemption, abort, equal prompts at once.
func TestEventsMirrorThePool(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 2))
		sglang := seed%2 == 1
		s := testScheduler(20, sglang)
		mirror := map[digest]int{}
		apply := func(events []kvEvent) {
			for _, e := range events {
				for _, h := range e.hashes {
					switch e.kind {
					case storedEvent:
						mirror[h]++
					case removedEvent:
						if mirror[h]--; mirror[h] < 0 {
							t.Fatalf("seed %d: a block was removed that was not stored", seed)
						}
					}
				}
				if e.kind == storedEvent && len(e.tokens) != len(e.hashes)*s.size {
					t.Fatalf("seed %d: %d tokens in %d blocks", seed, len(e.tokens), len(e.hashes))
				}
			}
		}
		var live []*sequence
		for range 400 {
			if rng.IntN(3) > 0 {
				n := 2 + rng.IntN(30)
				prompt := sequenceOf(n)
				prompt[rng.IntN(n)] = uint32(rng.IntN(3))
				q := newSequence(namespace{}, prompt, 1+rng.IntN(20))
				s.waiting = append(s.waiting, q)
				live = append(live, q)
			}
			if rng.IntN(6) == 0 && len(live) > 0 {
				live[rng.IntN(len(live))].aborted = true
			}
			if _, busy := s.plan(); busy {
				apply(s.finish())
			}
		}
		apply(s.drain(t))
		for h, n := range mirror {
			if len(s.pool.byHash[h]) != n {
				t.Fatalf("seed %d: events say %d copies, the pool has %d", seed, n, len(s.pool.byHash[h]))
			}
		}
		for h, list := range s.pool.byHash {
			if mirror[h] != len(list) {
				t.Fatalf("seed %d: the pool has %d copies, events say %d", seed, len(list), mirror[h])
			}
		}
		if s.pool.usage() != 0 {
			t.Fatalf("seed %d: an idle pool is in use", seed)
		}
		if seed > 4 && s.stats.preempted == 0 && s.stats.evicted == 0 {
			t.Fatalf("seed %d: the test never ran out of blocks", seed)
		}
	}
}

func TestSchedulerQueuesBeyondItsLimits(t *testing.T) {
	s := testScheduler(200, false)
	for i := range 6 {
		prompt := sequenceOf(40)
		prompt[0] = uint32(1000 + i)
		s.waiting = append(s.waiting, newSequence(namespace{}, prompt, 8))
	}
	s.plan()
	// 64 tokens of budget: one prompt of 40 and 24 tokens of the next.
	if len(s.running) != 2 || len(s.waiting) != 4 {
		t.Fatalf("running %d waiting %d, want 2 and 4", len(s.running), len(s.waiting))
	}
	s.finish()
	for range 6 {
		s.plan()
		s.finish()
	}
	if len(s.running) != 4 || len(s.waiting) != 2 {
		t.Fatalf("running %d waiting %d, want 4 and 2", len(s.running), len(s.waiting))
	}
}

func TestStepTimeOfAFullChunk(t *testing.T) {
	// One chunk of 8,192 tokens takes 0.40 s on the fitted hardware.
	d := H100x2.stepTime(8192, 8192*8192/2, 0, 1)
	if d < 390*time.Millisecond || d > 410*time.Millisecond {
		t.Fatalf("a chunk of 8,192 tokens takes %v", d)
	}
}
