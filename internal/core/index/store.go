package index

import (
	"iter"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
)

// store puts a chain under its parent. m.mu is held.
func (ix *Index) store(m *member, c *chain, second uint32) Verdict {
	r, off, near, v := ix.parentOf(m, c)
	if v != Applied {
		return v
	}
	switch {
	case c.span > 1 && !m.chunks.room(len(c.keys)), c.span == 1 && !m.rev.log.room(len(c.hashes)):
		return Full
	case c.span == 1:
		m.rev.reserve(len(c.hashes))
	}

	m.sink ^= r.warm()
	sh := r.shard
	if r.isRoot() {
		sh.lock()
	} else if r = ix.runs.lock(r.id); r == nil {
		return Evicted
	}
	var few [4]stretch
	path := ix.lay(m, r, off, c, second, few[:0])
	sh.unlock()

	if c.span == 1 {
		ix.enter(m, c, path, second, near)
	} else {
		ix.enterChunks(m, c, path, second)
	}
	return Applied
}

// parentOf finds the run and offset below which the chain goes, and the log
// place of the block before it.
func (ix *Index) parentOf(m *member, c *chain) (r *run, off, near uint32, v Verdict) {
	known := false
	if c.hasParent {
		if at, ok := m.rev.lookupParent(c.parent); ok {
			p := m.rev.log.place(at)
			r, off, near, known = ix.runs.get(p.run), p.off+1, at, true
		} else if ch := m.chunks.byHash[c.parent]; ch != nil {
			last := ch.path[len(ch.path)-1]
			r, off, known = ix.runs.get(last.run), last.off+last.n, true
		} else if c.parent != 0 {
			return nil, 0, 0, orphaned
		}
		// Parent 0 without a block of that hash: some producers write it for "none".
	}
	if !known {
		c.keys[0] = ix.hasher.Root(c.space.full, c.keys[0])
		ix.regained(m, c.keys[0])
		return &ix.shardOf(c.keys[0]).root, 0, 0, Applied
	}
	if r == nil {
		return nil, 0, 0, Evicted
	}
	if c.space.unsalted != r.space.unsalted || c.salted && c.space.full != r.space.full {
		return nil, 0, 0, OtherSpace
	}
	c.space = r.space // a child inherits its parent's salt
	return r, off, near, Applied
}

// lay walks the keys from (r, off), makes what is missing and covers all of it but
// what is gone. The shard is locked.
func (ix *Index) lay(m *member, r *run, off uint32, c *chain, second uint32, path []stretch) []stretch {
	laid := uint32(0)
	for r, s := range ix.path(r, off, c.keys, c.space) {
		r.touch(second)
		// After the keys: nobody may see coverage of keys that are not there.
		if c.gone == nil {
			s.before = r.hold(m.id, c.layer, s.off, s.off+s.n)
			path = append(path, s)
			continue
		}
		for part := range c.left(s, laid) {
			part.before = r.hold(m.id, c.layer, part.off, part.off+part.n)
			path = append(path, part)
		}
		laid += s.n
	}
	return path
}

// path makes the runs of a chain of keys below (r, off), where they are missing,
// and yields the stretches they lie in. It covers nothing: the caller does before
// it unlocks the shard.
func (ix *Index) path(r *run, off uint32, keys []block.Key, sp spaces) iter.Seq2[*run, stretch] {
	return func(yield func(*run, stretch) bool) {
		for {
			from, n := off, r.n.Load()
			keys, off = r.follow(keys, off, n)
			if len(keys) > 0 && off == n && !r.isRoot() && r.kid(n, keys[0]) == nil {
				r.append(keys)
				keys, off = nil, n+uint32(len(keys))
			}
			if off > from && !yield(r, stretch{run: r.id, off: from, n: off - from}) || len(keys) == 0 {
				return
			}
			kid := r.kid(off, keys[0])
			if kid == nil {
				kid = ix.newRun(r, off, keys, sp)
			}
			r, off = kid, 0
		}
	}
}

// follow skips the keys that equal the run's from off on.
func (r *run) follow(keys []block.Key, off, n uint32) ([]block.Key, uint32) {
	if n == 0 { // a root has no array
		return keys, off
	}
	have := r.keys(n)
	i := 0
	for i < len(keys) && off < n && have[off] == keys[i] {
		i++
		off++
	}
	return keys[i:], off
}

// enter writes the chain's hashes into the reverse map, along the path it was
// laid. What it covers is covered already; the shard is not locked.
func (ix *Index) enter(m *member, c *chain, path []stretch, second, near uint32) {
	t, hashes := c.layer.tier(), c.hashes
	m.vacated, m.came = m.vacated[:0], m.came[:0]
	for i := range path {
		s := &path[i]
		for off := s.off; off < s.off+s.n; off++ {
			hash, p := hashes[0], place{s.run, off}
			hashes = hashes[1:]
			slot, at, ok := m.rev.find(hash)
			if ok && m.rev.log.place(at) != p {
				if c.late {
					if !m.hadBefore(s, p, c.layer) {
						ix.withdraw(m, p.run, c.layer, off, off+1)
					}
					continue
				}
				// The engine uses the hash elsewhere now (a restart without a
				// clear, a repeat under another parent).
				ix.showCame(m)
				ix.unplace(m, at, due{c.layer, path[i:], off + 1})
				slot, at, ok = m.rev.find(hash)
			}
			if ok && m.rev.on(at, t) {
				m.rev.addAgain(at, t)
				near = at
			} else {
				if m.hadBefore(s, p, c.layer) {
					m.others.add(p, c.layer)
				}
				if ok {
					m.rev.raise(at, t)
					near = at
				} else {
					near = m.rev.insert(slot, hash, p, t, near)
					if m.groups.windows != nil {
						m.came = append(m.came, standing{hash, p})
					}
				}
			}
			if t != event.TierGPU {
				m.rev.log.segment(near).stored = second
			}
		}
	}
	ix.showCame(m)
}

// showCame shows the windows of what came alive so far.
func (ix *Index) showCame(m *member) {
	ix.showWindows(m, m.came)
	m.came = m.came[:0]
}

// storeNamed handles a store that names hashes and no tokens: a copy on one more
// tier of what is known. It returns how many were not known.
func (ix *Index) storeNamed(m *member, e *event.Event, second uint32) (unknown int) {
	l := layer(e.Tier)
	for _, hash := range e.Hashes {
		at, ok := m.rev.lookup(hash)
		if !ok {
			unknown++
			continue
		}
		p := m.rev.log.place(at)
		if m.rev.on(at, e.Tier) {
			m.rev.addAgain(at, e.Tier)
		} else if ix.holdOne(m, p, l) {
			m.rev.raise(at, e.Tier)
		} else {
			unknown++
			continue
		}
		if e.Tier != event.TierGPU {
			m.rev.log.segment(at).stored = second
		}
	}
	return unknown
}

// holdOne covers one block; false if its run was evicted.
func (ix *Index) holdOne(m *member, p place, l layer) bool {
	r := ix.runs.lock(p.run)
	if r == nil {
		return false
	}
	defer r.shard.unlock()
	if before := r.hold(m.id, l, p.off, p.off+1); before != nil {
		m.others.add(p, l)
	}
	return true
}
