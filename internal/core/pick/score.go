// Code generated from term.go by scripts/terms. DO NOT EDIT.

package pick

// Indices into Row.Terms.
const (
	TermKV = iota
	TermQueue
	TermDelay
	TermBreaker
	TermPool
	TermCopy
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
	TermKV:          kvTerm,
	TermQueue:       queueTerm,
	TermDelay:       delayTerm,
	TermBreaker:     breakerTerm,
	TermPool:        poolTerm,
	TermCopy:        copyTerm,
	TermConcurrency: concurrencyTerm,
	TermUtilisation: utilisationTerm,
	TermLoRA:        loraTerm,
	TermHardware:    hardwareTerm,
	TermTier:        tierTerm,
	TermEnergy:      energyTerm,
}

// score evaluates every term of a row that has no terms yet and sums them up. It passes
// over those that are nothing for nearly all rows: each addition waits for the one
// before, and to add 0 changes no sum.
func (b *basis) score(r *Row) {
	sum := 0.0
	if kvCounts(b, r) {
		sum = r.add(sum, TermKV, kvSeconds(b, r))
	}
	if queueCounts(b, r) {
		sum = r.add(sum, TermQueue, queueSeconds(b, r))
	}
	if delayCounts(b, r) {
		sum = r.add(sum, TermDelay, delaySeconds(b, r))
	}
	if breakerCounts(b, r) {
		sum = r.add(sum, TermBreaker, breakerSeconds(b, r))
	}
	if poolCounts(b, r) {
		sum = r.add(sum, TermPool, poolSeconds(b, r))
	}
	if copyCounts(b, r) {
		sum = r.add(sum, TermCopy, copySeconds(b, r))
	}
	if concurrencyCounts(b, r) {
		sum = r.add(sum, TermConcurrency, concurrencySeconds(b, r))
	}
	if utilisationCounts(b, r) {
		sum = r.add(sum, TermUtilisation, utilisationSeconds(b, r))
	}
	if loraCounts(b, r) {
		sum = r.add(sum, TermLoRA, loraSeconds(b, r))
	}
	if hardwareCounts(b, r) {
		sum = r.add(sum, TermHardware, hardwareSeconds(b, r))
	}
	if tierCounts(b, r) {
		sum = r.add(sum, TermTier, tierSeconds(b, r))
	}
	if energyCounts(b, r) {
		sum = r.add(sum, TermEnergy, energySeconds(b, r))
	}
	r.Total = sum
}
