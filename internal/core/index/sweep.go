package index

import (
	"sync/atomic"
	"time"

	"github.com/eppctl/eppctl/internal/core/event"
)

// sweepRuns bounds the runs one Sweep looks at, about 5 ms of work; a larger
// index is gone through in turns.
const sweepRuns = 1 << 16

// ttlSteps is how often per TTL a member's blocks are looked through.
const ttlSteps = 16

// sweeper is where the last Sweep left off. It belongs to Index.admin.
type sweeper struct {
	next uint32 // run id
	sum  int    // dead blocks seen in this turn
	dead atomic.Int64
	// bytes in use after the last Sweep.
	bytes atomic.Int64
}

// Sweep does what no event triggers: it gives orphans up, lets copies below the
// GPU expire, trims dead tails and keeps the memory cap. Call it about once a
// second with the time in ns.
func (ix *Index) Sweep(now int64) {
	ix.admin.Lock()
	defer ix.admin.Unlock()
	ix.tick(now)
	for i := range ix.members {
		if m := ix.members[i].Load(); m != nil {
			ix.sweepMember(m, now)
		}
	}
	ix.trim()
	ix.evict()
}

func (ix *Index) sweepMember(m *member, now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.OrphansLost += uint64(m.parked.expire(now))
	m.expected.expire(now)
	if ix.ttl > 0 && now >= m.expiry {
		m.expiry = now + ix.ttl/ttlSteps
		ix.expire(m, now)
	}
}

// expire drops the copies below the GPU that were stored longer than the TTL
// ago: some offload layers announce stores and never removals. It is coarse: 16
// neighbouring blocks live as long as the youngest of them.
func (ix *Index) expire(m *member, now int64) {
	old := func(stored uint32) bool {
		return int32(uint32((now-ix.ttl)/int64(time.Second))-stored) > 0
	}
	var w withdrawal
	m.gone = m.gone[:0]
	for t := event.TierHost; t < event.NumTiers; t++ {
		if m.rev.tiers[t] == 0 {
			continue
		}
		for at, s := range m.rev.log.held {
			if s.tiers[t] == 0 || !old(s.stored) {
				continue
			}
			for i := range uint32(segBlocks) {
				if s.tiers[t]>>i&1 == 0 {
					continue
				}
				p, hash := place{s.run, s.off + i}, m.rev.log.hash(at+i)
				m.rev.forgetAgain(at+i, t)
				m.rev.lower(at+i, t)
				if m.groups.windows != nil && s.any()>>i&1 == 0 {
					m.gone = append(m.gone, standing{hash, p})
				}
				ix.expired.Add(1)
				if !m.others.drop(p, layer(t)) {
					w.add(ix, m, p, layer(t))
				}
			}
		}
	}
	w.flush(ix, m)
	ix.hideWindows(m, m.gone)
	ix.expireWindows(m, old)
	for hash, c := range m.chunks.byHash {
		if old(c.stored) {
			ix.dropChunk(m, hash, c)
			ix.expired.Add(1)
		}
	}
}
