package route

import (
	"math"
	"math/rand/v2"

	"github.com/eppctl/eppctl/internal/inspect/replay/engine"
)

// peer is a router whose policy is a rule: a cost per pod, the least wins, and ties
// go by chance.
type peer struct {
	*account
	rule rule
	rnd  *rand.Rand
	cost []float64
}

// rule fills cost for a request; +Inf leaves a pod out.
type rule interface {
	costs(p *peer, r *Request, now int64)
}

// follower is a rule that keeps something of its own about where requests went.
type follower interface {
	placed(r *Request, pod int)
	down(pod int)
}

// rated is a rule that knows another match than the account's.
type rated interface {
	matched(pod int, r *Request) int
}

func newPeer(f *Fleet, x rule, speculate bool) *peer {
	return &peer{
		account: newAccount(f, speculate), rule: x, cost: make([]float64, f.Pods),
		rnd: rand.New(rand.NewPCG(f.Seed, uint64(f.Replica)+0x70656572)),
	}
}

func (p *peer) Pick(r *Request, now int64) int {
	clear(p.cost)
	p.rule.costs(p, r, now)
	for i := range p.pods {
		if p.pods[i].down {
			p.cost[i] = math.Inf(1)
		}
	}
	to := p.least()
	if to < 0 {
		return -1
	}
	matched := 0
	if x, ok := p.rule.(rated); ok {
		matched = x.matched(to, r)
	} else {
		matched = p.match(to, r.Blocks)
	}
	p.place(r, to, matched, now)
	if x, ok := p.rule.(follower); ok {
		x.placed(r, to)
	}
	return to
}

// tie is how close costs must be to be equal.
const tie = 1e-12

// least draws among the pods of least cost; -1 when all are left out.
func (p *peer) least() int {
	best, to, n := math.Inf(1), -1, 0
	for i, c := range p.cost {
		switch {
		case math.IsInf(c, 1):
		case c < best-tie:
			best, to, n = c, i, 1
		case c < best+tie:
			if n++; p.rnd.IntN(n) == 0 {
				to = i
			}
		}
	}
	return to
}

func (p *peer) First(r *Request, now int64)                { p.first(r, now) }
func (p *peer) End(r *Request, _ bool, now int64)          { p.end(r, now) }
func (p *peer) Scrape(i int, g engine.Gauges, _ int64)     { p.pods[i].gauges = g }
func (p *peer) Stream(int, StreamState, int64)             {}
func (p *peer) Second(int64)                               {}
func (p *peer) Up(i int, _ int64)                          { p.pods[i].down = false }
func (p *peer) Announce(i int, c []engine.Change, _ int64) { p.announce(i, c) }

func (p *peer) Down(i int, _ int64) {
	x := &p.pods[i]
	x.down, x.gauges = true, engine.Gauges{}
	clear(x.held)
	if f, ok := p.rule.(follower); ok {
		f.down(i)
	}
}
