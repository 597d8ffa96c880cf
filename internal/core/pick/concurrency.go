package pick

// The concurrency term charges each request of ours in flight, answered or not,
// about one decode step: what sharing a batch costs.

var concurrencyTerm = term{
	name:   "concurrency",
	factor: func(p *Policy) *float64 { return &p.Beta },
	inputs: concurrencyInputs,
}

func concurrencyCounts(b *basis, _ *Row) bool { return b.policy.Beta != 0 }

func concurrencySeconds(b *basis, r *Row) float64 {
	return -b.policy.Beta * float64(r.Load.InFlight)
}

func concurrencyInputs(b *basis, r *Row) map[string]any {
	return map[string]any{"in_flight": r.Load.InFlight, "beta_s": number(b.policy.Beta)}
}
