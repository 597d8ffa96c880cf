package pick

import (
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/view"
)

// The copy term is what a pod's first copy of a shared prefix is worth to those who
// come after the request. The request alone pays for the prefill; each follower that
// finds the copy leaves pods behind that serve more at a time. As many come to one of
// k+1 holders while a request stays there as are in flight on each of them: Little's
// law, n/(k+1) of the n that share the prefix. Each gains what the requests in flight
// make the difference between the holders and this pod.
//
// Queues are no part of that gain: they are over before the copy is used, and a rule
// that shared the prefill whatever it was for copied for them too. And no more than
// the followers' shares of the prefill is given back, so that a copy that is needed
// by nobody else costs what it does, and none is ever better than to have it already.
//
// Without the term some pods stand idle for minutes beside others that decode for a
// hundred each: one prefix of 32,000 tokens under 40 requests per second on 16 pods
// took nearly twice as long as under least in flight.

var copyTerm = term{
	name:   "copy",
	setBy:  "its seconds for each follower and request in flight are set by crowding",
	inputs: copyInputs,
	zero:   copyZero,
}

// holders are the pods with the deepest match.
type holders struct {
	cached   int // tokens
	pods     int
	inFlight int     // of ours on them, whatever their prompts
	trust    float64 // the least of theirs
	sharers  int     // requests in flight that begin with the tokens they hold

	// What follows, the same for all other pods.
	followers float64 // n/(k+1)
	mean      float64 // in flight on one of them
	each      float64 // seconds for each request in flight fewer
	part      float64 // of the seconds that a copy costs
	prefill   float64 // T(L, cached) in seconds
}

// observeCopy takes the row in where it holds the most so far.
func (b *basis) observeCopy(r *Row) {
	switch h := &b.holders; {
	case r.Cached == h.cached:
		h.pods++
		h.inFlight += r.Load.InFlight
		if r.Trust < h.trust {
			h.trust = r.Trust
		}
	case r.Cached > h.cached:
		*h = holders{cached: r.Cached, pods: 1, inFlight: r.Load.InFlight, trust: r.Trust}
	}
}

// countSharers asks how many hold to the prefix, where some pod lacks it. Several prompts
// have no one prefix to share.
func (c *Card) countSharers(v *view.View, q *Query) {
	h := &c.basis.holders
	if c.Exact && c.basis.prompts == 1 && h.cached > 0 && h.pods < len(c.Rows) {
		h.sharers = v.Load.Sharers(&q.Prompt, h.cached)
	}
}

// settleCopy derives what the rows have in common.
func (b *basis) settleCopy() {
	h := &b.holders
	if h.sharers == 0 {
		return
	}
	h.followers = float64(h.sharers) / float64(h.pods+1)
	h.mean = float64(h.inFlight) / float64(h.pods)
	h.each = h.followers * b.policy.Crowding
	h.part = h.trust * b.policy.Alpha * h.followers / (1 + h.followers)
	h.prefill = b.computed(h.cached)
}

func copyCounts(b *basis, r *Row) bool { return b.holders.sharers != 0 && r.Cached < b.holders.cached }

func copySeconds(b *basis, r *Row) float64 {
	h := &b.holders
	gap := h.mean - float64(r.Load.InFlight+1) // once the request is there
	if gap <= 0 {
		return 0
	}
	return min(h.each*gap, h.part*(r.Prefill-h.prefill))
}

func copyInputs(b *basis, r *Row) map[string]any {
	h := &b.holders
	in := map[string]any{
		"held_tokens":       h.cached,
		"holders":           h.pods,
		"holders_in_flight": h.inFlight,
		"in_flight":         r.Load.InFlight,
		"sharers":           h.sharers,
		"crowding_s":        number(b.policy.Crowding),
		"followers":         nil,
		"share_s":           nil,
	}
	if copyCounts(b, r) {
		in["followers"], in["share_s"] = number(h.followers), number(h.part*(r.Prefill-h.prefill))
	}
	return in
}

func copyZero(b *basis, r *Row) reason.Code {
	switch {
	case b.policy.Crowding == 0:
		return reason.WeightZero
	case copyCounts(b, r):
		return reason.NotCrowded
	}
	return reason.Idle
}
