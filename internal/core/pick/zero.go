package pick

import "github.com/eppctl/eppctl/internal/core/reason"

// zero says why a term of a row is nothing; None when it is something. A number that
// is 0 because nobody knows must not look like one that is 0 because all is well.
func (b *basis) zero(r *Row, t int) reason.Code {
	if r.Terms[t] != 0 {
		return reason.None
	}
	pol := b.policy
	factor := [numTerms]*float64{
		TermKV: &pol.Alpha, TermDelay: &pol.Delay, TermPool: &pol.Pool, TermConcurrency: &pol.Beta, TermUtilisation: &pol.Upsilon,
		TermBreaker: &pol.Breaker.Weight, TermEnergy: &pol.Energy.Weight,
	}[t]
	if factor != nil && *factor == 0 {
		return reason.WeightZero
	}
	switch t {
	case TermKV:
		if r.Cached == 0 {
			return r.Reason
		}
		return reason.NotTrusted
	case TermQueue:
		if r.Depth > 0 {
			return reason.Overdue
		}
	case TermPool:
		switch {
		case r.PoolSize <= 0:
			return reason.PoolUnknown
		case b.means.Residence == 0:
			return reason.NoResidence
		}
	case TermLoRA:
		switch r.Adapter {
		case AdapterNone:
			return reason.AdapterNone
		case AdapterResident:
			return reason.AdapterResident
		}
		return reason.WeightZero
	case TermHardware:
		if !r.Device.Known && r.Load.Pace.Sure == 0 && r.Pod.Spec.PrefillRate == 0 {
			return reason.HardwareUnknown
		}
		return reason.HardwareNormal
	case TermTier:
		switch {
		case r.Cached == 0:
			return r.Reason
		case !r.offGPU():
			return reason.OnGPU
		case r.Trust == 0:
			return reason.NotTrusted
		}
		return reason.WeightZero // of what the copy saves, which caps the term, or of the link
	case TermEnergy:
		if !r.envelope().Known && b.envelope == 0 {
			return reason.HardwareUnknown
		}
		return reason.BelowLimit
	}
	return reason.Idle
}
