package pick

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// Flip is the smallest change of one number that gives the request to another pod.
type Flip struct {
	Pod     string // whose input it is, "" = Field is a weight
	Field   string // name of an input, or key of a weight
	Unit    string // of an input
	Now, At float64
	Winner  string
}

// whatIf is the supposition that the flip is about.
func (x *Flip) whatIf(v float64) *WhatIf {
	if x.Pod == "" {
		return &WhatIf{Weights: []Weight{{x.Field, v}}}
	}
	return &WhatIf{Inputs: []Input{{x.Pod, x.Field, v}}}
}

// Flips finds, for each input and weight that could do it, the smallest change that
// changes the winner, everything else held. It asks Suppose over and over, and so the
// decision itself; of an input at At the winner is another, and of one step less it
// is not. The most telling come first: inputs of the leaders, then weights by how
// little they need to change. It takes some 10 to 100 decisions per input.
func (c *Card) Flips() []Flip {
	w := c.WinnerRow()
	if w == nil {
		return nil
	}
	s := search{was: c}
	s.input(w, "queue", up)
	s.input(w, "cached", down)
	if c.RunnerUp >= 0 {
		r := &c.Rows[c.RunnerUp]
		s.input(r, "cached", up)
		s.input(r, "queue", down)
	}
	if r := c.kept(); r != nil {
		s.input(r, "queue", down)
	}
	for _, name := range []string{"held", "kv_usage", "in_flight", "slow"} {
		s.input(w, name, up)
	}
	if c.RunnerUp >= 0 || c.kept() != nil {
		s.weights()
	}
	return s.found
}

// kept is the pod that would be best if its load did not leave it out, nil = none
// would.
func (c *Card) kept() (best *Row) {
	total := c.WinnerRow().Total
	for i := range c.Rows {
		r := &c.Rows[i]
		if (r.Verdict == BreakerOpen || r.Verdict == Starting) && !r.Candidate && r.Total+r.loadSeconds() > total {
			total, best = r.Total+r.loadSeconds(), r
		}
	}
	return best
}

// loadSeconds are those that an empty queue would give back.
func (r *Row) loadSeconds() float64 {
	return -r.Terms[TermQueue] - r.Terms[TermDelay] - r.Terms[TermBreaker]
}

// The directions of a search.
const (
	up   = +1
	down = -1
)

// search collects flips of one card.
type search struct {
	was   *Card
	card  Card // of the last supposition
	found []Flip
}

// flips reports whether a number makes another pod win, and which.
func (s *search) flips(x *Flip, v float64) (winner string, ok bool) {
	if Suppose(s.was, x.whatIf(v), &s.card) != nil || s.card.Winner < 0 {
		return "", false // out of range, or nobody is left
	}
	winner = s.card.WinnerRow().Pod.Spec.Name
	return winner, winner != s.was.WinnerRow().Pod.Spec.Name
}

// input searches one input of one pod, upwards or downwards, in steps that an
// operator would think in.
func (s *search) input(r *Row, name string, way float64) {
	f := inputField(name)
	now, known := f.now(r)
	if !known {
		return
	}
	x := Flip{Pod: r.Pod.Spec.Name, Field: name, Unit: f.unit, Now: now}
	step := 1.0
	switch name {
	case "cached":
		if step = float64(s.was.blockSize()); r.Match.Size > 0 {
			step = float64(r.Match.Size)
		}
	case "kv_usage":
		step = 0.01
	case "slow":
		step = 0.1
	case "held":
		if step = math.Ceil(r.PoolSize / 100); step == 0 {
			return
		}
	}
	room := f.most(s.was) - now
	if way == down {
		room = now - f.least
	}
	steps := int(math.Ceil(room / step))
	s.nearest(&x, min(steps, mostSteps), func(k int) float64 {
		return round(min(max(now+way*float64(k)*step, f.least), f.most(s.was)))
	})
}

// mostSteps bounds a search: a thousand requests more are no explanation.
const mostSteps = 1 << 12

// weights searches the constants that terms are multiplied with, both ways, and keeps
// those that need to change least.
func (s *search) weights() {
	inputs := len(s.found)
	for _, term := range TermNames() {
		key, ok := termWeights[term]
		if !ok {
			continue
		}
		now, _ := s.was.basis.policy.Weight(key)
		x := Flip{Field: key, Now: now}
		if now == 0 {
			s.nearest(&x, mostSteps, func(k int) float64 { return round(float64(k) / 1000) })
			continue
		}
		less := x
		s.nearest(&x, mostSteps, func(k int) float64 { return round(now * (1 + float64(k)/100)) })
		s.nearest(&less, 100, func(k int) float64 { return round(now * (1 - float64(k)/100)) })
	}
	slices.SortStableFunc(s.found[inputs:], func(a, b Flip) int { return cmp.Compare(a.stretch(), b.stretch()) })
}

// stretch says how far a weight has to go, as a factor whichever way.
func (x *Flip) stretch() float64 {
	if x.Now == 0 || x.At == 0 {
		return math.Inf(1)
	}
	return math.Abs(math.Log(x.At / x.Now))
}

// nearest finds the least number of steps that flips: in strides that double until
// one does, then by halves between that one and the one before. Terms are monotone in
// their inputs, so nothing before it flips, and nothing does if the last does not. It
// is the same with a weight: a score is linear in it, so that who is best for two
// values is best for all between them.
func (s *search) nearest(x *Flip, most int, at func(k int) float64) {
	if _, ok := s.flips(x, at(most)); most < 1 || !ok {
		return
	}
	before, hit := 0, 0
	for k := 1; k <= most; k = min(2*k, most) {
		if winner, ok := s.flips(x, at(k)); ok {
			x.Winner, hit = winner, k
			break
		}
		if before = k; k == most {
			break
		}
	}
	if hit == 0 {
		return
	}
	for hit-before > 1 {
		k := before + (hit-before)/2
		if winner, ok := s.flips(x, at(k)); ok {
			x.Winner, hit = winner, k
		} else {
			before = k
		}
	}
	x.At = at(hit)
	s.found = append(s.found, *x)
}

// round keeps what a person would type: six significant digits.
func round(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	if err != nil {
		return v
	}
	return r
}
