package index

import "slices"

// due is what of a laid path is not entered yet: covered, and its hashes on
// their way into the reverse map one by one. A hash that leaves such a place
// meanwhile must leave the coverage behind.
type due struct {
	layer layer
	path  []stretch
	off   uint32 // of the first block due, in the first stretch
}

func (d *due) has(p place, l layer) bool {
	if l != d.layer {
		return false
	}
	for i, s := range d.path {
		from := s.off
		if i == 0 {
			from = d.off
		}
		if s.run == p.run && p.off >= from && p.off < s.off+s.n {
			return true
		}
	}
	return false
}

// hadBefore reports whether the member held a block of the path being entered
// before, under another hash that is still there.
func (m *member) hadBefore(s *stretch, p place, l layer) bool {
	return s.before != nil && s.before.holds(m.id, l, p.off) && !slices.Contains(m.vacated, p)
}
