package pick

import (
	"slices"

	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// The utilisation term charges the share of KV blocks that running requests
// hold, a minor one.

// unknownUsage stands in when no pod's page is fresh: as far from idle as from
// full.
const unknownUsage = 0.5

// observeUsage reads the gauge; a stale one keeps its last value. What is not
// known waits for fillUsage.
func (c *Card) observeUsage(r *Row, s *telemetry.Sample) {
	if s == nil || !s.KVUsage.Known {
		r.UsageHow = FromOthers
		c.blind++
		return
	}
	r.Usage = min(max(s.KVUsage.V, 0), 1)
	r.estimated = s.KVEstimate
	if r.Telemetry == telemetry.Fresh {
		c.usages = append(c.usages, r.Usage)
	}
}

// settleUsage finds what an unknown usage counts as: the median of the fresh
// pods. Never idle, or a pod whose page fails would draw the traffic.
func (c *Card) settleUsage() {
	b := &c.basis
	if c.blind == 0 {
		return
	}
	if len(c.usages) == 0 {
		b.usage, b.usageHow = unknownUsage, FromDefault
		return
	}
	slices.Sort(c.usages)
	n := len(c.usages)
	b.usage, b.usageHow = (c.usages[(n-1)/2]+c.usages[n/2])/2, FromOthers
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
