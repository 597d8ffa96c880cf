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
// that has held as many pods before. Any goroutine may call it, with a card of its
// own.
//
// pol must have passed Validate. Equal views, queries and policies give equal
// cards.
func Decide(v *view.View, q *Query, pol *Policy, c *Card) Outcome {
	c.begin(v, q, pol)
	c.match(v, q)
	for i, p := range v.Pods.Pods {
		c.observe(v, q, c.lay(q, i, p))
	}
	c.countSharers(v, q)
	c.judge()
	if c.Winner >= 0 {
		c.settleRank(v)
	}
	return c.Outcome
}

// judge scores the observed rows and picks.
func (c *Card) judge() {
	c.settlePool()
	b := &c.basis
	b.settleCopy()
	mildest, best, most := numVerdicts, -1, 0.0
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Verdict.Hard() {
			continue
		}
		b.fillQueue(r)
		b.fillUsage(r)
		b.fillPool(r)
		b.score(r)
		b.slowStart(r)
		if r.Verdict < mildest || r.Verdict == mildest && r.Total > most {
			mildest, best, most = r.Verdict, i, r.Total
		}
	}
	c.pick(mildest, best)
}

// begin takes over the request and makes room for one row per pod.
func (c *Card) begin(v *view.View, q *Query, pol *Policy) {
	rows, scratch := c.Rows[:0], c.scratch
	*c = Card{
		RequestID: q.RequestID, Now: q.Now, Model: q.Model, Base: q.Base, Adapter: q.Adapter,
		Unmatched: q.Unmatched, Origin: q.Origin, Epoch: v.Pods.Epoch,
		Winner: -1, RunnerUp: -1,
		Tie:      Tie{Window: pol.TieWindow},
		priority: q.Priority,
		basis:    newBasis(v, q, pol),
		scratch:  scratch,
	}
	c.Tokens, c.Exact = c.basis.prompt, c.basis.exact
	c.Rows = slices.Grow(rows, len(v.Pods.Pods))[:len(v.Pods.Pods)]
}

// lay begins the row of the i-th pod: nothing is known but what it holds of the
// prompt.
func (c *Card) lay(q *Query, i int, p *pod.Pod) *Row {
	r := &c.Rows[i]
	*r = Row{}
	r.Pod, r.Rank, r.Slow, r.Trust, r.Sync, r.Device, r.Waiting, r.entry = p, -1, 1, 1, &noSync, &noDevice, &noValue, &noEntry
	r.Match.Rank = -1
	if m := c.deepest[i]; m > 0 {
		r.Match.take(&c.matches[m-1], p)
	} else if c.guesses(q) {
		r.Near = c.nearOf(p, q)
	}
	return r
}

// observe reads everything about one pod, each source once, and filters it.
func (c *Card) observe(v *view.View, q *Query, r *Row) {
	if !suits(q, r.Pod) {
		if r.Verdict = hard(q, r.Pod); r.Verdict.Hard() {
			return
		}
	}
	b := &c.basis
	r.entry = v.Telemetry.At(r.Pod.ID)
	s := b.brief(r.entry, r)
	r.silent = r.entry.Mute && v.Silent(r.Pod, r.entry, b.now, b.limits)
	r.Sync = v.Sync.At(r.Match.owner(r.Pod))
	if at := b.scrapedAt(s); !v.Load.Standing(r.Pod, b.now, at, &r.Load) {
		v.Load.Read(r.Pod, b.now, at, int(r.Match.Rank), &r.Load)
	}

	b.observeHardware(r)
	b.observeKV(r)
	b.observeRank(v, r, s)
	if q.Adapter != "" {
		observeLoRA(v.Load, q.Adapter, r, r.entry.Sample)
	}
	b.observeQueue(r, s)
	b.observeRest(r, s)
	if r.Cached == 0 {
		r.Reason = c.why(v, q, r, s)
	}
}

// observeRest is what needs the row's match, load and queue, and nothing of the view.
func (b *basis) observeRest(r *Row, s *telemetry.Brief) {
	observeTiers(r)
	b.observePool(r, s)
	b.observeUsage(r, s)
	b.observeEnergy(r)
	b.observeCopy(r)
	if b.unfit(r) {
		r.Verdict, r.Value, r.Limit = b.soft(r)
	}
	if r.Verdict <= BreakerOpen {
		b.able++
		if r.Load.Circuit.Answered > 0 {
			b.proven++
		}
	}
}

// brief returns the pod's numbers as far as they are still known, else nil.
func (b *basis) brief(e *telemetry.Entry, r *Row) *telemetry.Brief {
	if e.Sample == nil {
		return nil
	}
	s := &e.Brief
	r.ScrapedAt = s.At
	if r.Telemetry = s.State(b.now, b.limits); r.Telemetry == telemetry.Unknown {
		return nil
	}
	r.asleep = s.Told(telemetry.HasAsleep)
	if s.Told(telemetry.HasWaiting) {
		r.Waiting = &e.Sample.Waiting
	}
	if s.Told(telemetry.HasDevice) {
		r.Device = &e.Sample.Device
	}
	return s
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

// pick makes the pods of the mildest verdict candidates and chooses among them; best
// is the one with the highest total.
func (c *Card) pick(mildest Verdict, best int) {
	switch {
	case len(c.Rows) == 0:
		c.Outcome, c.Why = NoEndpoint, reason.NoPods
		return
	case mildest.Hard():
		c.Outcome, c.Why = NoEndpoint, reason.NoEligiblePod
		return
	case mildest == BreakerOpen && c.priority < 0:
		c.Outcome, c.Why = Overloaded, reason.Shed
		return
	}
	c.Outcome, c.Why = Picked, relaxed[mildest]
	c.choose(mildest, best)
}

// choose settles ties and finds the runner-up, in one look at the rows.
func (c *Card) choose(mildest Verdict, best int) {
	floor := c.Rows[best].Total - c.Tie.Window
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Verdict != mildest {
			continue
		}
		r.Candidate = true
		if r.Total >= floor {
			c.Tie.Size++
		}
		if i != best && (c.RunnerUp < 0 || r.Total > c.Rows[c.RunnerUp].Total) {
			c.RunnerUp = i
		}
	}
	if c.Winner = best; c.Tie.Size > 1 {
		c.settleTie(floor)
	}
	if c.Winner != best {
		c.RunnerUp = best
	}
	if c.RunnerUp >= 0 {
		c.Margin = c.Rows[c.Winner].Total - c.Rows[c.RunnerUp].Total
	}
}
