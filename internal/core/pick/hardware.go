package pick

import "github.com/eppctl/eppctl/internal/core/reason"

// The hardware term is what a slower or failing device adds: its factor on all
// the pod's prefill, queued, own and in the way of others, and a flat charge while
// it is critical.

var hardwareTerm = term{
	name:   "hardware",
	setBy:  "it is set by hardware.slow_from, .slow_max, .impaired and .severe",
	inputs: hardwareInputs,
	zero:   hardwareZero,
}

// observeHardware sets the factor and the charge. What was measured of the pod's
// prefill stands for what its configured rate and its clock let one expect; a
// device that says it is throttled or failing is never better than that. Of nearly
// all pods nothing is known, and they stay at 1.
func (b *basis) observeHardware(r *Row) {
	if r.Device.Known || r.Load.Pace.Sure != 0 || r.Pod.Spec.PrefillRate > 0 {
		b.observeSpeed(r)
	}
}

// observeSpeed is for a pod of whose speed something is known.
func (b *basis) observeSpeed(r *Row) {
	r.Slow = b.paced(b.rated(r), r)
	h, d := &b.policy.Hardware, r.Device
	if !d.Known { // no telemetry is not a fault
		return
	}
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
	r.Slow = max(r.Slow, b.rated(r)*degraded)
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

// paced is a pod's factor after what was measured there, as far as that is sure.
func (b *basis) paced(rated float64, r *Row) float64 {
	p := &r.Load.Pace
	if !b.policy.Learn.On || p.Sure == 0 {
		return rated
	}
	measured := min(max(p.Factor/b.scale, 1/maxRated), maxRated)
	if noise := b.policy.Learn.Noise; measured < rated*noise && measured*noise > rated {
		return rated
	}
	return rated + p.Sure*(measured-rated)
}

// maxRated bounds what a configured rate can claim: no two devices that serve
// one model lie further apart, a slip of the pen does.
const maxRated = 64

func hardwareCounts(_ *basis, r *Row) bool { return r.Slow != 1 || r.Severe != 0 }

func hardwareSeconds(b *basis, r *Row) float64 {
	if r.Slow == 1 {
		return -r.Severe
	}
	return -((r.Slow-1)*(b.policy.Alpha*r.Prefill+r.Queue+b.delayed(r)) + r.Severe)
}

func hardwareInputs(b *basis, r *Row) map[string]any {
	return map[string]any{
		"rated":     number(b.rated(r)),
		"measured":  positiveOrNull(r.Load.Pace.Factor / b.scale),
		"sure":      number(r.Load.Pace.Sure),
		"slow":      number(r.Slow),
		"severe_s":  number(r.Severe),
		"prefill_s": number(r.Prefill),
		"queue_s":   number(r.Queue),
		"delay_s":   number(b.delayed(r)),
	}
}

func hardwareZero(_ *basis, r *Row) reason.Code {
	if !r.Device.Known && r.Load.Pace.Sure == 0 && r.Pod.Spec.PrefillRate == 0 {
		return reason.HardwareUnknown
	}
	return reason.HardwareNormal
}
