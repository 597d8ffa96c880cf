package pick

// The breaker term is the circuit breaker: it doubles with every request before
// its first token, is nothing for a normal queue and reaches its weight at the
// depth at which the soft filter leaves the pod out. It follows the depth alone,
// so it closes by itself as requests are answered.

var breakerTerm = term{
	name:   "breaker",
	factor: func(p *Policy) *float64 { return &p.Breaker.Weight },
	inputs: breakerInputs,
}

func breakerCounts(_ *basis, r *Row) bool { return r.Depth != 0 }

func breakerSeconds(b *basis, r *Row) float64 {
	d := min(r.Depth, b.policy.Breaker.Depth)
	if d == 0 {
		return 0
	}
	return -b.charge * (power(b.policy.Breaker.Ratio, d) - 1)
}

func breakerInputs(b *basis, r *Row) map[string]any {
	return map[string]any{
		"before_first_token": r.Depth,
		"limit":              b.policy.Breaker.Depth,
		"ratio":              number(b.policy.Breaker.Ratio),
		"weight_s":           number(b.policy.Breaker.Weight),
		"open":               r.Depth >= b.policy.Breaker.Depth,
	}
}
