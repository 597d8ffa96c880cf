package index

import (
	"slices"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// due is what of a laid path is not entered yet: covered, and its hashes on
// their way into the reverse map one by one. A hash that leaves such a place in
// the meantime must leave the coverage behind.
type due struct {
	layer layer
	path  []stretch // the first is being entered
	off   uint32    // next block of it
	// vacated are places whose last hash left while they were due.
	vacated []place
}

func (d *due) begin(l layer, path []stretch) {
	d.layer, d.path, d.vacated = l, path, d.vacated[:0]
	d.off = path[0].off
}

func (d *due) end() { d.path = nil }

// next takes the next place off and reports whether the member held it before
// under another hash or this one.
func (d *due) next(m pod.Member) (p place, before bool) {
	s := &d.path[0]
	for d.off == s.off+s.n {
		d.path = d.path[1:]
		s = &d.path[0]
		d.off = s.off
	}
	p = place{s.run, d.off}
	d.off++
	before = s.before != nil && s.before.holds(m, d.layer, p.off) && !slices.Contains(d.vacated, p)
	return p, before
}

// keeps reports whether a place is due, so that its coverage must stay although
// its last hash leaves.
func (d *due) keeps(p place, l layer) bool {
	if l != d.layer {
		return false
	}
	for i, s := range d.path {
		from := s.off
		if i == 0 {
			from = d.off
		}
		if s.run == p.run && p.off >= from && p.off < s.off+s.n {
			d.vacated = append(d.vacated, p)
			return true
		}
	}
	return false
}
