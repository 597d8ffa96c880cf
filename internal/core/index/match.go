package index

import (
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// Match is what one member holds of a looked-up prompt: contiguous from block 0.
// All counts are in blocks of Size tokens. It is small: of a shared trunk a lookup
// writes one for every member of the fleet, and a thousand of them should stay in
// the processor's first-level cache.
type Match struct {
	Member pod.Member
	// Approximate is set when the model has cache groups whose rule is not
	// known: the engine may find less than Depth.
	Approximate bool
	// Beyond counts the blocks behind Depth that the member holds in vain: a
	// sliding window of its model lacks some that a hit there needs.
	Beyond int32
	Size   int32 // tokens per block
	// Depth counts blocks announced by the engine or expected from our own
	// placements; Announced leaves the expected ones out.
	//
	// For a hybrid model both are what the engine can use of this prompt: it
	// computes the last token anew, and what it then needs of each window counts.
	Depth, Announced int32
	// Fastest counts, of the Announced blocks, those whose fastest copy lies on
	// each tier; the entries add up to Announced.
	Fastest [event.NumTiers]int32
}

// plain sets all of x, in place: depth blocks, announced on the GPU.
func (x *Match) plain(m pod.Member, size, depth int) {
	x.Member, x.Approximate, x.Beyond = m, false, 0
	x.Size, x.Depth, x.Announced = int32(size), int32(depth), int32(depth)
	x.Fastest = [event.NumTiers]int32{}
	x.Fastest[event.TierGPU] = int32(depth)
}

// Result is caller-owned and reused: a lookup writes Matches and allocates
// nothing once its capacity suffices.
type Result struct {
	Matches []Match // members with Depth > 0, in no order
	scratch
}
