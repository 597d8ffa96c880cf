package tap

import (
	"math/bits"

	"github.com/eppctl/eppctl/internal/core/event"
)

// thin leaves events out so that a person can read on, and counts them.
type thin struct {
	sample uint64 // one block of so many is shown; 0 and 1 = all
	rate   int    // events shown per second; 0 = all

	second   int64
	shown    int
	bySample uint64
	byRate   uint64
}

// hides reports whether an event is left out, now in ns. A block is always in or
// always out, in all its events; an event of several blocks is in when one is.
func (t *thin) hides(ev *event.Event, now int64) bool {
	if t.sample > 1 && len(ev.Hashes) > 0 && !t.sampled(ev.Hashes) {
		t.bySample++
		return true
	}
	if t.rate > 0 {
		if s := now / 1e9; s != t.second {
			t.second, t.shown = s, 0
		}
		if t.shown >= t.rate {
			t.byRate++
			return true
		}
		t.shown++
	}
	return false
}

func (t *thin) sampled(hashes []uint64) bool {
	for _, h := range hashes {
		// The hashes of some engines are counters in tests: their high product
		// bits are spread, their low bits are not.
		hi, _ := bits.Mul64(h*0x9e3779b97f4a7c15, t.sample)
		if hi == 0 {
			return true
		}
	}
	return false
}
