package index

import (
	"slices"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// flood pushes blocks that nobody asks for through an index, prompts of 64 blocks
// round the members, while hot prompts are read once a second.
type flood struct {
	*rig
	members int
	hot     [][]uint32
	next    uint64
	e       event.Event
}

const (
	floodBlocks = 64
	floodHot    = 50
)

func newFlood(t *testing.T, o Options) *flood {
	f := &flood{rig: newRig(t, o), members: 8, next: 1}
	f.e = event.Event{Kind: event.Stored, BlockSize: 16, LoRAID: -1, Hashes: make([]uint64, floodBlocks), Tokens: make([]uint32, 16*floodBlocks)}
	for m := range f.members {
		f.ix.Register(pod.Member(m), Owner{Model: "m", Engine: pod.EngineVLLM})
	}
	for i := range floodHot {
		f.push()
		f.hot = append(f.hot, slices.Clone(f.e.Tokens))
		if i%2 == 0 { // some go on in further runs
			f.e.HasParent, f.e.Parent = true, f.next-1
			f.push()
			f.hot[i] = append(f.hot[i], f.e.Tokens...)
			f.e.HasParent = false
		}
	}
	return f
}

// push stores a prompt that was not there before.
func (f *flood) push() {
	for i := range f.e.Hashes {
		f.e.Hashes[i] = f.next
		for j := range f.e.Tokens[16*i:][:16] {
			f.e.Tokens[16*i+j] = uint32(f.next) + uint32(j)
		}
		f.next++
	}
	m := pod.Member(f.next / floodBlocks % uint64(f.members))
	if f.e.HasParent {
		m = pod.Member((f.next/floodBlocks - 1) % uint64(f.members)) // its parent's
	}
	f.ix.Apply(m, &f.e, f.now)
}

// second lets a second pass in which the hot prompts are read.
func (f *flood) second() {
	for i, p := range f.hot {
		f.ix.Lookup(&block.Prompt{Model: "m", Tokens: p, Cut: -1}, &f.out)
		if len(f.out.Matches) != 1 || f.out.Matches[0].Depth != int32(len(p)/16) {
			f.Fatalf("hot prompt %d of %d blocks: %+v", i, len(p)/16, f.out.Matches)
		}
	}
	f.wait(time.Second)
}

// TestFlood pushes ten times the cap through. It holds, the hot set stays, and
// the reverse maps keep up with what was evicted.
func TestFlood(t *testing.T) {
	limit, perSecond := 2_000_000, 200_000
	if raceBuild || testing.Short() {
		limit, perSecond = limit/40, perSecond/40
	}
	t.Run("IX-52 KV-45", func(t *testing.T) {
		f := newFlood(t, Options{MaxBlocks: limit, Seed: 1})
		held := 0
		for f.next < uint64(10*limit) {
			for range perSecond / floodBlocks {
				f.push()
			}
			f.second()
			s := f.ix.Stats()
			if s.Blocks > limit {
				t.Fatalf("%d blocks", s.Blocks)
			}
			held = max(held, s.Blocks)
		}
		s, live := f.ix.Stats(), 0
		for m := range f.members {
			live += f.stats(pod.Member(m)).Blocks[gpu]
		}
		if held < limit*9/10 || live != s.Blocks || s.Evicted != f.next-1-uint64(s.Blocks) {
			t.Errorf("most %d, then %d hashes of %d blocks; %d pushed, %d evicted", held, live, s.Blocks, f.next-1, s.Evicted)
		}
	})
	t.Run("in bytes", func(t *testing.T) {
		const limit = 4 << 20
		before := heapInUse()
		f := newFlood(t, Options{MaxBytes: limit, Seed: 1})
		for range 40 {
			for range 200 {
				f.push()
			}
			f.second()
			if s := f.ix.Stats(); s.Bytes > limit || s.Bytes < limit/2 && s.Evicted > 0 {
				t.Fatalf("%+v", s)
			}
		}
		// The tables keep the size they had before the sweep.
		if got := heapInUse() - before; got > 2*limit || got < limit/2 {
			t.Errorf("%.0f bytes in use, the cap is %d", got, limit)
		}
		if f.ix.Stats().Evicted == 0 {
			t.Error("nothing was evicted")
		}
	})
}
