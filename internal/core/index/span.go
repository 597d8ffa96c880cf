package index

// span gathers neighbouring blocks of a run, so that the run's lock is taken
// once for all of them. Empty when lo equals hi.
type span struct {
	run, lo, hi uint32
	layer       layer
}

// join takes a block in; false when it does not touch the others.
func (s *span) join(p place, l layer) bool {
	switch {
	case s.hi == s.lo:
		*s = span{p.run, p.off, p.off + 1, l}
	case s.run != p.run || s.layer != l:
		return false
	case p.off == s.hi:
		s.hi++
	case p.off+1 == s.lo:
		s.lo--
	default:
		return false
	}
	return true
}

// withdrawal is blocks that a member is about to lose.
type withdrawal struct{ span }

func (w *withdrawal) add(ix *Index, m *member, p place, l layer) {
	if !w.join(p, l) {
		w.flush(ix, m)
		w.join(p, l)
	}
}

func (w *withdrawal) flush(ix *Index, m *member) {
	if w.hi > w.lo {
		ix.withdraw(m, w.run, w.layer, w.lo, w.hi)
		w.hi = w.lo
	}
}

// grant is blocks that a member is about to hold on one more layer.
type grant struct{ span }

func (g *grant) add(ix *Index, m *member, p place, l layer) {
	if !g.join(p, l) {
		g.flush(ix, m)
		g.join(p, l)
	}
}

func (g *grant) flush(ix *Index, m *member) {
	if g.hi == g.lo {
		return
	}
	var before *coverage
	if r := ix.runs.lock(g.run); r != nil {
		before = r.hold(m.id, g.layer, g.lo, g.hi)
		r.shard.unlock()
	}
	for off := g.lo; before != nil && off < g.hi; off++ {
		if before.holds(m.id, g.layer, off) {
			m.others.add(place{g.run, off}, g.layer)
		}
	}
	g.hi = g.lo
}
