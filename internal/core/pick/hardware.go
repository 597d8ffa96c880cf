package pick

import "github.com/eppctl/eppctl/internal/core/telemetry"

// The hardware term is what a slower or failing device adds: its factor on all
// the pod's prefill, queued and own, and a flat charge while it is critical.

func (b *basis) observeHardware(r *Row, s *telemetry.Sample) {
	r.Slow = b.rated(r)
	if s == nil || !s.Device.Known {
		return // no telemetry is not a fault
	}
	h, d := &b.policy.Hardware, &s.Device
	degraded := 1.0
	if d.SlowDown.Known && d.SlowDown.V >= h.SlowFrom {
		degraded = min(d.SlowDown.V, h.SlowMax)
	}
	if d.Throttled || d.Critical {
		degraded = max(degraded, h.Impaired)
	}
	if d.Critical {
		r.Severe = h.Severe
	}
	r.Slow *= degraded
	r.fatal = d.Fatal
}

// rated is the factor between the reference calibration and a pod that is
// configured with a rate of its own.
func (b *basis) rated(r *Row) float64 {
	if rate := r.Pod.Spec.PrefillRate; rate > 0 {
		return min(max(b.cal.TokensPerSecond/rate, 1/maxRated), maxRated)
	}
	return 1
}

// maxRated bounds what a configured rate can claim: no two devices that serve
// one model lie further apart, a slip of the pen does.
const maxRated = 64

func hardwareSeconds(b *basis, r *Row) float64 {
	return -((r.Slow-1)*(b.policy.Alpha*r.Prefill+r.Queue) + r.Severe)
}

func hardwareInputs(_ *basis, r *Row) map[string]any {
	return map[string]any{
		"slow":      number(r.Slow),
		"severe_s":  number(r.Severe),
		"prefill_s": number(r.Prefill),
		"queue_s":   number(r.Queue),
	}
}
