package pick

import (
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

// The lora term is the time until the request's adapter can compute: nothing where
// its weights are on the pod, which is asked of history and not of activity alone.
// An adapter that idles between two requests is loaded all the same, and requests
// that followed activity would drag it from pod to pod.

var loraTerm = term{
	name:   "lora",
	setBy:  "its seconds are lora.load and lora.slot_wait",
	inputs: loraInputs,
	zero:   loraZero,
}

// AdapterState is what is known of the request's adapter on a pod.
type AdapterState uint8

// The states.
const (
	AdapterNone      AdapterState = iota // the request needs none
	AdapterResident                      // in use, or used and not displaced since
	AdapterLoadable                      // not known to be there, and there is a slot to compute in
	AdapterSaturated                     // not in use, and others take every slot
	AdapterUnknown                       // no data
)

var adapterNames = [...]string{"none", "resident", "loadable", "saturated", "unknown"}

func (a AdapterState) String() string { return adapterNames[a] }

// observeLoRA asks pages and ledger for the adapter that the request needs.
func observeLoRA(l *view.Ledger, adapter string, r *Row, s *telemetry.Sample) {
	if r.Telemetry == telemetry.Unknown {
		s = nil
	}
	r.LoRA = l.Residency(r.Pod, adapter, s)
	var page telemetry.LoRA
	if s != nil {
		page = s.LoRA
	}
	slots := page.SlotsUsed.Known && page.SlotsTotal.Known
	if r.Slots = page.Max; r.Slots == 0 && slots {
		r.Slots = page.SlotsTotal.Count()
	}
	switch {
	case r.LoRA.InUse:
		r.Adapter = AdapterResident
	case r.Slots > 0 && r.LoRA.Using >= r.Slots:
		r.Adapter = AdapterSaturated
	case r.LoRA.Seen && r.LoRA.Newer < r.keeps():
		r.Adapter = AdapterResident
	case slots && page.SlotsUsed.V >= page.SlotsTotal.V: // by whom, SGLang does not tell
		r.Adapter = AdapterSaturated
	case page.Known || slots:
		r.Adapter = AdapterLoadable
	default:
		r.Adapter = AdapterUnknown
	}
}

// keeps is how many adapters the pod has loaded at once: at least as many as it
// computes with, and one where nobody tells (vLLM's default of max_loras).
func (r *Row) keeps() int { return max(r.Slots, r.Pod.Spec.MaxCPULoRAs, 1) }

func loraCounts(_ *basis, r *Row) bool { return r.Adapter != AdapterNone }

func loraSeconds(b *basis, r *Row) float64 {
	switch l := b.policy.LoRA; r.Adapter {
	case AdapterLoadable, AdapterUnknown:
		return -l.Load
	case AdapterSaturated:
		return -(l.Load + l.SlotWait)
	}
	return 0
}

func loraInputs(b *basis, r *Row) map[string]any {
	in := map[string]any{
		"state":       r.Adapter.String(),
		"in_use":      r.LoRA.InUse,
		"newer":       nil, // other adapters used here after it; null = it never was
		"slots":       positiveOrNull(float64(r.Slots)),
		"slots_taken": r.LoRA.Using,
		"load_s":      number(b.policy.LoRA.Load),
		"slot_wait_s": number(b.policy.LoRA.SlotWait),
	}
	if r.LoRA.Seen {
		in["newer"] = r.LoRA.Newer
	}
	return in
}

func loraZero(_ *basis, r *Row) reason.Code {
	switch r.Adapter {
	case AdapterNone:
		return reason.AdapterNone
	case AdapterResident:
		return reason.AdapterResident
	}
	return reason.WeightZero
}
