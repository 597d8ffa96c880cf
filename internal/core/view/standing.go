package view

import (
	"math"
	"sync/atomic"
	"time"
)

// standing is the last reading of an account, published for those who come after:
// two cache lines and no lock. A decision reads every pod, and between two of them
// few pods change. Only pods of one rank whose circuit is closed have one; what it
// does not cover is read under the lock.
//
// The ledger has one per pod ID, side by side, so that a decision walks them in the
// order of memory. The accounts that follow each other under an ID share it and its
// lock; epoch says whose it is, and an account writes to it only while no later one
// has.
//
// Ordering. The version is odd while the words are not to be used. It and the words
// are stored by holders of the account's lock alone: account.change makes it odd
// before anything changes, publish makes it odd, stores the words and makes it even.
// A reader uses what it loaded only if the version was even before and the same
// after. Atomics have one total order that agrees with each goroutine's own, and a
// version never comes twice; so no store of a word lies between the two loads of an
// even version, and the words are all of the publication that made it. An even
// version also says that no change had begun at the first load: the reader gets
// what it could have got under the lock. It never waits and never tries again.
type standing struct {
	version atomic.Uint64
	epoch   atomic.Uint64 // of the account's pod
	// What was read holds for any scrape in [from, to) and any now in [asOf, until).
	from, to, asOf, until atomic.Int64

	finish    atomic.Int64
	sinceWork atomic.Int64
	answered  atomic.Int64
	last      atomic.Int64 // of the meter
	factor    atomic.Uint64
	load      atomic.Uint64 // pairs: in flight, waiting
	since     atomic.Uint64 // since the scrape, the meter's samples
	then      atomic.Uint64 // at the scrape: in flight, waiting
	circuit   atomic.Uint64 // errors, lost
	held      atomic.Int64
}

// validity is for which scrapes and instants a reading holds.
type validity struct{ from, to, asOf, until int64 }

// always leaves out the one scrape that is not a time.
func always() validity {
	return validity{from: lastHeard + 1, to: math.MaxInt64, asOf: math.MinInt64, until: math.MaxInt64}
}

// read fills x from what is published of the pod's account; false when that does not
// say it.
func (s *standing) read(epoch uint64, now, scraped int64, x *Load) bool {
	v := s.version.Load()
	if v&1 != 0 || epoch != s.epoch.Load() || scraped < s.from.Load() || scraped >= s.to.Load() || now < s.asOf.Load() || now >= s.until.Load() {
		return false
	}
	// Field by field: x is a place in a row, and a Load made apart would be copied.
	load, since, then, circuit := s.load.Load(), s.since.Load(), s.then.Load(), s.circuit.Load()
	x.InFlight, x.Waiting, x.Rank = first(load), second(load), 0
	x.Queue, x.Depth = time.Duration(max(0, s.finish.Load()-now)), x.Waiting
	x.Since, x.SinceWork = first(since), time.Duration(s.sinceWork.Load())
	x.PlacedAtScrape, x.AtScrape = first(then), second(then)
	x.Held = s.held.Load()
	x.Pace = Rate{}
	if n := second(since); n > 0 {
		x.Pace = paceOf(n, math.Float64frombits(s.factor.Load()), s.last.Load(), now)
	}
	c := &x.Circuit
	c.State, c.Out, c.Probing, c.ProbeIn = Closed, false, 0, 0
	c.Errors, c.Lost, c.Answered = first(circuit), second(circuit), int(s.answered.Load())
	return s.version.Load() == v
}

// publish makes what was just read under the lock what others read without it.
func (a *account) publish(x *Load, of validity) {
	plain := Circuit{Errors: x.Circuit.Errors, Lost: x.Circuit.Lost, Answered: x.Circuit.Answered}
	if len(a.lanes) > 1 || x.Circuit != plain {
		return
	}
	s, m := a.standing, &a.lanes[0].meter
	if s.epoch.Load() > a.epoch {
		return
	}
	v := s.version.Load() | 1
	s.version.Store(v)
	s.epoch.Store(a.epoch)
	s.from.Store(of.from)
	s.to.Store(of.to)
	s.asOf.Store(of.asOf)
	s.until.Store(of.until)
	s.finish.Store(a.lanes[0].finish)
	s.sinceWork.Store(int64(x.SinceWork))
	s.answered.Store(int64(x.Circuit.Answered))
	s.last.Store(m.last)
	s.factor.Store(math.Float64bits(m.factor))
	s.load.Store(pair(x.InFlight, x.Waiting))
	s.since.Store(pair(x.Since, min(m.n, paceSamples)))
	s.then.Store(pair(x.PlacedAtScrape, x.AtScrape))
	s.circuit.Store(pair(x.Circuit.Errors, x.Circuit.Lost))
	s.held.Store(x.Held)
	s.version.Store(v + 1)
}

// change takes the lock to change the account: from here on nothing published
// counts, until somebody has read the account anew.
func (a *account) change() {
	a.mu.Lock()
	s := a.standing
	if v := s.version.Load(); v&1 == 0 && s.epoch.Load() == a.epoch {
		s.version.Store(v + 1)
	}
}

// pair puts two counts of requests into one word.
func pair(a, b int) uint64 { return uint64(uint32(a))<<32 | uint64(uint32(b)) }

func first(w uint64) int  { return int(int32(w >> 32)) }
func second(w uint64) int { return int(int32(w)) }
