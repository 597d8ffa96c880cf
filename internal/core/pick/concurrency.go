package pick

// The concurrency term charges each request of ours in flight, answered or not,
// about one decode step: what sharing a batch costs.

func concurrencySeconds(b *basis, r *Row) float64 {
	return -b.policy.Beta * float64(r.Load.InFlight)
}

func concurrencyInputs(b *basis, r *Row) map[string]any {
	return map[string]any{"in_flight": r.Load.InFlight, "beta_s": number(b.policy.Beta)}
}
