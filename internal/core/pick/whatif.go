package pick

import (
	"fmt"
	"slices"

	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/spelling"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// WhatIf is what to suppose of a decision: other inputs, other constants, pods that
// are not there.
type WhatIf struct {
	Inputs  []Input
	Weights []Weight
	Without []string // names of pods
}

// Empty reports whether nothing is supposed.
func (w *WhatIf) Empty() bool { return len(w.Inputs)+len(w.Weights)+len(w.Without) == 0 }

// UnknownPodError names a pod that the decision had no row for.
type UnknownPodError struct {
	Pod   string
	Known []string
}

func (e *UnknownPodError) Error() string {
	return fmt.Sprintf("no pod is called %q; %s", e.Pod, spelling.Among(e.Pod, e.Known))
}

// Suppose fills c with the decision that was would have been, if. It is Decide
// without its first half: what was has read of the fleet is not read again, so that
// nothing but what is supposed can differ, and a card that outlived its fleet can be
// asked as well. Everything behind is the same code, and with nothing supposed the
// result is was again.
//
// What Decide settles while it reads stays settled: which rank of a pod the row is
// about, whether its adapter is loaded, which scrape our own account was read
// against, and how many share the prefix that the most pods hold. Neither was nor its policy change.
func Suppose(was *Card, w *WhatIf, c *Card) error {
	pol := was.basis.policy
	if len(w.Weights) > 0 {
		var err error
		if pol, err = pol.With(w.Weights...); err != nil {
			return err
		}
	}
	if err := w.check(was); err != nil {
		return err
	}
	c.resume(was, pol)
	for i := range c.Rows {
		c.resettle(was, i, w)
	}
	c.basis.holders.sharers = was.basis.holders.sharers
	c.judge()
	return nil
}

// check refuses pods that the card has no row for, and values beyond an input's range.
func (w *WhatIf) check(c *Card) error {
	for _, x := range w.Inputs {
		if c.row(x.Pod) == nil {
			return c.unknown(x.Pod)
		}
		if err := x.check(c); err != nil {
			return err
		}
	}
	for _, name := range w.Without {
		if c.row(name) == nil {
			return c.unknown(name)
		}
	}
	return nil
}

func (c *Card) unknown(name string) error {
	e := &UnknownPodError{Pod: name}
	for i := range c.Rows {
		e.Known = append(e.Known, c.Rows[i].Pod.Spec.Name)
	}
	return e
}

// row is the pod's, nil when there is none of that name.
func (c *Card) row(name string) *Row {
	for i := range c.Rows {
		if c.Rows[i].Pod.Spec.Name == name {
			return &c.Rows[i]
		}
	}
	return nil
}

// resume takes over what a card has of its request and of the fleet as a whole.
func (c *Card) resume(was *Card, pol *Policy) {
	rows, scratch := c.Rows[:0], c.scratch
	*c = Card{
		RequestID: was.RequestID, Now: was.Now, Model: was.Model, Base: was.Base, Adapter: was.Adapter,
		Tokens: was.Tokens, Exact: was.Exact, Unmatched: was.Unmatched, Origin: was.Origin, Epoch: was.Epoch,
		Winner: -1, RunnerUp: -1,
		Tie:      Tie{Window: pol.TieWindow},
		priority: was.priority,
		scratch:  scratch,
	}
	c.Rows = slices.Grow(rows, len(was.Rows))[:len(was.Rows)]
	c.basis = was.basis.again(pol)
}

// again is the basis before anything was observed, under a policy.
func (b *basis) again(pol *Policy) basis {
	n := basis{now: b.now, prompt: b.prompt, exact: b.exact, several: b.several, means: b.means}
	n.follow(pol)
	n.calibrate(b.prior.Model)
	if rate := b.rate; pol.Learn.On {
		// It is the measured time over the configured one: the former stays.
		rate.Factor *= n.prior.TokensPerSecond / b.prior.TokensPerSecond
		n.believe(rate)
	}
	n.settle()
	return n
}

// resettle derives a row again from what was read for it, with what is supposed of
// its pod.
func (c *Card) resettle(was *Card, i int, w *WhatIf) {
	r, old := &c.Rows[i], &was.Rows[i]
	*r = Row{
		Pod: old.Pod, Match: old.Match, Near: old.Near, Rank: old.Rank, RankWhy: old.RankWhy, Reason: old.Reason, Cleared: old.Cleared,
		Sync: old.Sync, Telemetry: old.Telemetry, ScrapedAt: old.ScrapedAt, Load: old.Load, Device: old.Device, Waiting: &noValue,
		Adapter: old.Adapter, LoRA: old.LoRA, Slots: old.Slots, Slow: 1, Trust: 1,
		entry: old.entry, asleep: old.asleep, silent: old.silent,
	}
	if old.Verdict.Hard() {
		r.Verdict = old.Verdict
	}
	if slices.Contains(w.Without, r.Pod.Spec.Name) {
		r.Verdict = Excluded
	}
	if r.Verdict.Hard() {
		return
	}
	b := &c.basis
	w.apply(was, b, r, supposeRead)
	s := b.brief(r.entry, r)
	if r.entry.Mute && r.entry.Sample != nil {
		r.silent = r.entry.State(b.now, b.limits) == telemetry.Unknown
	}
	b.observeHardware(r)
	w.apply(was, b, r, supposeSpeed)
	b.observeKV(r)
	r.shareTrust()
	b.observeQueue(r, s)
	w.apply(was, b, r, supposeQueue)
	b.observeRest(r, s)
	switch {
	case r.Cached > 0:
		r.Reason = reason.None
	case r.Reason == reason.None:
		r.Reason = reason.NotCached
	}
}
