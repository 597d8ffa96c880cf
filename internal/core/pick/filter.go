package pick

import (
	"math"
	"slices"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
)

// Verdict says which filter left a pod out. The order is that of severity: when
// every pod is left out by a soft filter, the ones with the mildest verdict are
// the candidates.
type Verdict uint8

// The verdicts. Up to TooLong they are soft: better such a pod than none. From
// Unresolved on they are hard: the pod cannot serve the request.
const (
	Scored Verdict = iota
	// Starting pods have answered none yet of as many requests as they may have before that.
	Starting    // value: our requests before their first token; limit: as many as it may have
	BreakerOpen // value: requests before their first token; limit: the breaker's depth
	Asleep
	Failing // value: bad endings in a row; limit: as many as leave a pod out
	Fatal   // the device has failed
	// NotAnswering stands behind the pods that are known to be unwell: those at
	// least answer, if only with an error that a proxy can retry, while a request
	// to a process that hangs waits for its time limit.
	NotAnswering // value: seconds since an answered scrape, 0 = never; limit: known_for
	TooLong      // value: tokens of the prompt; limit: the pod's context
	Unresolved   // the pod's name has no address
	Draining     // it finishes what it has
	NotInSubset  // the gateway's hint leaves it out
	OtherModel
	OtherRole // it only prefills for others
	NoAdapter
	Excluded // a question supposes that the pod is not there
	numVerdicts
)

var verdictNames = [numVerdicts]string{
	"scored", "starting", "breaker", "asleep", "failing", "hardware-fatal", "not-answering", "context",
	"unresolved", "draining", "subset", "model", "role", "adapter", "without",
}

func (v Verdict) String() string { return verdictNames[v] }

// Hard reports whether the pod cannot serve the request at all.
func (v Verdict) Hard() bool { return v >= Unresolved }

// relaxed is the reason of a pick among pods that all have a soft verdict.
var relaxed = [Unresolved]reason.Code{
	Starting:     reason.AllStarting,
	BreakerOpen:  reason.AllBreakersOpen,
	Asleep:       reason.AllAsleep,
	Failing:      reason.AllFailing,
	Fatal:        reason.AllFatal,
	NotAnswering: reason.AllSilent,
	TooLong:      reason.AllTooShort,
}

// suits reports that no hard filter can leave the pod out: nearly always, and for
// less than asking each of them.
func suits(q *Query, p *pod.Pod) bool {
	return p.Target != "" && !p.Spec.Draining && p.Spec.Role != pod.RolePrefill &&
		p.Spec.Model == q.Base && q.Subset == nil && q.Adapter == ""
}

// hard applies the filters that need nothing but the fleet and the request.
func hard(q *Query, p *pod.Pod) Verdict {
	switch {
	case p.Target == "":
		return Unresolved
	case p.Spec.Draining:
		return Draining
	case q.Subset != nil && !q.Subset.Admits(p.Addr):
		return NotInSubset
	case q.Base != "" && p.Spec.Model != "" && p.Spec.Model != q.Base:
		return OtherModel
	case p.Spec.Role == pod.RolePrefill:
		return OtherRole
	case q.Adapter != "" && p.Spec.Adapters != nil && !slices.Contains(p.Spec.Adapters, q.Adapter):
		return NoAdapter
	}
	return Scored
}

// unfit reports that a soft filter leaves the pod out: soft says which.
func (b *basis) unfit(r *Row) bool {
	return r.Depth >= b.policy.Breaker.Depth || r.silent || r.fatal || r.asleep || r.Load.Circuit.Out ||
		b.exact && r.Pod.Spec.MaxContext > 0 && b.longest > r.Pod.Spec.MaxContext
}

// soft applies the filters that compare what was observed. A length that is only
// estimated leaves nobody out, and a prompt that is too long for every pod is the
// engine's to refuse: its error says more than ours could.
func (b *basis) soft(r *Row) (v Verdict, value, limit float64) {
	switch context := r.Pod.Spec.MaxContext; {
	case b.exact && context > 0 && b.longest > context:
		return TooLong, float64(b.longest), float64(context)
	case r.silent:
		return NotAnswering, b.quiet(r), b.policy.KnownFor
	case r.fatal:
		return Fatal, 1, 0
	case r.Load.Circuit.Out:
		return Failing, float64(max(r.Load.Circuit.Errors, r.Load.Circuit.Lost)), float64(b.policy.Breaker.Errors)
	case r.asleep:
		return Asleep, 1, 0
	case r.Depth >= b.policy.Breaker.Depth:
		return BreakerOpen, float64(r.Depth), float64(b.policy.Breaker.Depth)
	}
	return Scored, 0, 0
}

// slowStart holds back from a pod that has shown nothing while at least half of the
// fleet has: it is idle and empty, and a burst would all go there. Blocks of the
// prompt that it has announced show as well as an answer that it computes.
//
// Where most are new, as when the router starts, the few that answered first would
// get everything. Prompts of 40,000 shared tokens, whose answers take seconds, were
// computed anew on those, and a fleet that takes 0.3 s did not come out of 100 s.
func (b *basis) slowStart(r *Row) {
	most := b.policy.Breaker.Start
	if r.Verdict != Scored || most == 0 || r.Load.Waiting < most || 2*b.proven < b.able {
		return
	}
	if r.Load.Circuit.Answered == 0 && r.Match.Announced == 0 {
		r.Verdict, r.Value, r.Limit = Starting, float64(r.Load.Waiting), float64(most)
	}
}

// quiet is how long ago the pod answered a scrape, in seconds to the
// millisecond; 0 = it never did.
func (b *basis) quiet(r *Row) float64 {
	if r.ScrapedAt == 0 {
		return 0
	}
	return math.Round(float64(b.now-r.ScrapedAt)/1e6) / 1e3
}
