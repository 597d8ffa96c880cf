package index

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

func TestPurge(t *testing.T) {
	t.Run("IX-50", func(t *testing.T) {
		r := newRig(t, Options{})
		p := tokens(1, 4096*16)
		fill := func() {
			r.store(r2, gpu, top, hashes(1, 100), p[:1600])
			for i := range uint64(40) {
				q := append(slices.Clone(p[:1600]), tokens(10+i, 1600)...)
				r.store(r1, gpu, top, hashes(1000*i+1, 1000*i+200), q)
				r.store(r1, gpu, top, hashes(1000*i+1, 1000*i+1), q[:16]) // duplicates
				r.apply(r1, r.event(gpu, 99999, hashes(90000+i, 90000+i), p[:16]), Parked)
				r.ix.Expect(r1, &block.Prompt{Model: "m", Tokens: q, Cut: -1})
			}
		}
		fill()
		r.ix.Purge(r1)
		before, stats := heapInUse(), r.ix.Stats()
		for range 10 {
			fill()
			r.ix.Purge(r1)
			r.depth(r1, p[:1600], 0)
			r.ix.Register(r1, Owner{Model: "m"}) // another pod takes the number
			r.depth(r1, p[:1600], 0)
		}
		if after := heapInUse(); after > before*1.05 {
			t.Errorf("heap %.0f, was %.0f", after, before)
		}
		if s := r.ix.Stats(); s.Blocks != stats.Blocks || s.Runs != stats.Runs {
			t.Errorf("%+v, was %+v", s, stats)
		}
		r.depth(r2, p[:1600], 100)
		if s := r.stats(r1); s.Blocks[gpu]+s.Copies[gpu]+s.OrphansNow+s.Expectations != 0 {
			t.Errorf("%+v", s)
		}
	})
	// While others write below the same root and readers look it up, the member is
	// gone the moment Purge returns, and is not there for the next owner.
	t.Run("IX-50 under load", func(t *testing.T) {
		r := newRig(t, Options{Seed: 1, TTL: -1})
		p := tokens(1, 16*64)
		q := &block.Prompt{Model: "m", Tokens: p, Cut: -1}
		var stop atomic.Bool
		var load sync.WaitGroup
		var purges, seen atomic.Int64 // purges counts twice: odd while the member may be there
		for w := range pod.Member(3) {
			m := 64 + w
			r.ix.Register(m, Owner{Model: "m", Engine: pod.EngineVLLM})
			load.Go(func() {
				for i := uint64(0); !stop.Load(); i++ {
					n := 1 + i%64
					r.ix.Apply(m, r.event(gpu, top, hashes(1, n), p[:16*n]), r.now)
					r.ix.Apply(m, &event.Event{Kind: event.Removed, Hashes: hashes(1+n/2, n)}, r.now)
				}
			})
		}
		for range 2 {
			load.Go(func() {
				var out Result
				for !stop.Load() {
					from := purges.Load()
					r.ix.Lookup(q, &out)
					there := slices.ContainsFunc(out.Matches, func(x Match) bool { return x.Member == r1 })
					if there && from%2 == 0 && purges.Load() == from {
						t.Error("a purged member is reported")
						return
					}
					if there {
						seen.Add(1)
					}
				}
			})
		}
		for round := 0; round < 300 || seen.Load() == 0; round++ {
			purges.Add(1)
			r.store(r1, gpu, top, hashes(1, 64), p)
			r.ix.Expect(r1, q)
			if round%50 == 0 {
				runtime.Gosched()
			}
			r.ix.Purge(r1)
			r.ix.Register(r1, Owner{Model: "m"})
			purges.Add(1)
			r.depth(r1, p, 0)
		}
		stop.Store(true)
		load.Wait()
		for m := range pod.Member(3) {
			r.ix.Purge(64 + m)
		}
		if s := r.ix.Stats(); s.Blocks != 0 || s.Runs != 0 {
			t.Errorf("left over: %+v", s)
		}
	})
}

// heap is what is in use after garbage is collected, in bytes.
func heapInUse() float64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&s)
	return float64(s.HeapAlloc)
}

func TestExpectations(t *testing.T) {
	p := tokens(1, 100)
	prompt := func(toks []uint32) *block.Prompt { return &block.Prompt{Model: "m", Tokens: toks, Cut: -1} }
	t.Run("followers see it until the request ends", func(t *testing.T) {
		r := newRig(t, Options{})
		x := r.ix.Expect(r1, prompt(p))
		if m := r.match(r1, p); m.Depth != 6 || m.Announced != 0 || m.Fastest != [event.NumTiers]int32{} {
			t.Errorf("%+v", m)
		}
		r.store(r1, gpu, top, hashes(1, 3), p[:48])
		if m := r.match(r1, p); m.Depth != 6 || m.Announced != 3 || m.Fastest[gpu] != 3 {
			t.Errorf("%+v", m)
		}
		x.Release()
		x.Release()
		r.depth(r1, p, 3)
	})
	t.Run("and for a while longer, until the events are there", func(t *testing.T) {
		r := newRig(t, Options{})
		x, y := r.ix.Expect(r1, prompt(p)), r.ix.Expect(r1, prompt(p))
		x.Expire(200)
		y.Expire(300)
		r.ix.Sweep(199)
		r.depth(r1, p, 6)
		r.ix.Sweep(200)
		r.depth(r1, p, 6) // of y
		r.store(r1, gpu, top, hashes(1, 3), p[:48])
		r.ix.Sweep(300)
		r.depth(r1, p, 3)
		x.Release()
		if n := r.stats(r1).Expectations; n != 0 {
			t.Errorf("%d are left", n)
		}
		Expectation{}.Expire(1)
	})
	t.Run("before the first event", func(t *testing.T) {
		r := newRig(t, Options{})
		r.ix.Register(r2, Owner{Model: "m", BlockSize: 64})
		x, y := r.ix.Expect(r1, prompt(p)), r.ix.Expect(r2, prompt(p))
		got := r.lookup(*prompt(p))
		if got[r1].Size != fallbackSize || got[r2].Size != 64 || got[r2].Depth != 1 {
			t.Errorf("%+v", got)
		}
		// The events tell another size: one match per member, the longer one.
		r.size = 32
		r.store(r1, gpu, top, hashes(1, 1), p[:32])
		if got = r.lookup(*prompt(p)); len(r.out.Matches) != 2 || got[r1].Size != 16 || got[r1].Depth != 6 {
			t.Errorf("%+v", r.out.Matches)
		}
		x.Release()
		y.Release()
		if got = r.lookup(*prompt(p)); len(r.out.Matches) != 1 || got[r1].Size != 32 {
			t.Errorf("%+v", r.out.Matches)
		}
	})
	t.Run("a prompt without a full block", func(t *testing.T) {
		r := newRig(t, Options{})
		r.ix.Expect(r1, prompt(p[:15])).Release()
		r.ix.Expect(r1, prompt(nil)).Release()
		Expectation{}.Release()
		if s := r.ix.Stats(); s.Runs != 0 || len(s.Sizes) != 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("many at once", func(t *testing.T) {
		r := newRig(t, Options{})
		var all []Expectation
		for n := range 100 {
			all = append(all, r.ix.Expect(r1, prompt(p[:n])), r.ix.Expect(r2, prompt(p[:n])))
		}
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, x := range all {
			x.Release()
		}
		if s := r.ix.Stats(); s.Runs != 0 || s.Blocks != 0 || r.stats(r1).Expectations != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestTTL(t *testing.T) {
	p := tokens(1, 512)
	r := newRig(t, Options{TTL: time.Minute})
	r.store(r1, gpu, top, hashes(1, 4), p[:64])
	r.store(r1, host, top, hashes(1, 4), p[:64])
	r.store(r1, disk, 4, hashes(5, 20), p[64:320])
	e := r.event(host, top, hashes(901, 902), p)
	e.BlockSize = 256
	r.apply(r1, e, Applied)
	r.wait(30 * time.Second)
	r.store(r1, disk, 4, hashes(5, 5), p[64:80]) // again: its segment lives on
	r.wait(40 * time.Second)
	r.tiers(r1, p, 4, 0, 12)
	r.wait(2 * time.Minute)
	r.tiers(r1, p, 4)
	if s := r.stats(r1); s.Blocks != [event.NumTiers]int{4} || s.Copies != s.Blocks || s.Chunks != 0 {
		t.Errorf("%+v", s)
	}
	if n := r.ix.Stats().Expired; n != 4+16+2 {
		t.Errorf("%d expired", n)
	}
}

func TestCap(t *testing.T) {
	t.Run("IX-52 IX-53 IX-55", func(t *testing.T) {
		const limit = 20_000
		r := newRig(t, Options{MaxBlocks: limit})
		kept := tokens(1, 16*64)
		r.store(r1, gpu, top, hashes(1, 64), kept)
		want := r.ix.Expect(r2, &block.Prompt{Model: "m", Tokens: tokens(2, 160), Cut: -1})
		slots, log := 0, uint32(0)
		next := uint64(1000)
		for round := range 60 { // 60 x 4,000 blocks, none removed
			for range 20 {
				p := append(slices.Clone(kept[:16*8]), tokens(next, 16*200)...)
				r.store(r1, gpu, top, append(hashes(1, 8), hashes(next, next+199)...), p)
				next += 200
			}
			r.depth(r1, kept, 64) // read every second
			r.wait(time.Second)
			if n := r.ix.Stats().Blocks; n > limit {
				t.Fatalf("round %d: %d blocks", round, n)
			}
			if m := r.ix.member(r1); round == 20 {
				slots, log = len(m.rev.table), m.rev.log.next
			} else if round > 20 && (len(m.rev.table) > 2*slots || m.rev.log.next > 2*log) {
				t.Fatalf("round %d: the reverse map grows", round)
			}
		}
		s := r.ix.Stats()
		if s.Evicted < 200_000 {
			t.Errorf("%d evicted", s.Evicted)
		}
		r.depth(r2, tokens(2, 160), 10) // expected: never evicted
		want.Release()
		r.apply(r1, r.event(gpu, 1000, hashes(5, 5), kept[:16]), Parked) // its parent was evicted
		if b := r.stats(r1).Blocks[gpu]; b > limit {
			t.Errorf("%d hashes in the reverse map", b)
		}
		r.ix.Purge(r1)
		if s := r.ix.Stats(); s.Blocks != 0 || s.Runs != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestDeadTails(t *testing.T) {
	t.Run("IX-54", func(t *testing.T) {
		r := newRig(t, Options{})
		head := tokens(1, 16*40)
		r.store(r1, gpu, top, hashes(1, 40), head)
		for i := range uint64(1000) {
			tail := tokens(100+i, 16*60)
			r.store(r1, gpu, 40, hashes(101, 160), tail)
			r.depth(r1, slices.Concat(head, tail), 100)
			r.remove(r1, gpu, hashes(101, 160)...)
			r.depth(r1, slices.Concat(head, tail), 40)
			if i%10 == 0 {
				r.wait(time.Second)
			}
		}
		r.wait(time.Second)
		s := r.ix.Stats()
		if live := 40; s.Dead > live/8+60 || s.Blocks > live+live/8+60 {
			t.Errorf("%+v", s)
		}
		if s.Trimmed == 0 {
			t.Error("nothing was trimmed")
		}
	})
}

// A reader that has a run while it is trimmed must not see what grows in the
// place of the tail: it would take it for the keys it has compared.
func TestTrimLeavesReadersAlone(t *testing.T) {
	r := newRig(t, Options{})
	p := tokens(1, 16*100)
	r.store(r1, gpu, top, hashes(1, 100), p)
	r.remove(r1, gpu, hashes(51, 100)...)
	old := r.ix.runs.get(0) // as a reader holds it
	keys := slices.Clone(old.keys(old.n.Load()))
	r.wait(time.Second)
	twin := r.ix.runs.get(0)
	if twin == old || twin.n.Load() != 50 || r.ix.Stats().Trimmed != 50 {
		t.Fatalf("not trimmed: %d keys", twin.n.Load())
	}
	r.store(r1, gpu, 50, hashes(201, 250), tokens(2, 16*50)) // grows in place
	if r.ix.runs.get(0) != twin || twin.n.Load() != 100 {
		t.Fatal("the twin did not grow")
	}
	if end := old.groups()[0].endNow(); end != 50 {
		t.Errorf("the old run is covered up to %d", end)
	}
	if n := old.n.Load(); n != 100 || !slices.Equal(old.keys(n), keys) {
		t.Error("the keys of the old run changed")
	}
}

// The oracle never says less than an index under a cap: eviction may lose, not
// invent.
func TestOracleWithCap(t *testing.T) {
	t.Run("IX-81", func(t *testing.T) {
		lost := 0
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 81))
			data := make([]byte, 6000)
			for i := range data {
				data[i] = byte(r.Uint32())
			}
			data[0] = byte(seed)
			w := newWorld(t, data)
			w.ix.max.blocks = 60
			w.capped = true
			w.run()
			lost += int(w.ix.Stats().Evicted)
		}
		if lost == 0 {
			t.Error("the cap never bit")
		}
	})
}

func TestShardWaits(t *testing.T) {
	t.Run("IX-84", func(t *testing.T) {
		r := newRig(t, Options{})
		shared := tokens(1, 16)
		const writers = 8
		h := r.ix.hasher
		sh := r.ix.shardOf(h.Root(h.Space(block.Namespace{Model: "m", Size: 16}), h.Key(shared)))
		sh.lock() // until every writer has found it taken
		done := make(chan pod.Member, writers)
		for m := range pod.Member(writers) {
			r.ix.Register(m, Owner{Model: "m"})
			go func() {
				for i := range uint64(300) {
					p := append(slices.Clone(shared), tokens(uint64(m)<<32|i, 16*30)...)
					h := append(hashes(1, 1), hashes(1000*i+1000, 1000*i+1029)...)
					r.ix.Apply(m, r.event(gpu, top, h, p), r.now)
				}
				done <- m
			}()
		}
		for sh.waits.Load() < writers {
			runtime.Gosched()
		}
		sh.unlock()
		for range writers {
			<-done
		}
		used := 0
		for i, n := range r.ix.Stats().ShardBlocks {
			if n > 0 {
				used++
				if n != 1+writers*300*30 {
					t.Errorf("shard %d: %d blocks", i, n)
				}
				if w := r.ix.Stats().ShardWaits[i]; w < writers {
					t.Errorf("shard %d was waited for %d times, by %d writers at least once each", i, w, writers)
				}
			} else if w := r.ix.Stats().ShardWaits[i]; w > 0 {
				t.Errorf("shard %d is empty and was waited for %d times", i, w)
			}
		}
		if used != 1 {
			t.Errorf("%d shards in use", used)
		}
		for m := range pod.Member(writers) {
			for _, i := range []uint64{0, 299} {
				r.depth(m, append(slices.Clone(shared), tokens(uint64(m)<<32|i, 16*30)...), 31)
			}
		}
	})
}
