package pick

import (
	"slices"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

// Decide chooses a pod for a request and fills the card: match, filter, score,
// pick. It reads the view and moves nothing in it: placing the request is the
// caller's, so that explaining a decision leaves no trace. It takes no clock,
// blocks on nothing longer than a pod's counters, and allocates nothing on a card
// that has held as many pods before.
//
// pol must have passed Validate. Equal views, queries and policies give equal
// cards.
func Decide(v *view.View, q *Query, pol *Policy, c *Card) Outcome {
	c.begin(v, q, pol)
	c.match(v, q)
	for i := range c.Rows {
		c.observe(v, q, &c.Rows[i])
	}
	c.settlePool()
	mildest := numVerdicts
	for i := range c.Rows {
		if r := &c.Rows[i]; !r.Verdict.Hard() {
			c.basis.fillQueue(r)
			c.basis.fillUsage(r)
			c.basis.fillPool(r)
			c.basis.score(r)
			mildest = min(mildest, r.Verdict)
		}
	}
	c.pick(mildest, q.Priority)
	return c.Outcome
}

// begin takes over the request and lays out one empty row per pod.
func (c *Card) begin(v *view.View, q *Query, pol *Policy) {
	rows, scratch := c.Rows[:0], c.scratch
	*c = Card{
		RequestID: q.RequestID, Now: q.Now, Model: q.Model, Base: q.Base, Adapter: q.Adapter,
		Unmatched: q.Unmatched, Epoch: v.Pods.Epoch,
		Winner: -1, RunnerUp: -1,
		Tie:     Tie{Window: pol.TieWindow},
		basis:   newBasis(v, q, pol),
		scratch: scratch,
	}
	c.Tokens, c.Exact = c.basis.prompt, c.basis.exact
	c.Rows = slices.Grow(rows, len(v.Pods.Pods))[:len(v.Pods.Pods)]
	clear(c.Rows)
	for i, p := range v.Pods.Pods {
		r := &c.Rows[i]
		r.Pod, r.Match.Rank, r.Slow, r.Trust = p, -1, 1, 1
	}
}

// observe reads everything about one pod, each source once, and filters it.
func (c *Card) observe(v *view.View, q *Query, r *Row) {
	if r.Verdict = hard(q, r); r.Verdict.Hard() {
		return
	}
	b := &c.basis
	e := v.Telemetry.Get(r.Pod.ID)
	s := b.sample(e, r)
	r.silent = v.Silent(r.Pod, e, b.now, b.limits)
	r.Sync = v.Sync.Get(r.Match.owner(r.Pod))
	r.Load = v.Load.LoadSince(r.Pod, q.Now, b.scrapedAt(s))
	r.asleep = s != nil && s.Asleep

	b.observeHardware(r, s)
	b.observeQueue(r, s)
	b.observeKV(r)
	observeTiers(r)
	b.observePool(r, s)
	observeLoRA(q.Adapter, r, s)
	b.observeUsage(r, s)
	if r.PoolSize > 0 && (b.pool == 0 || r.PoolSize < b.pool) {
		b.pool, b.poolHow = r.PoolSize, FromOthers
	}
	if r.Cached == 0 {
		r.Reason = c.why(v, q, r, s)
	}
	r.Verdict, r.Value, r.Limit = b.soft(r)
}

// sample returns the pod's numbers as far as they are still known.
func (b *basis) sample(e telemetry.Entry, r *Row) *telemetry.Sample {
	r.Telemetry = e.State(b.now, b.limits)
	if e.Sample != nil {
		r.ScrapedAt = e.Sample.At
	}
	if r.Telemetry == telemetry.Unknown {
		return nil
	}
	return e.Sample
}

// owner is the cache whose event stream the row is about.
func (m *Match) owner(p *pod.Pod) pod.Member {
	if m.Rank < 0 && len(p.Members) > 0 {
		return p.Members[0]
	}
	return m.Member
}

// settlePool finds what an unknown pool size counts as: the smallest of the
// others, else the configured one.
func (c *Card) settlePool() {
	if b := &c.basis; b.pool == 0 {
		b.pool, b.poolHow = b.cal.PoolTokens, FromDefault
	}
}

// pick makes the pods of the mildest verdict candidates and chooses among them.
func (c *Card) pick(mildest Verdict, priority int) {
	switch {
	case len(c.Rows) == 0:
		c.Outcome, c.Why = NoEndpoint, reason.NoPods
		return
	case mildest.Hard():
		c.Outcome, c.Why = NoEndpoint, reason.NoEligiblePod
		return
	case mildest == BreakerOpen && priority < 0:
		c.Outcome, c.Why = Overloaded, reason.Shed
		return
	}
	c.Outcome, c.Why = Picked, relaxed[mildest]
	best := -1
	for i := range c.Rows {
		r := &c.Rows[i]
		r.Candidate = r.Verdict == mildest
		if r.Candidate && (best < 0 || r.Total > c.Rows[best].Total) {
			best = i
		}
	}
	c.Winner = c.settleTie(best)
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Candidate && i != c.Winner && (c.RunnerUp < 0 || r.Total > c.Rows[c.RunnerUp].Total) {
			c.RunnerUp = i
		}
	}
	if c.RunnerUp >= 0 {
		c.Margin = c.Rows[c.Winner].Total - c.Rows[c.RunnerUp].Total
	}
}
