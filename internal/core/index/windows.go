package index

import (
	"github.com/eppctl/eppctl/internal/core/event"
)

// A hybrid model has several KV cache groups. Those with a sliding window keep
// only the end of a prompt, so their blocks make no chain; but they go by the
// hashes of the group that keeps all. What such a group holds is kept as a set
// of hashes, and shown to readers as a layer of coverage on the places where
// these hashes stand in the trie: readers see a place covered exactly while some
// hash is live there that the group holds too. It does not matter which of the
// groups announces a block first; engines mostly list the windows before.

// maxWindows bounds the cache groups of one member whose rule is applied.
const maxWindows = 32

// maxResident bounds the hashes that the other groups of a member may hold.
const maxResident = 1 << 22

// window is what a cache group besides the indexed one holds.
type window struct {
	held   map[uint64]resident
	copies [event.NumTiers]int // as the engine counts them
	again  [event.NumTiers]int // of these, further copies of a hash
	// sparse is set when a store named fewer hashes than its tokens have blocks.
	sparse bool
}

// resident counts the copies of one hash.
type resident struct {
	count  [event.NumTiers]uint8
	stored uint32 // second of the latest store below the GPU, for the TTL
}

func (r resident) any() bool { return r.count != [event.NumTiers]uint8{} }

// windowLayer is the layer that shows the i-th window.
func windowLayer(i int) layer { return layerWindow + layer(2*i) }

// ahead is the layer of what the window will hold when an expected prompt has
// been computed.
func (l layer) ahead() layer { return l + 1 }

func (w *window) holds(hash uint64) bool {
	_, ok := w.held[hash]
	return ok
}

// add counts one more copy, up to the same cap as in the trie.
func (w *window) add(r *resident, t event.Tier) {
	if r.count[t] > maxAgain {
		return
	}
	if r.count[t] > 0 {
		w.again[t]++
	}
	r.count[t]++
	w.copies[t]++
}

// drop takes n of the copies away.
func (w *window) drop(r *resident, t event.Tier, n uint8) {
	r.count[t] -= n
	w.copies[t] -= int(n)
	if w.again[t] -= int(n); r.count[t] == 0 && n > 0 {
		w.again[t]++ // the first copy is none of those
	}
}

// storeWindow adds copies to a group. It returns how many did not fit.
func (ix *Index) storeWindow(m *member, i int, e *event.Event, second uint32) (lost int) {
	w := &m.groups.windows[i]
	var g grant
	for _, hash := range e.Hashes {
		r, was := w.held[hash]
		if !was && m.resident() >= maxResident {
			lost++
			continue
		}
		if w.held == nil {
			w.held = map[uint64]resident{}
		}
		w.add(&r, e.Tier)
		if e.Tier != event.TierGPU {
			r.stored = second
		}
		w.held[hash] = r
		if at, ok := m.rev.lookup(hash); ok && !was {
			g.add(ix, m, m.rev.log.place(at), windowLayer(i))
		}
	}
	g.flush(ix, m)
	return lost
}

// resident is the number of hashes the windows hold.
func (m *member) resident() (n int) {
	for i := range m.groups.windows {
		n += len(m.groups.windows[i].held)
	}
	return n
}

// removeWindow takes copies from a group. It returns how many were not known.
func (ix *Index) removeWindow(m *member, i int, t event.Tier, hashes []uint64) (unknown int) {
	w := &m.groups.windows[i]
	var x withdrawal
	for _, hash := range hashes {
		r, ok := w.held[hash]
		if !ok || r.count[t] == 0 {
			unknown++
			continue
		}
		w.drop(&r, t, 1)
		if r.any() {
			w.held[hash] = r
			continue
		}
		delete(w.held, hash)
		if at, ok := m.rev.lookup(hash); ok {
			ix.uncover(m, &x, m.rev.log.place(at), windowLayer(i))
		}
	}
	x.flush(ix, m)
	return unknown
}

// uncover takes one of the hashes that a place goes by off a layer.
func (ix *Index) uncover(m *member, w *withdrawal, p place, l layer) {
	if !m.others.drop(p, l) {
		w.add(ix, m, p, l)
	}
}

// standing is a hash and where it stands, or stood, in the trie.
type standing struct {
	hash uint64
	at   place
}

// showWindows covers the places of hashes that have come alive.
func (ix *Index) showWindows(m *member, came []standing) {
	for i := range m.groups.windows {
		w := &m.groups.windows[i]
		var g grant
		for _, s := range came {
			if w.holds(s.hash) {
				g.add(ix, m, s.at, windowLayer(i))
			}
		}
		g.flush(ix, m)
	}
}

// hideWindows uncovers the places of hashes that are live no more.
func (ix *Index) hideWindows(m *member, gone []standing) {
	for i := range m.groups.windows {
		w := &m.groups.windows[i]
		var x withdrawal
		for _, s := range gone {
			if w.holds(s.hash) {
				ix.uncover(m, &x, s.at, windowLayer(i))
			}
		}
		x.flush(ix, m)
	}
}

// forgetResident drops a hash from every window. Coverage is the caller's business.
func (m *member) forgetResident(hash uint64) {
	for i := range m.groups.windows {
		w := &m.groups.windows[i]
		r, ok := w.held[hash]
		if !ok {
			continue
		}
		for t := range event.NumTiers {
			w.drop(&r, t, r.count[t])
		}
		delete(w.held, hash)
	}
}

// clearWindows drops tiers from every window. Coverage is the caller's business.
func (m *member) clearWindows(drop func(event.Tier) bool) {
	for i := range m.groups.windows {
		w := &m.groups.windows[i]
		for hash, r := range w.held {
			for t := range event.NumTiers {
				if drop(t) {
					w.drop(&r, t, r.count[t])
				}
			}
			if r.any() {
				w.held[hash] = r
			} else {
				delete(w.held, hash)
			}
		}
	}
}

// reshowWindows covers all that the windows hold and is live: after their
// coverage was taken from the member.
func (ix *Index) reshowWindows(m *member) {
	for i := range m.groups.windows {
		w := &m.groups.windows[i]
		if len(w.held) == 0 {
			continue
		}
		var g grant
		for at, s := range m.rev.log.held {
			for k, held := uint32(0), s.any(); held != 0; k, held = k+1, held>>1 {
				if held&1 != 0 && w.holds(m.rev.log.hash(at+k)) {
					g.add(ix, m, place{s.run, s.off + k}, windowLayer(i))
				}
			}
		}
		g.flush(ix, m)
	}
}

// expireWindows drops copies below the GPU that are too old.
func (ix *Index) expireWindows(m *member, old func(stored uint32) bool) {
	for i := range m.groups.windows {
		w := &m.groups.windows[i]
		var x withdrawal
		for hash, r := range w.held {
			if !old(r.stored) {
				continue
			}
			for t := event.TierHost; t < event.NumTiers; t++ {
				w.drop(&r, t, r.count[t])
			}
			if r.any() {
				w.held[hash] = r
				continue
			}
			delete(w.held, hash)
			ix.expired.Add(1)
			if at, ok := m.rev.lookup(hash); ok {
				ix.uncover(m, &x, m.rev.log.place(at), windowLayer(i))
			}
		}
		x.flush(ix, m)
	}
}

// forgetAgain leaves one copy of each hash on a tier.
func (w *window) forgetAgain(t event.Tier) {
	for hash, r := range w.held {
		if r.count[t] > 1 {
			w.drop(&r, t, r.count[t]-1)
			w.held[hash] = r
		}
	}
}
