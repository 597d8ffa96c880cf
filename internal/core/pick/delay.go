package pick

// The delay term charges what the request costs others: whoever comes to the pod
// while it waits there begins later by its prefill. As many come behind it as are
// before it, on average: Little's law gives both numbers the same rate and the same
// time. So a long prompt goes where few wait, even if the wait itself is as long
// there, and a warm one stays cheap everywhere.
//
// Without it a placement looks at its own first token alone. With it no simulated
// workload is slower by more than its seeds differ and most are faster, by 20 % where nothing is shared (Azure's
// code trace 0.65 s against 0.82 s) and by a tenth where four routers share the
// fleet (conv 1.22 s against 1.34 s).

var delayTerm = term{
	name:   "delay",
	factor: func(p *Policy) *float64 { return &p.Delay },
	inputs: delayInputs,
}

// behind is how many requests are taken to come while this one waits. A pod that
// does not tell its queue is not taken to be idle, as in the queue term.
func (r *Row) behind() float64 {
	if r.Assumed == 0 {
		return float64(r.Depth)
	}
	return max(float64(r.Depth), r.Assumed/r.servers())
}

// delayed is the sum of their delays at nominal speed.
func (b *basis) delayed(r *Row) float64 {
	return b.policy.Delay * r.behind() * (b.cold - r.Trust*(b.cold-r.Prefill))
}

func delayCounts(_ *basis, r *Row) bool { return r.Depth != 0 || r.Assumed != 0 }

func delaySeconds(b *basis, r *Row) float64 { return -b.delayed(r) }

func delayInputs(b *basis, r *Row) map[string]any {
	return map[string]any{
		"requests":  number(r.behind()),
		"prefill_s": number(b.cold - r.Trust*(b.cold-r.Prefill)),
		"weight":    number(b.policy.Delay),
	}
}
