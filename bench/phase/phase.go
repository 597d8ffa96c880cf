// Package phase measures an index under the workload, one phase at a time. All
// times are CPU times of one thread, hashing included; every phase but Beside
// runs on the thread of its caller, which must be locked to it.
package phase

import (
	"sync/atomic"

	"github.com/eppctl/eppctl/bench/workload"
)

// Index is what is measured. One goroutine may call Store, Remove and Drop
// while another one calls Lookup and Depth.
type Index interface {
	// Store tells that the rank has the stretch now. Its content hangs below the
	// parent, which the rank has.
	Store(s *workload.Stretch)
	// Remove tells that the rank no longer has these blocks on that tier.
	Remove(rank int, host bool, aliases []uint64)
	// Send ends a batch: what was told since the last one came in one message of
	// one rank, and counts when Send returns.
	Send()
	// Drop removes all that a rank has.
	Drop(rank int)
	// Lookup finds who has how much of a prompt.
	Lookup(tokens []uint32)
	// Depth is what the last Lookup found for a rank.
	Depth(rank int) workload.Truth
}

// Load stores the whole workload, per blocks at a time.
func Load(ix Index, w *workload.Workload, host bool, per int) Rate {
	return rate(func(r *Rate) {
		w.Stores(host, per, func(s *workload.Stretch) {
			tell(ix, s)
			r.count(s.To - s.From)
		})
	})
}

// tell sends a batch of one store.
func tell(ix Index, s *workload.Stretch) {
	ix.Store(s)
	ix.Send()
}

// Mix is what an engine with a full cache tells: each pick's tail is evicted,
// last block first, and stored again some evictions later. At the end all is
// back. Evictions are of so many blocks per event, vLLM's of one, and so many
// events per batch.
func Mix(ix Index, w *workload.Workload, picks []workload.Pick, per, batch int) Rate {
	gone := make([][]uint64, len(picks)) // what the events say; not what is measured
	for i, p := range picks {
		gone[i] = backwards(w.Tail(p))
	}
	return rate(func(r *Rate) {
		restore := func(p workload.Pick) {
			w.Tail(p).Cut(workload.PerEvent, func(s *workload.Stretch) {
				tell(ix, s)
				r.count(s.To - s.From)
			})
		}
		for i, p := range picks {
			rank := w.Holder(p).Rank
			for n, g := 1, gone[i]; len(g) > 0; n, g = n+1, g[min(per, len(g)):] {
				ix.Remove(rank, false, g[:min(per, len(g))])
				r.count(min(per, len(g)))
				if n%batch == 0 {
					ix.Send()
				}
			}
			ix.Send()
			if i >= workload.Window {
				restore(picks[i-workload.Window])
			}
		}
		for _, p := range picks[max(0, len(picks)-workload.Window):] {
			restore(p)
		}
	})
}

func backwards(s workload.Stretch) []uint64 {
	names := s.Names()
	b := make([]uint64, len(names))
	for i, a := range names {
		b[len(b)-1-i] = a
	}
	return b
}

// Decode lets the picked holders grow by one block per event, in turns; those of
// one rank that follow each other make a batch. Their tails are evicted before and
// complete afterwards, neither of it timed.
func Decode(ix Index, w *workload.Workload, picks []workload.Pick) Rate {
	for _, p := range picks {
		ix.Remove(w.Holder(p).Rank, false, backwards(w.Tail(p)))
		ix.Send()
	}
	r := rate(func(r *Rate) {
		for i := range workload.Grown {
			told := -1
			for _, p := range picks {
				s := w.Tail(p)
				if s.Rank != told {
					ix.Send()
					told = s.Rank
				}
				s.From += i
				s.To = s.From + 1
				ix.Store(&s)
				r.count(1)
			}
		}
		ix.Send()
	})
	for _, p := range picks {
		s := w.Tail(p)
		s.From += workload.Grown
		s.Cut(workload.PerEvent, func(s *workload.Stretch) { tell(ix, s) })
	}
	return r
}

// refresh is the writer beside a reader: flat out, it removes the last blocks of
// one holder after the other and stores them again.
func refresh(ix Index, w *workload.Workload, picks []workload.Pick, stop *atomic.Bool) Rate {
	return rate(func(r *Rate) {
		for i := 0; !stop.Load(); i++ {
			s, ok := w.Last(picks[i%len(picks)])
			if !ok {
				continue
			}
			ix.Remove(s.Rank, false, s.Names())
			ix.Send()
			tell(ix, &s)
			r.count(s.To - s.From)
			r.count(s.To - s.From)
		}
	})
}

func rate(f func(*Rate)) Rate {
	var r Rate
	t := CPU()
	f(&r)
	r.CPU = CPU() - t
	return r
}

func (r *Rate) count(blocks int) {
	r.Blocks += blocks
	r.Events++
}

// Wrong counts the depths that differ from the truth.
func Wrong(ix Index, w *workload.Workload, truths []workload.Truth) int {
	wrong := 0
	for _, i := range w.Checked() {
		ix.Lookup(w.Conversations[i].Tokens)
		for rank := range w.Ranks {
			if ix.Depth(rank) != truths[0] {
				wrong++
			}
			truths = truths[1:]
		}
	}
	return wrong
}

// Drops removes the first n ranks and returns what each took.
func Drops(ix Index, n int) Samples {
	watch := NewStopwatch()
	var s Samples
	for rank := range n {
		t := CPU()
		ix.Drop(rank)
		s = append(s, watch.Since(t))
	}
	return s
}
