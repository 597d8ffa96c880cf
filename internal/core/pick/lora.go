package pick

import (
	"slices"

	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// The lora term is the time until the request's adapter can compute.

// AdapterState is what a pod's page lets us say about the adapter. Listed means
// active: an idle adapter may be loaded all the same, so "unknown" is never
// "resident" and "free slot" never "absent".
type AdapterState uint8

// The states.
const (
	AdapterNone      AdapterState = iota // the request needs none
	AdapterActive                        // running or waiting on the pod
	AdapterFreeSlot                      // not active, and there is room
	AdapterSaturated                     // not active, and every slot is taken
	AdapterUnknown                       // no data
)

var adapterNames = [...]string{"none", "active", "free-slot", "saturated", "unknown"}

func (a AdapterState) String() string { return adapterNames[a] }

func observeLoRA(adapter string, r *Row, s *telemetry.Sample) {
	switch {
	case adapter == "":
		r.Adapter = AdapterNone
	case s == nil:
		r.Adapter = AdapterUnknown
	case s.LoRA.Known:
		r.Adapter = fromNames(adapter, &s.LoRA)
	case s.LoRA.SlotsUsed.Known && s.LoRA.SlotsTotal.Known:
		r.Adapter = fromSlots(&s.LoRA)
	default:
		r.Adapter = AdapterUnknown
	}
}

func fromNames(adapter string, l *telemetry.LoRA) AdapterState {
	_, running := slices.BinarySearch(l.Running, adapter)
	_, waiting := slices.BinarySearch(l.Waiting, adapter)
	switch {
	case running || waiting:
		return AdapterActive
	case l.Max > 0 && distinct(l.Running, l.Waiting) >= l.Max:
		return AdapterSaturated
	}
	return AdapterFreeSlot
}

func fromSlots(l *telemetry.LoRA) AdapterState {
	if l.SlotsUsed.V >= l.SlotsTotal.V {
		return AdapterSaturated
	}
	return AdapterFreeSlot
}

// distinct counts the names in two sorted lists.
func distinct(a, b []string) int {
	n := len(a)
	for _, x := range b {
		if _, ok := slices.BinarySearch(a, x); !ok {
			n++
		}
	}
	return n
}

func loraSeconds(b *basis, r *Row) float64 {
	switch l := b.policy.LoRA; r.Adapter {
	case AdapterFreeSlot, AdapterUnknown:
		return -l.Load
	case AdapterSaturated:
		return -(l.Load + l.SlotWait)
	}
	return 0
}

func loraInputs(b *basis, r *Row) map[string]any {
	return map[string]any{
		"state":       r.Adapter.String(),
		"load_s":      number(b.policy.LoRA.Load),
		"slot_wait_s": number(b.policy.LoRA.SlotWait),
	}
}
