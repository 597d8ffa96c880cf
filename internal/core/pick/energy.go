package pick

import (
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// The energy term keeps work off pods near the end of their power or thermal
// envelope: a device there clocks down for everything it computes, and the last
// watts buy the least. It is off unless it is given a weight; what a device that
// already throttles costs is the hardware term's.

var energyTerm = term{
	name:   "energy",
	factor: func(p *Policy) *float64 { return &p.Energy.Weight },
	inputs: energyInputs,
	zero:   energyZero,
}

// observeEnergy notes the greatest share that a fresh page tells.
func (b *basis) observeEnergy(r *Row) {
	if r.Device == &noDevice {
		return
	}
	if v := r.envelope(); v.Known && r.Telemetry == telemetry.Fresh {
		b.envelope = max(b.envelope, v.V)
	}
}

// envelope is how much of its envelope a pod has taken. Without the limits, which
// exporters do not publish unless told to, utilisation stands for it.
func (r *Row) envelope() *telemetry.Value {
	if r.Device.Envelope.Known {
		return &r.Device.Envelope
	}
	return &r.Device.Utilisation
}

// envelopeOf is the share that counts. A pod that does not tell counts with the
// greatest of the fresh ones: no watts are known to be free there.
func (b *basis) envelopeOf(r *Row) float64 {
	if v := r.envelope(); v.Known {
		return min(v.V, 1)
	}
	return min(b.envelope, 1)
}

func energyCounts(b *basis, _ *Row) bool { return b.policy.Energy.Weight != 0 }

func energySeconds(b *basis, r *Row) float64 {
	e := &b.policy.Energy
	if e.Weight == 0 {
		return 0
	}
	return -e.Weight * max(0, b.envelopeOf(r)-e.From) / (1 - e.From)
}

func energyInputs(b *basis, r *Row) map[string]any {
	return map[string]any{
		"envelope": gauge(*r.envelope()),
		"taken":    number(b.envelopeOf(r)),
		"from":     number(b.policy.Energy.From),
		"weight_s": number(b.policy.Energy.Weight),
	}
}

func energyZero(b *basis, r *Row) reason.Code {
	if !r.envelope().Known && b.envelope == 0 {
		return reason.HardwareUnknown
	}
	return reason.BelowLimit
}
