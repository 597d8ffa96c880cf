package feed

import (
	"net/netip"
	"sync"
	"time"
)

// Why a publisher that dialled us was refused. The words label metrics.
const (
	refusedLimit     = "too many connections"
	refusedHandshake = "handshake"
	refusedUnknown   = "unknown pod"
	refusedRank      = "unknown rank"
)

const (
	// refusalEvery is how often the same refusal of one address is logged.
	refusalEvery = time.Minute
	// refusalsKept bounds the addresses of which that is known.
	refusalsKept = 1024
)

// refuse counts and logs a refusal, and tells the members that have this address.
func (g *gate) refuse(from netip.Addr, why string, err error) {
	g.refused(why)
	for _, c := range g.claimants(from) {
		for _, box := range c.ranks {
			box.refuse(why)
		}
	}
	if n, due := g.said.due(refusal{from, why}, time.Now()); due {
		g.log.Warn("refused an event publisher", "from", from, "why", why, "err", err, "more_since_the_last", n)
	}
}

// refusal is what is logged once in a while.
type refusal struct {
	from netip.Addr
	why  string
}

// refusals remembers when each was logged last. The zero value is ready.
type refusals struct {
	mu   sync.Mutex
	last map[refusal]*logged
}

type logged struct {
	at    time.Time
	since int // refusals not logged
}

// due reports whether a refusal is to be logged, and how many were not.
func (l *refusals) due(what refusal, now time.Time) (n int, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.last[what]
	if r == nil {
		if l.last == nil || len(l.last) >= refusalsKept {
			l.last = map[refusal]*logged{}
		}
		r = &logged{}
		l.last[what] = r
	}
	if now.Sub(r.at) < refusalEvery {
		r.since++
		return 0, false
	}
	n, r.at, r.since = r.since, now, 0
	return n, true
}
