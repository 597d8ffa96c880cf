package main

import (
	"fmt"
	"runtime"

	"github.com/eppctl/eppctl/bench/phase"
	"github.com/eppctl/eppctl/bench/product"
	"github.com/eppctl/eppctl/bench/workload"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// bench holds the workloads and, by name, what every round measured.
type bench struct {
	small, large *fleet
	rooted       *fleet // the small fleet with a root for each app
	spread       *fleet // the small fleet's ranks, 16 apart: as many matches, among 1,024 ranks
	lookups      int
	values       map[string][]float64
}

// fleet is a workload with what goes with it.
type fleet struct {
	*workload.Workload
	*workload.Draws
	one, two []workload.Truth
	floor    phase.Floor
}

func newBench(lookups int) *bench {
	small := workload.New(64)
	b := &bench{
		small: newFleet(small), large: newFleet(workload.New(pod.MaxMembers)), spread: newFleet(spread(small)),
		rooted:  newFleet(small.Apart()),
		lookups: lookups, values: map[string][]float64{},
	}
	return b
}

func newFleet(w *workload.Workload) *fleet {
	return &fleet{Workload: w, Draws: w.Draw(), one: w.Truths(false), two: w.Truths(true), floor: product.Floor(w)}
}

func spread(w *workload.Workload) *workload.Workload {
	s := &workload.Workload{Ranks: pod.MaxMembers, Order: w.Order}
	for _, c := range w.Conversations {
		holders := append([]workload.Holder(nil), c.Holders...)
		for i := range holders {
			holders[i].Rank *= s.Ranks / w.Ranks
		}
		c.Holders = holders
		s.Conversations = append(s.Conversations, c)
	}
	return s
}

func (b *bench) add(name string, v float64) { b.values[name] = append(b.values[name], v) }

// round measures everything once. The parts take turns, so that a busy minute
// of the machine does not hit one of them alone.
func (b *bench) round() error {
	for _, part := range []func() error{b.oneTier, b.twoTiers, b.smallEvents, b.contended, b.largeFleet} {
		if err := part(); err != nil {
			return err
		}
		runtime.GC() // the index of one part is no load on the next
	}
	return nil
}

// oneTier is the fleet of 64 with its GPU caches alone.
func (b *bench) oneTier() error {
	f := b.small
	before := phase.Heap()
	ix := product.New(f.Workload, false)
	b.stored("", phase.Load(ix, f.Workload, false, workload.PerEvent))
	b.add("bytes_per_block_one_tier", float64(phase.Heap()-before)/float64(ix.Stats().Blocks))
	if err := ix.Check(f.Workload, f.one); err != nil {
		return fmt.Errorf("after the load: %w", err)
	}
	b.looked("", ix, f)
	b.allocations(ix, f)
	b.beside(ix, f)

	b.add("steady_mix", phase.Mix(ix, f.Workload, f.Evict, workload.PerEvent, 1).BlocksPerSecond())
	b.add("steady_mix_single", phase.Mix(ix, f.Workload, f.Evict, 1, 1).BlocksPerSecond())
	batched := phase.Mix(ix, f.Workload, f.Evict, 1, workload.Batch)
	b.add("steady_mix_single_batched", batched.BlocksPerSecond())
	b.add("steady_mix_single_batched_events", batched.EventsPerSecond())
	b.add("decode_events_per_second", phase.Decode(ix, f.Workload, f.Decode).EventsPerSecond())
	b.add("decode_batched_events_per_second", phase.Decode(ix, f.Workload, f.Steps).EventsPerSecond())
	if err := ix.Check(f.Workload, f.one); err != nil {
		return fmt.Errorf("after all was evicted and stored again: %w", err)
	}
	b.removal(ix)
	return nil
}

// twoTiers is the same fleet with its host caches.
func (b *bench) twoTiers() error {
	f := b.small
	before := phase.Heap()
	ix := product.New(f.Workload, false)
	b.stored("_two_tiers", phase.Load(ix, f.Workload, true, workload.PerEvent))
	b.add("bytes_per_block", float64(phase.Heap()-before)/float64(ix.Stats().Blocks))
	b.add("gc_cycle", phase.Collect().Seconds()*1e3)
	b.looked("_two_tiers", ix, f)
	return ix.Check(f.Workload, f.two)
}

// smallEvents loads with fewer blocks per event.
func (b *bench) smallEvents() error {
	for _, per := range []int{4, 1} {
		ix := product.New(b.small.Workload, false)
		b.stored(fmt.Sprint("_", per), phase.Load(ix, b.small.Workload, false, per))
		if n := ix.Refused(); n > 0 {
			return fmt.Errorf("%d blocks per event: %d events were not taken in full", per, n)
		}
	}
	return nil
}

// largeFleet is the workload of 1,024 ranks, and that of 64 among 1,024.
func (b *bench) largeFleet() error {
	f := b.large
	before := phase.Heap()
	ix := product.New(f.Workload, false)
	b.stored("_1024_members", phase.Load(ix, f.Workload, true, workload.PerEvent))
	b.add("bytes_per_block_1024_members", float64(phase.Heap()-before)/float64(ix.Stats().Blocks))
	b.looked("_1024_members", ix, f)
	if err := ix.Check(f.Workload, f.two); err != nil {
		return fmt.Errorf("1,024 members: %w", err)
	}

	f = b.spread
	ix = product.New(f.Workload, false)
	phase.Load(ix, f.Workload, true, workload.PerEvent)
	b.looked("_64_of_1024_members", ix, f)
	if err := ix.Check(f.Workload, f.two); err != nil {
		return fmt.Errorf("64 of 1,024 members: %w", err)
	}
	return nil
}

func (b *bench) stored(suffix string, r phase.Rate) {
	b.add("stored_blocks_per_second"+suffix, r.BlocksPerSecond())
	b.add("stored_events_per_second"+suffix, r.EventsPerSecond())
}

func (b *bench) looked(suffix string, ix *product.Index, f *fleet) {
	for _, class := range []struct {
		blocks int
		picks  []int
	}{{workload.Short, f.Short}, {workload.Long, f.Long}} {
		l := phase.Lookup(ix, f.Workload, class.picks[:b.lookups], f.floor)
		name := fmt.Sprint("lookup_", class.blocks)
		for kind, s := range map[string]phase.Samples{"_hot": l.Hot, "_cold": l.Cold, "_miss": l.Miss} {
			b.add(name+kind+suffix, s.Micros(0.5))
			b.add(name+kind+suffix+"_p99", s.Micros(0.99))
		}
		b.add(fmt.Sprint("floor_", class.blocks, suffix), l.FloorHot.Micros(0.5))
		b.add(fmt.Sprint("floor_", class.blocks, suffix, "_cold"), l.FloorCold.Micros(0.5))
		if class.blocks == workload.Long {
			b.add("matches"+suffix, float64(ix.Matches()))
		}
	}
}

func (b *bench) allocations(ix *product.Index, f *fleet) {
	i := 0
	b.add("lookup_allocs", phase.Allocations(func() {
		ix.Lookup(f.Conversations[f.Long[i]].Tokens)
		i++
	}))
}

func (b *bench) beside(ix *product.Index, f *fleet) {
	for _, class := range []struct {
		blocks int
		picks  []int
	}{{workload.Short, f.Short}, {workload.Long, f.Long}} {
		both := phase.Beside(ix, f.Workload, class.picks[:b.lookups], f.Refresh)
		name := fmt.Sprint("lookup_", class.blocks, "_beside_writer")
		b.add(name, both.Lookup.Micros(0.5))
		b.add(name+"_p99", both.Lookup.Micros(0.99))
		b.add(name+"_wall", both.Wall.Micros(0.5))
		b.add(name+"_wall_p99", both.Wall.Micros(0.99))
		if class.blocks == workload.Long {
			b.add("writer_beside_reader", both.Writer.BlocksPerSecond())
			b.add("writer_beside_reader_events", both.Writer.EventsPerSecond())
		}
	}
}

// removal takes half of the members away.
func (b *bench) removal(ix *product.Index) {
	const n = 32
	held := 0
	for rank := range n {
		s, _ := ix.Member(pod.Member(rank))
		held += s.Blocks[event.TierGPU]
	}
	s := phase.Drops(ix, n)
	var sum float64
	for _, d := range s {
		sum += float64(d.Nanoseconds())
	}
	b.add("remove_member", s.Micros(0.5)/1e3)
	b.add("remove_member_per_block", sum/float64(held))
}
