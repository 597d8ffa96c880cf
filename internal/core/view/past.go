package view

// past remembers what an account counted after each of its last changes, so that a
// scrape, which is of a moment ago, is compared with what was there then. 128
// changes are some forty requests: they outlast the time between two scrapes on
// all but the busiest pods, and there the oldest of them stands in.
type past struct {
	last counts // what most reads come for, at hand
	n    uint
	ring *[pastChanges]counts // apart: accounts are read by the thousand, and it seldom
}

const pastChanges = 128

// counts are an account's requests from one moment on.
type counts struct {
	from              int64
	inFlight, waiting int32
}

// note remembers the counts after a change.
func (a *account) note(now int64) {
	a.past.add(counts{now, int32(a.inFlight), int32(a.waiting)})
}

func (p *past) add(c counts) {
	c.from = max(c.from, p.last.from) // callers read the clock before they take the lock
	p.last = c
	if p.ring == nil {
		p.ring = new([pastChanges]counts)
	}
	p.ring[p.n%pastChanges] = c
	p.n++
}

// at returns the counts as they were at time t, and narrows the scrapes that a
// reading holds for to the times of which they are.
func (p *past) at(t int64, holds *validity) counts {
	if p.last.from <= t {
		holds.from = max(holds.from, p.last.from)
		return p.last
	}
	oldest := counts{}
	for i := range min(p.n, pastChanges) {
		oldest = p.ring[(p.n-1-i)%pastChanges]
		if oldest.from <= t {
			holds.from = max(holds.from, oldest.from)
			return oldest
		}
		holds.to = min(holds.to, oldest.from)
	}
	if p.n <= pastChanges {
		return counts{}
	}
	return oldest
}
