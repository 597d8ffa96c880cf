package recorded

import (
	"fmt"
	"math"
	"slices"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/recording"
)

// Alternative is a policy that recorded decisions are asked about, made of the one
// that they were decided by.
type Alternative struct {
	Name string
	Make func(recorded *pick.Policy) (*pick.Policy, error)
}

// Changed is how many decisions an alternative would have given to another pod, all
// else as it was: Of so many of which the recording can tell. Ties are settled by the
// request's id, which is not recorded: they count by how likely they end elsewhere.
type Changed struct {
	Decisions float64
	Of        int
}

// PolicyOf is the policy that a fleet's decisions were made by. Constants that this
// version does not know are left out, those that the file lacks are the defaults.
func PolicyOf(f *recording.Fleet) (*pick.Policy, error) {
	var list []pick.Weight
	for _, key := range pick.WeightKeys() {
		if v, ok := f.Weights[key]; ok {
			list = append(list, pick.Weight{Key: key, Value: v})
		}
	}
	pol, err := pick.DefaultPolicy().With(list...)
	if err != nil {
		return nil, fmt.Errorf("recorded weights: %w", err)
	}
	return pol, nil
}

// rule is an alternative over the decisions of one fleet.
type rule struct {
	was, now weighted
	told     bool // the terms tell what it would decide
	// mixed are the terms that change with what differs in a way that their seconds
	// do not tell: hardware with alpha and delay, tier and copy with alpha.
	mixed []int
}

// weighted are weights by a fleet's terms.
type weighted struct {
	weights []float64
	tie     float64 // seconds
}

// free are the constants that a recorded decision can be asked about: the weights of
// terms, and how near a tie is.
var free = []string{"alpha", "delay", "pool", "beta", "upsilon", "breaker.weight", "energy.weight", "tie_window"}

func newRule(f *recording.Fleet, was, now *pick.Policy) rule {
	r := rule{told: true, was: weighted{tie: was.TieWindow}, now: weighted{tie: now.TieWindow}}
	names, before, after := pick.TermNames(), was.TermWeights(), now.TermWeights()
	for _, term := range f.Terms {
		i := slices.Index(names, term)
		if i < 0 {
			return rule{} // of another version
		}
		r.was.weights, r.now.weights = append(r.was.weights, before[i]), append(r.now.weights, after[i])
	}
	for _, key := range pick.WeightKeys() {
		a, _ := was.Weight(key)
		b, _ := now.Weight(key)
		if a != b && !slices.Contains(free, key) {
			r.told = false
		}
	}
	if was.Alpha != now.Alpha {
		r.mixed = append(r.mixed, slices.Index(f.Terms, names[pick.TermHardware]), slices.Index(f.Terms, names[pick.TermTier]), slices.Index(f.Terms, names[pick.TermCopy]))
	}
	if was.Delay != now.Delay {
		r.mixed = append(r.mixed, slices.Index(f.Terms, names[pick.TermHardware]))
	}
	return r
}

// again decides anew over recorded terms, and returns how likely another pod gets the
// request.
func (r *rule) again(d *recording.Decision) (other float64, known bool) {
	n := len(r.now.weights)
	if !r.told || n == 0 || len(d.Scores) < (d.Picked+1)*n || r.unclear(d) {
		return 0, false
	}
	was, _ := r.was.tied(d)
	now, found := r.now.tied(d)
	switch {
	case !found || math.IsNaN(float64(d.Scores[d.Picked*n])):
		return 0, false // the pick was no candidate: the scores are of something else
	case !now[d.Picked]:
		return 1, true
	}
	// The picked pod has the greatest of random numbers among those it was tied with.
	// It loses if the greatest of all is with one that is tied only now.
	before, joined := 0, 0
	for i := range now {
		switch {
		case was[i] || i == d.Picked:
			before++
		case now[i]:
			joined++
		}
	}
	return float64(joined) / float64(before+joined), true
}

// unclear reports that terms would change by more than their weight.
func (r *rule) unclear(d *recording.Decision) bool {
	n := len(r.now.weights)
	for i := 0; len(r.mixed) > 0 && i*n < len(d.Scores); i++ {
		for _, k := range r.mixed {
			if k >= 0 && d.Scores[i*n+k] != 0 && !math.IsNaN(float64(d.Scores[i*n+k])) {
				return true
			}
		}
	}
	return false
}

// tied are the pods within the tie window of the best one.
func (w *weighted) tied(d *recording.Decision) (pods []bool, found bool) {
	n := len(w.weights)
	totals, best := make([]float64, len(d.Scores)/n), math.Inf(-1)
	for i := range totals {
		for k, v := range d.Scores[i*n : (i+1)*n] {
			totals[i] += w.weights[k] * float64(v)
		}
		if !math.IsNaN(totals[i]) {
			best = max(best, totals[i])
		}
	}
	pods = make([]bool, len(totals))
	for i, t := range totals {
		pods[i] = best-t <= w.tie
	}
	return pods, !math.IsInf(best, -1)
}
