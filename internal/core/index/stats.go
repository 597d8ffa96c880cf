package index

import (
	"math"
	"slices"
	"time"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// MemberStats is the state of one member and what its events came to since it
// was registered.
type MemberStats struct {
	BlockSize int // tokens, 0 = not known yet
	Group     int // the KV cache group that is indexed, -1 = none yet
	// Others are the further cache groups of a hybrid model. Approximate is set
	// when one of them is of a kind that is not known: matches are too long at
	// times.
	Others      []GroupKind
	Approximate bool
	// Blocks counts the distinct hashes held per tier, Copies the copies as the
	// engine counts them, Chunks the offload chunks.
	Blocks, Copies [event.NumTiers]int
	Chunks         int
	// Inflated is set while more distinct blocks count as held on the GPU than
	// the engine has: removals were lost, and only a reset helps.
	Inflated     bool
	Expectations int // live
	OrphansNow   int // parked
	OrphanBlocks int

	Verdicts                                    [NumVerdicts]uint64
	Unknown                                     uint64 // hashes of removals and placeholders
	OrphansParked, OrphansAttached, OrphansLost uint64
	Purges                                      uint64
	// Breaches counts how often the copies on the GPU came to exceed the
	// engine's blocks, so that all but one copy of each block was forgotten.
	Breaches uint64
}

// Member returns the statistics of a member; false if it is not registered.
func (ix *Index) Member(id pod.Member) (MemberStats, bool) {
	m := ix.member(id)
	if m == nil {
		return MemberStats{Group: -1}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stats
	s.BlockSize = int(m.size.Load())
	if s.Group = -1; m.groups.known {
		s.Group = m.groups.indexed
	}
	s.Others = slices.Clone(m.groups.others)
	if h := m.hybrid.Load(); h != nil {
		s.Approximate = h.approximate
	}
	s.Blocks = m.rev.tiers
	for t := range s.Copies {
		s.Copies[t], _ = m.copies(event.Tier(t))
	}
	s.Chunks = len(m.chunks.byHash)
	n, again := m.copies(event.TierGPU)
	s.Inflated = m.capacity > 0 && n-again > m.capacity
	s.OrphansNow, s.OrphanBlocks = m.parked.events, m.parked.blocks
	m.expected.mu.Lock()
	s.Expectations = len(m.expected.live)
	m.expected.mu.Unlock()
	return s, true
}

// Stats is the state of the whole index.
type Stats struct {
	Blocks  int // distinct blocks, dead ones included
	Dead    int // of these, at the last sweep, those behind the last one held
	Runs    int
	Bytes   int64 // at the last sweep, by the model of Options.MaxBytes
	Members int   // registered
	Sizes   []int
	// MaxBlocks and MaxBytes are the caps; 0 = no cap by size.
	MaxBlocks int
	MaxBytes  int64
	// ShardBlocks, ShardWaits and ShardWaited are per writer lock: how the blocks
	// spread, how often a writer found the lock taken, and for how long.
	ShardBlocks [shards]int
	ShardWaits  [shards]uint64
	ShardWaited [shards]time.Duration // 0 without Options.Clock
	Evicted     uint64                // blocks dropped for the memory cap
	Expired     uint64                // hashes dropped by the TTL
	Trimmed     uint64                // dead blocks given back
}

// Stats may be called from any goroutine; the numbers are not one instant's.
func (ix *Index) Stats() Stats {
	s := Stats{
		Dead: int(ix.sweep.dead.Load()), Bytes: ix.sweep.bytes.Load(), Sizes: slices.Sorted(slices.Values(ix.sizes.now())),
		Evicted: ix.evicted.Load(), Expired: ix.expired.Load(), Trimmed: ix.trimmed.Load(),
		MaxBlocks: ix.max.blocks,
	}
	if ix.max.bytes < math.MaxInt64 {
		s.MaxBytes = ix.max.bytes
	}
	for i := range ix.shards {
		sh := &ix.shards[i]
		blocks, _, runs := sh.size()
		s.ShardBlocks[i], s.ShardWaits[i], s.ShardWaited[i] = blocks, sh.waits.Load(), time.Duration(sh.waited.Load())
		s.Blocks += blocks
		s.Runs += runs
	}
	for i := range ix.members {
		if ix.members[i].Load() != nil {
			s.Members++
		}
	}
	return s
}
