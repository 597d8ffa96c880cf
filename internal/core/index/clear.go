package index

import (
	"math/bits"
	"slices"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// clearTiers applies AllBlocksCleared. When no medium is named, vLLM means its
// GPU cache and says nothing of what was offloaded; SGLang's flush is taken to
// empty its host pool too, the safe side.
func (ix *Index) clearTiers(m *member, e *event.Event) {
	all := e.Tier == event.TierAll || e.Medium == "" && m.owner.Engine == pod.EngineSGLang
	if e.Shared {
		return
	}
	ix.lose(m, func() {
		ix.clear(m, func(l layer) bool { return all || l.tier() == e.Tier })
	})
}

// clear drops the announced layers for which drop says so. m.mu is held.
func (ix *Index) clear(m *member, drop func(layer) bool) {
	hybrid := len(m.groups.windows) > 0
	var runs []uint32
	if hybrid { // hashes cease to be live all over: show their windows anew
		runs = m.rev.runs()
	}
	lost := func(l layer) bool { return hybrid && l.window() || l.announced() && drop(l) }
	runs = append(runs, m.rev.clear(drop)...)
	for hash, c := range m.chunks.byHash {
		before := c.tiers
		for t := range event.NumTiers {
			if drop(layer(t) | layerChunk) {
				c.tiers &^= 1 << t
				c.again[t] = 0
			}
		}
		if c.tiers == before {
			continue
		}
		for _, s := range c.path {
			runs = append(runs, s.run)
		}
		if c.tiers == 0 {
			m.chunks.forget(hash, c)
		}
	}
	m.others.clear(lost)
	m.parked.clear(drop)
	ix.forget(m, runs, lost)
	if hybrid {
		m.clearWindows(func(t event.Tier) bool { return drop(layer(t)) })
		ix.reshowWindows(m)
	}
}

// forget takes layers of runs from the member. Expectations end otherwise.
func (ix *Index) forget(m *member, runs []uint32, lost func(layer) bool) {
	slices.Sort(runs)
	for _, id := range slices.Compact(runs) {
		// It may have been reaped with a child of it just now, and the id may even
		// be in use again: then the member holds nothing there.
		if r := ix.runs.lock(id); r != nil {
			began := m.losing != nil && r.begins(m.id)
			r.forget(m.id, lost)
			if began && !r.begins(m.id) {
				m.losing.add(r.first)
			}
			ix.reap(r)
			r.shard.unlock()
		}
	}
}

// runs lists the runs of all live hashes, some more than once.
func (m *reverse) runs() (ids []uint32) {
	for _, s := range m.log.held {
		ids = append(ids, s.run)
	}
	return ids
}

// clear takes the tiers for which drop says so from every hash. It returns the
// runs concerned, some of them twice.
func (m *reverse) clear(drop func(layer) bool) (runs []uint32) {
	for at, s := range m.log.held {
		before := s.any()
		touched := false
		for t := range s.tiers {
			if s.tiers[t] != 0 && drop(layer(t)) {
				m.tiers[t] -= bits.OnesCount16(s.tiers[t])
				m.clearAgain(at, event.Tier(t))
				s.tiers[t] = 0
				touched = true
			}
		}
		if !touched {
			continue
		}
		runs = append(runs, s.run)
		after := s.any()
		m.live -= bits.OnesCount16(before &^ after)
		if after == 0 {
			m.log.free(at)
		}
	}
	return runs
}

// drop forgets all that the member announced and all that was learned from it;
// expectations stay. m.mu is held.
func (ix *Index) drop(m *member) {
	ix.clear(m, func(layer) bool { return true })
	m.rev.pool.put(m.rev.table)
	m.rev = reverse{secret: m.rev.secret, pool: m.rev.pool, hint: m.rev.hint}
	m.others, m.chunks, m.parked = nil, chunks{}, orphans{}
	m.groups, m.sizing, m.named = groups{}, sizing{}, named{}
	ix.setSize(m, 0)
}

// Purge drops all that a member announced or is expected to hold: after a lost
// event, a restart, or when its pod leaves. When it returns, no lookup reports
// the member and its number may go to another owner; no event may be applied
// for it meanwhile.
func (ix *Index) Purge(id pod.Member) { ix.purge(id, ix.drop) }

func (ix *Index) purge(id pod.Member, drop func(*member)) {
	m := ix.member(id)
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	ix.lost[id].Store(nil) // what was stored since is not known
	drop(m)
	m.expected.releaseAll()
	m.stats.Purges++
}
