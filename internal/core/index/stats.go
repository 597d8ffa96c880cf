package index

import (
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
	// Others are the cache groups left out. A member that has any is predicted
	// from its full-attention blocks alone, hence too high at times.
	Others []GroupKind
	// Blocks counts the distinct hashes held per tier, Copies the copies as the
	// engine counts them, Chunks the offload chunks.
	Blocks, Copies [event.NumTiers]int
	Chunks         int
	// Inflated is set when the copies on the GPU exceed what the engine can
	// hold: it repeated stores without making copies, and only a reset helps.
	Inflated     bool
	Expectations int // live
	OrphansNow   int // parked
	OrphanBlocks int

	Verdicts                                    [NumVerdicts]uint64
	Unknown                                     uint64 // hashes of removals and placeholders
	OrphansParked, OrphansAttached, OrphansLost uint64
	Purges                                      uint64
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
	s.Blocks = m.rev.tiers
	for t := range s.Copies {
		s.Copies[t] = s.Blocks[t] + m.rev.again[t]
	}
	s.Chunks = len(m.chunks)
	// vLLM keeps one block of its pool for itself.
	s.Inflated = m.owner.Blocks > 0 && s.Copies[event.TierGPU] > m.owner.Blocks-m.reserved()
	s.OrphansNow, s.OrphanBlocks = m.parked.events, m.parked.blocks
	m.expected.mu.Lock()
	s.Expectations = len(m.expected.live)
	m.expected.mu.Unlock()
	return s, true
}

func (m *member) reserved() int {
	if m.owner.Engine == pod.EngineVLLM {
		return 1
	}
	return 0
}

// Stats is the state of the whole index.
type Stats struct {
	Blocks  int // distinct blocks, dead ones included
	Dead    int // of these, at the last sweep, those behind the last one held
	Runs    int
	Members int // registered
	Sizes   []int
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
		Dead: int(ix.sweep.dead.Load()), Sizes: slices.Sorted(slices.Values(ix.sizes.now())),
		Evicted: ix.evicted.Load(), Expired: ix.expired.Load(), Trimmed: ix.trimmed.Load(),
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

// blocks is the number of distinct blocks.
func (ix *Index) blocks() (n int) {
	for i := range ix.shards {
		blocks, _, _ := ix.shards[i].size()
		n += blocks
	}
	return n
}
