package pick

import "github.com/eppctl/eppctl/internal/core/telemetry"

// The utilisation term charges the share of KV blocks that running requests
// hold, a minor one.

// unknownUsage stands in when no pod's page is fresh: as far from idle as from
// full.
const unknownUsage = 0.5

// observeUsage reads the gauge; a stale one keeps its last value. What is not
// known waits for fillUsage: it counts as the greatest measured among the
// fresh pods. Never idle, or a pod whose page fails would draw the traffic.
func (b *basis) observeUsage(r *Row, s *telemetry.Sample) {
	if s == nil || !s.KVUsage.Known {
		r.UsageHow = FromOthers
		return
	}
	r.Usage = min(max(s.KVUsage.V, 0), 1)
	r.estimated = s.KVEstimate
	if r.Telemetry != telemetry.Fresh || r.estimated {
		return
	}
	if b.usageHow == FromDefault || r.Usage > b.usage {
		b.usage, b.usageHow = r.Usage, FromOthers
	}
}

func (b *basis) fillUsage(r *Row) {
	if r.UsageHow != FromPod {
		r.Usage, r.UsageHow = b.usage, b.usageHow
	}
}

func utilisationSeconds(b *basis, r *Row) float64 { return -b.policy.Upsilon * r.Usage }

func utilisationInputs(b *basis, r *Row) map[string]any {
	return map[string]any{
		"usage":        number(r.Usage),
		"usage_source": r.UsageHow.String(),
		"estimate":     r.estimated,
		"upsilon_s":    number(b.policy.Upsilon),
	}
}
