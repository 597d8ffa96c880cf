package feed

import (
	"math"
	"time"
)

// promptestFor is how long a smallest delay counts at least, and at most twice as
// long. Two clocks drift apart, or one is slewed by seconds: a difference that
// lasts is none of the events. ntpd slews at most 0.5 ms/s, which stays below a
// tenth of a second in this time.
const promptestFor = 2 * time.Minute

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
