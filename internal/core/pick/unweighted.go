package pick

import "math"

// unit is a copy of the policy with every weight of a term at 1.
func (p *Policy) unit() *Policy {
	q := *p
	for _, t := range terms {
		if t.factor != nil {
			*t.factor(&q) = 1
		}
	}
	return &q
}

// Unweighted appends the terms of every row in seconds per unit of their weight, in
// the order of TermNames; NaN for rows that are no candidates. With TermWeights it
// says what other weights would have chosen. Copy, hardware and tier, in which alpha and
// delay are but a part, stand as they were.
func (c *Card) Unweighted(dst []float32) []float32 {
	b := c.basis
	b.policy = b.policy.unit()
	b.charge = charge(&b.policy.Breaker)
	for i := range c.Rows {
		r := &c.Rows[i]
		terms, total := r.Terms, r.Total
		r.Terms = [numTerms]float64{}
		b.score(r)
		unit := r.Terms
		r.Terms, r.Total = terms, total
		for _, t := range [...]int{TermCopy, TermHardware, TermTier} {
			unit[t] = terms[t]
		}
		for _, v := range unit {
			if !r.Candidate {
				v = math.NaN()
			}
			dst = append(dst, float32(v))
		}
	}
	return dst
}

// TermWeights are the weights of the terms, in the order of TermNames: 1 where a term
// has none.
func (p *Policy) TermWeights() []float64 {
	list := make([]float64, len(terms))
	for i, t := range terms {
		if list[i] = 1; t.factor != nil {
			list[i] = *t.factor(p)
		}
	}
	return list
}
