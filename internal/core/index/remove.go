package index

import "github.com/eppctl/eppctl/internal/core/event"

// remove takes the hashes from one tier; each stands alone. It returns how many
// were not known. m.mu is held.
func (ix *Index) remove(m *member, t event.Tier, hashes []uint64) (unknown int) {
	var w withdrawal
	m.gone = m.gone[:0]
	misses := 0
	for i, hash := range hashes {
		at, ok := m.rev.beside(hash)
		if !ok {
			if misses++; misses == 3 { // not a chain: let the misses of the rest overlap
				m.sink = m.rev.warm(hash, hashes[i:])
			}
			at, ok = m.rev.lookup(hash)
		}
		switch {
		case ok:
			ix.takeAt(m, &w, at, t)
		case ix.removeChunk(m, hash, t):
		case m.parked.remove(hash, layer(t)):
		default:
			unknown++
		}
	}
	w.flush(ix, m)
	if len(m.gone) > 0 {
		ix.hideWindows(m, m.gone)
	}
	return unknown
}

// takeAt takes one copy of the live hash at a place from tier t, if it is held there.
func (ix *Index) takeAt(m *member, w *withdrawal, at uint32, t event.Tier) {
	s := m.rev.log.segment(at)
	if s.tiers[t]>>(at%segBlocks)&1 == 0 || m.rev.dropAgain(at, t) {
		return
	}
	p := place{s.run, s.off + at%segBlocks}
	m.rev.lowerIn(s, at, t)
	m.rev.recent = at
	if m.groups.windows != nil && s.any()>>(at%segBlocks)&1 == 0 {
		m.gone = append(m.gone, standing{m.rev.log.hash(at), p})
	}
	if !m.others.drop(p, layer(t)) {
		w.add(ix, m, p, layer(t))
	}
}

// unplace takes the hash at a place from all tiers, because it now means another place.
func (ix *Index) unplace(m *member, at uint32, d due) {
	var w withdrawal
	p, hash := m.rev.log.place(at), m.rev.log.hash(at)
	for t := range event.NumTiers {
		if !m.rev.on(at, t) {
			continue
		}
		m.rev.forgetAgain(at, t)
		m.rev.lower(at, t)
		switch l := layer(t); {
		case m.others.drop(p, l):
		case d.has(p, l):
			m.vacated = append(m.vacated, p)
		default:
			w.add(ix, m, p, l)
		}
	}
	w.flush(ix, m)
	ix.hideWindows(m, []standing{{hash, p}})
}

// withdraw takes a stretch of a run from the member.
func (ix *Index) withdraw(m *member, id uint32, l layer, a, b uint32) {
	sh := ix.runs.get(id).shard
	sh.lock()
	if r := ix.runs.get(id); !r.dead { // an evicted run is held by nobody
		r.release(m.id, l, a, b)
		ix.reap(r)
	}
	sh.unlock()
}
