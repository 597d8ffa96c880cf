// Package product puts eppctl's own index under the benchmark.
package product

import (
	"fmt"
	"time"

	"github.com/eppctl/eppctl/bench/phase"
	"github.com/eppctl/eppctl/bench/workload"
	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
)

const (
	model = "m"
	seed  = 1
	now   = int64(time.Hour) // at which everything happens
)

// Index is eppctl's index with a batch and a prompt to fill.
type Index struct {
	*index.Index
	batch  [workload.Batch]event.Event // filled in place, as the decoder does
	n      int                         // events in it
	rank   int                         // whose
	prompt block.Prompt
	found  index.Result
}

var _ phase.Index = (*Index)(nil)

// New returns an empty index of the workload's ranks. If sized, each rank says
// beforehand how many blocks its engine has, as engines do in production.
func New(w *workload.Workload, sized bool) *Index {
	start := time.Now()
	o := index.Options{Seed: seed, Clock: func() int64 { return int64(time.Since(start)) }}
	ix := handle(index.New(o))
	blocks := make([]int, w.Ranks)
	if sized {
		blocks = held(w)
	}
	for rank, n := range blocks {
		ix.Register(pod.Member(rank), index.Owner{Model: model, Engine: pod.EngineVLLM, Blocks: n})
	}
	return ix
}

// Handle is the same index for one more goroutine.
func (ix *Index) Handle() *Index { return handle(ix.Index) }

func handle(shared *index.Index) *Index {
	ix := &Index{Index: shared, prompt: block.Prompt{Model: model, Cut: -1}}
	for i := range ix.batch {
		ix.batch[i].BlockSize, ix.batch[i].LoRAID = workload.Size, -1
	}
	return ix
}

// held counts each rank's distinct blocks on the GPU.
func held(w *workload.Workload) []int {
	names := make([]map[uint64]struct{}, w.Ranks)
	for i := range names {
		names[i] = map[uint64]struct{}{}
	}
	w.Stores(false, workload.PerEvent, func(s *workload.Stretch) {
		for _, a := range s.Names() {
			names[s.Rank][a] = struct{}{}
		}
	})
	n := make([]int, w.Ranks)
	for i := range n {
		n[i] = len(names[i]) + 1 // vLLM keeps one block for itself
	}
	return n
}

func tier(host bool) event.Tier {
	if host {
		return event.TierHost
	}
	return event.TierGPU
}

// Store adds a store to the batch.
func (ix *Index) Store(s *workload.Stretch) {
	e := ix.next(s.Rank)
	e.Kind, e.Tier, e.Hashes, e.Tokens = event.Stored, tier(s.Host), s.Names(), s.Content()
	e.Parent, e.HasParent = s.Parent()
}

// Remove adds a removal to the batch.
func (ix *Index) Remove(rank int, host bool, aliases []uint64) {
	e := ix.next(rank)
	e.Kind, e.Tier, e.Hashes = event.Removed, tier(host), aliases
}

func (ix *Index) next(rank int) *event.Event {
	e := &ix.batch[ix.n]
	ix.n++
	ix.rank = rank
	return e
}

// Send applies the batch.
func (ix *Index) Send() {
	ix.ApplyBatch(pod.Member(ix.rank), ix.batch[:ix.n], now)
	ix.n = 0
}

// Refused counts events that were not taken in full, and hashes that were not
// known: there should be none.
func (ix *Index) Refused() (n uint64) {
	for rank := range pod.Member(pod.MaxMembers) {
		s, _ := ix.Member(rank)
		for v, times := range s.Verdicts {
			if index.Verdict(v) != index.Applied {
				n += times
			}
		}
		n += s.Unknown
	}
	return n
}

// Drop removes a rank.
func (ix *Index) Drop(rank int) { ix.Purge(pod.Member(rank)) }

// Lookup looks a prompt up.
func (ix *Index) Lookup(tokens []uint32) {
	ix.prompt.Tokens = tokens
	ix.Index.Lookup(&ix.prompt, &ix.found)
}

// Depth is what the last lookup found for a rank.
func (ix *Index) Depth(rank int) workload.Truth {
	for i := range ix.found.Matches {
		if m := &ix.found.Matches[i]; int(m.Member) == rank {
			return workload.Truth{GPU: int(m.Fastest[event.TierGPU]), Depth: int(m.Depth)}
		}
	}
	return workload.Truth{}
}

// Matches is how many ranks the last lookup found.
func (ix *Index) Matches() int { return len(ix.found.Matches) }

// Check says what is wrong with the index's answers and with what it took in.
func (ix *Index) Check(w *workload.Workload, truths []workload.Truth) error {
	if n := phase.Wrong(ix, w, truths); n > 0 {
		return fmt.Errorf("%d of %d depths are wrong", n, len(truths))
	}
	if n := ix.Refused(); n > 0 {
		return fmt.Errorf("%d events were not taken in full", n)
	}
	return nil
}

// Floor returns the product's hash floor: its own block hash over the prompt,
// compared with keys in one array per conversation.
func Floor(w *workload.Workload) phase.Floor {
	h := block.NewHasher(seed)
	keys := make([][]block.Key, len(w.Conversations))
	for i := range keys {
		for t := w.Conversations[i].Tokens; len(t) > 0; t = t[workload.Size:] {
			keys[i] = append(keys[i], h.Key(t[:workload.Size]))
		}
	}
	return func(i int, tokens []uint32) bool {
		n, _ := h.Match(keys[i], tokens, workload.Size)
		return n == len(keys[i])
	}
}
