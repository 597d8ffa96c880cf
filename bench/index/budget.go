package main

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/eppctl/eppctl/bench/phase"
	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// The budget: ten times what fits is pushed through, while a hot set of prompts
// is asked for once a second.
const (
	budgetBlocks  = 2_000_000
	pushedBlocks  = 20_000_000
	pushPerSecond = 250_000
	budgetMembers = 64
	promptBlocks  = 512
	hotPrompts    = 64
	perEvent      = 32
)

// flood stores prompts nobody has seen before; its clock runs as it stores.
type flood struct {
	ix     *index.Index
	next   uint64 // alias, and what makes the tokens of a block its own
	now    time.Duration
	tokens [promptBlocks * 16]uint32
	names  [promptBlocks]uint64
	out    index.Result
}

// prompt stores a new prompt on a member and returns its tokens, valid until the
// next.
func (f *flood) prompt(m pod.Member) []uint32 {
	for i := range f.names {
		f.next++
		f.names[i] = f.next
		b := f.tokens[i*16 : (i+1)*16]
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], f.next)
		b[0], b[1] = binary.LittleEndian.Uint32(w[:4]), binary.LittleEndian.Uint32(w[4:])
	}
	for a := 0; a < promptBlocks; a += perEvent {
		e := event.Event{
			Kind: event.Stored, BlockSize: 16, LoRAID: -1,
			Hashes: f.names[a : a+perEvent], Tokens: f.tokens[a*16 : (a+perEvent)*16],
		}
		if a > 0 {
			e.HasParent, e.Parent = true, f.names[a-1]
		}
		f.ix.Apply(m, &e, int64(f.now))
	}
	return f.tokens[:]
}

// kept is the share of the hot prompts' blocks that their members still have.
func (f *flood) kept(hot [][]uint32) float64 {
	kept := 0
	for i, t := range hot {
		f.ix.Lookup(&block.Prompt{Model: "m", Tokens: t, Cut: -1}, &f.out)
		for _, m := range f.out.Matches {
			if int(m.Member) == i%budgetMembers {
				kept += int(m.Depth)
			}
		}
	}
	return float64(kept) / float64(len(hot)*promptBlocks)
}

// budget pushes 20 million distinct blocks through a budget of 2 million.
func (b *bench) budget() error {
	before := phase.Heap()
	f := &flood{ix: index.New(index.Options{Seed: 1, MaxBlocks: budgetBlocks}), now: time.Hour}
	for m := range pod.Member(budgetMembers) {
		f.ix.Register(m, index.Owner{Model: "m", Engine: pod.EngineVLLM})
	}
	var hot [][]uint32
	for i := range hotPrompts {
		hot = append(hot, append([]uint32(nil), f.prompt(pod.Member(i%budgetMembers))...))
	}
	var r phase.Rate
	var sweep time.Duration
	most, heap, kept := 0, 0, 1.0
	for r.Blocks < pushedBlocks {
		t := phase.CPU()
		for n := 0; n < pushPerSecond; n += promptBlocks {
			f.prompt(pod.Member(r.Blocks / promptBlocks % budgetMembers))
			r.Blocks += promptBlocks
		}
		f.now += time.Second
		kept = min(kept, f.kept(hot))
		s := phase.CPU()
		f.ix.Sweep(int64(f.now))
		sweep = max(sweep, phase.CPU()-s)
		r.CPU += phase.CPU() - t
		most = max(most, f.ix.Stats().Blocks)
		if r.Blocks%(8*pushPerSecond) < pushPerSecond {
			heap = max(heap, phase.Heap()-before)
		}
	}
	b.add("budget_blocks", float64(most))
	b.add("budget_hot_kept", kept)
	b.add("budget_bytes_per_block", float64(heap)/budgetBlocks)
	b.add("budget_sweep", sweep.Seconds()*1e3)
	b.add("budget_blocks_per_second", r.BlocksPerSecond())
	if most > budgetBlocks {
		return fmt.Errorf("%d blocks were kept with a budget of %d", most, budgetBlocks)
	}
	if kept < 1 {
		return fmt.Errorf("only %.1f %% of the hot prompts' blocks were kept", 100*kept)
	}
	return nil
}
