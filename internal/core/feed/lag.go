package feed

import (
	"math"
	"time"
)

// clockStep is how far back, in seconds, a stamp lies behind the one before it
// when the engine's clock must have been set back in between.
const clockStep = 1

// maxLag is the largest lag told. Stamps that jump about by millions of years are
// possible, and a Duration holds 292.
const maxLag = 24 * time.Hour

// promptestFor is how long a smallest delay counts at least, and at most twice as
// long. Two clocks drift apart, or one is slewed by seconds: a difference that
// lasts is none of the events. ntpd slews at most 0.5 ms/s, which stays below a
// tenth of a second in this time.
const promptestFor = 2 * time.Minute

// lag compares a live batch's delay with the smallest of its connection's last
// minutes, so that a constant difference of the two clocks does not matter. The
// smallest is taken of arrivals; the batch itself counts as late by what it waited
// here too. Stamps that go back mean that the engine's clock was set back: from
// there everything would look late by as much, so the comparison starts over. (Set
// forward, everything looks prompt, and the smallest delay follows at once.)
func (s *subscriber) lag(stamp float64, arrived, now int64) {
	if stamp <= 0 {
		return
	}
	if stamp < s.stamp-clockStep {
		s.promptly = promptest{}
	}
	s.stamp, s.lagged = stamp, now
	delay := float64(arrived)/1e9 - stamp
	late := delay - s.promptly.add(delay, arrived) + float64(now-arrived)/1e9
	lag := time.Duration(min(late, maxLag.Seconds()) * float64(time.Second))
	s.order.late = lag
	s.count.add(func(c *Counters) { c.Lag = lag })
}

// promptest is the smallest delay of the last minutes, in seconds. The zero value
// has none yet.
type promptest struct {
	old, now float64 // of the span before the present one, and of that
	since    int64   // ns: begin of the present span, 0 = none
}

// add takes in a delay and returns the smallest.
func (p *promptest) add(delay float64, at int64) float64 {
	switch age := time.Duration(at - p.since); {
	case p.since == 0 || age >= 2*promptestFor:
		p.old, p.now, p.since = math.Inf(1), delay, at
	case age >= promptestFor:
		p.old, p.now, p.since = p.now, delay, at
	}
	p.now = min(p.now, delay)
	return min(p.old, p.now)
}
