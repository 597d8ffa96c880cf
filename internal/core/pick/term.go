package pick

// term is one contribution to the score: signed seconds from what a row holds
// (score), and the raw inputs of it for display. A term changes nothing and reads
// nothing but its arguments, so it can be evaluated again on a stored card.
type term struct {
	name   string
	inputs func(*basis, *Row) map[string]any
}

// Indices into Row.Terms.
const (
	TermKV = iota
	TermQueue
	TermDelay
	TermBreaker
	TermPool
	TermConcurrency
	TermUtilisation
	TermLoRA
	TermHardware
	TermTier
	TermEnergy
	numTerms
)

// terms is the one list of what makes up a score. A total is the sum in this
// order, and so is everything printed.
var terms = [numTerms]term{
	TermKV:          {"kv", kvInputs},
	TermQueue:       {"queue", queueInputs},
	TermDelay:       {"delay", delayInputs},
	TermBreaker:     {"breaker", breakerInputs},
	TermPool:        {"pool", poolInputs},
	TermConcurrency: {"concurrency", concurrencyInputs},
	TermUtilisation: {"utilisation", utilisationInputs},
	TermLoRA:        {"lora", loraInputs},
	TermHardware:    {"hardware", hardwareInputs},
	TermTier:        {"tier", tierInputs},
	TermEnergy:      {"energy", energyInputs},
}

// TermNames lists the terms in order of summation.
func TermNames() []string {
	names := make([]string, len(terms))
	for i, t := range terms {
		names[i] = t.name
	}
	return names
}

// score evaluates every term of a row that has no terms yet and sums them up. It names them one by one
// because a call through a table costs as much as a term, and it passes over those
// that are nothing for nearly all rows: each addition waits for the one before, and
// to add 0 changes no sum.
func (b *basis) score(r *Row) {
	sum := r.add(0, TermKV, kvSeconds(b, r))
	sum = r.add(sum, TermQueue, queueSeconds(b, r))
	if r.Depth != 0 || r.Assumed != 0 {
		sum = r.add(sum, TermDelay, delaySeconds(b, r))
		sum = r.add(sum, TermBreaker, breakerSeconds(b, r))
	}
	sum = r.add(sum, TermPool, poolSeconds(b, r))
	if b.policy.Beta != 0 {
		sum = r.add(sum, TermConcurrency, concurrencySeconds(b, r))
	}
	if b.policy.Upsilon != 0 {
		sum = r.add(sum, TermUtilisation, utilisationSeconds(b, r))
	}
	if r.Adapter != AdapterNone {
		sum = r.add(sum, TermLoRA, loraSeconds(b, r))
	}
	if r.Slow != 1 || r.Severe != 0 {
		sum = r.add(sum, TermHardware, hardwareSeconds(b, r))
	}
	if r.offGPU() {
		sum = r.add(sum, TermTier, tierSeconds(b, r))
	}
	if b.policy.Energy.Weight != 0 {
		sum = r.add(sum, TermEnergy, energySeconds(b, r))
	}
	r.Total = sum
}

// add takes a term into the sum, which does not go through memory between terms.
func (r *Row) add(sum float64, term int, seconds float64) float64 {
	seconds += 0 // minus zero becomes zero
	r.Terms[term] = seconds
	return sum + seconds
}
