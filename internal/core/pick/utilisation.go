package pick

import "github.com/eppctl/eppctl/internal/core/telemetry"

// The utilisation term charges how busy the pod's device is where an exporter
// tells, else the share of KV blocks that running requests hold: a minor one.

var utilisationTerm = term{
	name:   "utilisation",
	factor: func(p *Policy) *float64 { return &p.Upsilon },
	inputs: utilisationInputs,
}

// unknownUsage stands in when no pod's page is fresh: as far from idle as from
// full.
const unknownUsage = 0.5

// observeUsage reads the gauge; a stale one keeps its last value. What is not
// known waits for fillUsage: it counts as the greatest measured among the
// fresh pods. Never idle, or a pod whose page fails would draw the traffic.
func (b *basis) observeUsage(r *Row, s *telemetry.Brief) {
	if s == nil || !s.Told(telemetry.HasKVUsage) {
		r.UsageHow = FromOthers
		return
	}
	r.Usage = s.KVUsage
	r.estimated = s.Told(telemetry.HasKVEstimate)
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

func utilisationCounts(b *basis, _ *Row) bool { return b.policy.Upsilon != 0 }

func utilisationSeconds(b *basis, r *Row) float64 {
	if busy := &r.Device.Utilisation; busy.Known {
		return -b.policy.Upsilon * min(max(busy.V, 0), 1)
	}
	return -b.policy.Upsilon * r.Usage
}

func utilisationInputs(b *basis, r *Row) map[string]any {
	return map[string]any{
		"device":       gauge(r.Device.Utilisation),
		"usage":        number(r.Usage),
		"usage_age_ms": r.usageAge(b.now),
		"usage_source": r.UsageHow.String(),
		"estimate":     r.estimated,
		"upsilon_s":    number(b.policy.Upsilon),
	}
}
