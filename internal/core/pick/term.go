package pick

import (
	"slices"

	"github.com/eppctl/eppctl/internal/core/reason"
)

// The terms of the score, in order of summation. This line is the whole registry:
// what follows from it, score.go has.
//
//go:generate go run ../../../scripts/terms KV Queue Delay Breaker Pool Copy Concurrency Utilisation LoRA Hardware Tier Energy

// term is one contribution to the score. The file named after it declares, of the
// term X, xTerm as below and two functions of a basis and a row: xSeconds, its signed
// seconds, and xCounts, whether they may be anything but 0. A term changes nothing and
// reads nothing but its arguments, so it can be evaluated again on a stored card.
type term struct {
	name string
	// factor is the weight that the seconds are multiplied with. A term without one
	// has nil, and setBy for whoever looks for it.
	factor func(*Policy) *float64
	setBy  string
	inputs func(*basis, *Row) map[string]any // raw, for display
	// zero says why seconds that have a weight are 0; nil = the pod is idle.
	zero func(*basis, *Row) reason.Code
}

// TermNames lists the terms in order of summation.
func TermNames() []string {
	names := make([]string, len(terms))
	for i, t := range terms {
		names[i] = t.name
	}
	return names
}

func termByName(name string) *term {
	if i := slices.IndexFunc(terms[:], func(t term) bool { return t.name == name }); i >= 0 {
		return &terms[i]
	}
	return nil
}

// add takes a term into the sum, which does not go through memory between terms.
func (r *Row) add(sum float64, term int, seconds float64) float64 {
	seconds += 0 // minus zero becomes zero
	r.Terms[term] = seconds
	return sum + seconds
}
