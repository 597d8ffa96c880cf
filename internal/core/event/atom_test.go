package event_test

import (
	"reflect"
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
)

// TestTransfer: ATOM moves blocks between media in one event.
func TestTransfer(t *testing.T) {
	for name, e := range map[string]raw{
		"array": seq("BlockTransferred", []any{1, 2}, "GPU", "CPU", 3),
		"map":   obj("to_medium", "CPU", "from_medium", "GPU", "block_hashes", []any{1, 2}, "group_idx", 3, "type", "BlockTransferred"),
	} {
		b := decode(t, batch(e))
		layout := map[string]string{"array": "atom/array5", "map": "atom/map"}[name]
		common := event.Event{Hashes: []uint64{1, 2}, Group: 3, LoRAID: -1, Layout: layout, HashForm: "int"}
		to, from := common, common
		to.Kind, to.Tier, to.Medium = event.Stored, event.TierHost, "CPU"
		from.Kind, from.Tier, from.Medium = event.Removed, event.TierGPU, "GPU"
		if want := []event.Event{to, from}; !reflect.DeepEqual(b.Events, want) {
			t.Errorf("%s: %+v, want %+v", name, b.Events, want)
		}
	}
	for name, bad := range map[string]raw{
		event.SkipNoHashes:   seq("BlockTransferred"),
		event.SkipFieldType:  seq("BlockTransferred", []any{1}, "GPU", 5),
		event.SkipFieldRange: seq("BlockTransferred", []any{1}, "GPU", "CPU", -1),
	} {
		b := decode(t, batch(bad))
		if len(b.Events) != 0 || len(b.Skipped) != 1 || b.Skipped[0].Reason != name || !b.Skipped[0].Removes {
			t.Errorf("%s: %+v, skipped %+v", name, b.Events, b.Skipped)
		}
	}
	b := decode(t, batch(seq("BlockTransferred", []any{1}))) // nil media are the GPU
	if len(b.Events) != 2 || b.Events[0].Tier != event.TierGPU || b.Events[1].Tier != event.TierGPU {
		t.Errorf("%+v", b.Events)
	}
}
