package pick

// term is one contribution to the score: signed seconds from what a row holds,
// and the raw inputs of it for display. A term changes nothing and reads nothing
// but its arguments, so it can be evaluated again on a stored card.
type term struct {
	name    string
	seconds func(*basis, *Row) float64
	inputs  func(*basis, *Row) map[string]any
}

// Indices into Row.Terms.
const (
	TermKV = iota
	TermQueue
	TermBreaker
	TermPool
	TermConcurrency
	TermUtilisation
	TermLoRA
	TermHardware
	TermTier
	numTerms
)

// terms is the one list of what makes up a score. A total is the sum in this
// order, and so is everything printed.
var terms = [numTerms]term{
	TermKV:          {"kv", kvSeconds, kvInputs},
	TermQueue:       {"queue", queueSeconds, queueInputs},
	TermBreaker:     {"breaker", breakerSeconds, breakerInputs},
	TermPool:        {"pool", poolSeconds, poolInputs},
	TermConcurrency: {"concurrency", concurrencySeconds, concurrencyInputs},
	TermUtilisation: {"utilisation", utilisationSeconds, utilisationInputs},
	TermLoRA:        {"lora", loraSeconds, loraInputs},
	TermHardware:    {"hardware", hardwareSeconds, hardwareInputs},
	TermTier:        {"tier", tierSeconds, tierInputs},
}

// TermNames lists the terms in order of summation.
func TermNames() []string {
	names := make([]string, len(terms))
	for i, t := range terms {
		names[i] = t.name
	}
	return names
}

// score evaluates every term of a row and sums them up.
func (b *basis) score(r *Row) {
	r.Total = 0
	for i := range terms {
		r.Terms[i] = terms[i].seconds(b, r) + 0 // minus zero becomes zero
		r.Total += r.Terms[i]
	}
}
