package phase

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eppctl/eppctl/bench/workload"
)

// Floor does the part of a lookup of a conversation that no index can leave
// out: it hashes all blocks of the prompt and compares them with keys that lie
// ready one beside the other. It reports whether all are equal.
type Floor func(conversation int, tokens []uint32) bool

// Lookups are the times of single lookups, and of the floor beside them.
type Lookups struct {
	Cold, Hot, Miss     Samples
	FloorCold, FloorHot Samples
}

// Lookup looks up the picked conversations one after the other. The tokens are
// in the processor's cache, as they are after tokenizing. Cold is the first
// lookup of a conversation since long, Hot the third in a row, and Miss has
// other tokens behind the blocks shared by the app.
func Lookup(ix Index, w *workload.Workload, picks []int, floor Floor) Lookups {
	var l Lookups
	watch := NewStopwatch()
	timed := func(s *Samples, f func()) {
		t := CPU()
		f()
		*s = append(*s, watch.Since(t))
	}
	var prompt []uint32
	for _, i := range picks {
		prompt = append(prompt[:0], w.Conversations[i].Tokens...)
		lookup := func() { ix.Lookup(prompt) }
		timed(&l.Cold, lookup)
		lookup()
		timed(&l.Hot, lookup)

		equal := true
		least := func() { equal = equal && floor(i, prompt) }
		timed(&l.FloorCold, least)
		least()
		timed(&l.FloorHot, least)
		if !equal {
			panic("the floor does not know the prompt")
		}

		for j := workload.Shared * workload.Size; j < len(prompt); j++ {
			prompt[j] ^= workload.Foreign
		}
		timed(&l.Miss, lookup)
	}
	return l
}

// Both is what a reader and a writer do side by side.
type Both struct {
	Lookup Samples // CPU time
	Wall   Samples // the same lookups by the clock on the wall, preemption included
	Writer Rate
}

// Beside looks up the picked conversations while a second thread removes and
// stores flat out.
func Beside(ix Index, w *workload.Workload, lookups []int, writes []workload.Pick) Both {
	var b Both
	var stop, running atomic.Bool
	var done sync.WaitGroup
	done.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		running.Store(true)
		b.Writer = refresh(ix, w, writes, &stop)
	})
	for !running.Load() {
		runtime.Gosched()
	}
	watch := NewStopwatch()
	var prompt []uint32
	for _, i := range lookups {
		prompt = append(prompt[:0], w.Conversations[i].Tokens...)
		wall, t := time.Now(), CPU()
		ix.Lookup(prompt)
		b.Lookup = append(b.Lookup, watch.Since(t))
		b.Wall = append(b.Wall, time.Since(wall))
	}
	stop.Store(true)
	done.Wait()
	return b
}
