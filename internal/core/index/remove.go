package index

import "github.com/eppctl/eppctl/internal/core/event"

// removal is one removal or several in a row: what leaves a run together leaves
// it at once, when the removal is finished.
type removal struct {
	withdrawal
	begun  bool
	misses int // hashes that did not stand beside the one before
}

// remove takes the hashes from one tier; each stands alone. It returns how many
// were not known. m.mu is held.
func (ix *Index) remove(m *member, t event.Tier, hashes []uint64) (unknown int) {
	var r removal
	unknown = ix.take(m, &r, t, hashes)
	ix.finish(m, &r)
	return unknown
}

// removeEverywhere removes hashes of which the engine does not say on which tier
// they are: a copy from each that has one. Hashes that the fastest tier's turn
// does not find, and that no other tier has, are unknown.
func (ix *Index) removeEverywhere(m *member, e *event.Event, now int64, second uint32) (o Outcome) {
	one := *e
	for t := range event.NumTiers {
		if t > event.TierGPU && !m.holdsOn(t) {
			continue
		}
		one.Tier = t
		x := ix.apply(m, &one, now, second)
		if t == event.TierGPU {
			o = x
		}
	}
	return o
}

// holdsOn reports whether the member may have anything on a tier.
func (m *member) holdsOn(t event.Tier) bool {
	n, _ := m.copies(t)
	return n > 0 || len(m.chunks.byHash) > 0 || m.parked.events > 0
}

// take takes the hashes out of the reverse map. Until finish the member still
// covers their places, so nothing but further removals may come in between.
func (ix *Index) take(m *member, r *removal, t event.Tier, hashes []uint64) (unknown int) {
	if !r.begun {
		r.begun = true
		m.gone = m.gone[:0]
	}
	for i, hash := range hashes {
		at, ok := m.rev.beside(hash)
		if !ok {
			if r.misses++; r.misses == 3 { // not a chain: let the misses of the rest overlap
				m.sink = m.rev.warm(hash, hashes[i:])
			}
			at, ok = m.rev.lookup(hash)
		}
		switch {
		case ok:
			ix.takeAt(m, &r.withdrawal, at, t)
		case ix.removeChunk(m, hash, t):
		case m.parked.remove(hash, layer(t)):
		default:
			unknown++
		}
	}
	return unknown
}

// finish ends the coverage of what was taken.
func (ix *Index) finish(m *member, r *removal) {
	if !r.begun {
		return
	}
	r.flush(ix, m)
	if len(m.gone) > 0 {
		ix.hideWindows(m, m.gone)
	}
	*r = removal{}
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
	if r := ix.runs.lock(id); r != nil { // an evicted run is held by nobody
		r.release(m.id, l, a, b)
		ix.reap(r)
		r.shard.unlock()
	}
}
