package event_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
)

func TestUnknownIsShown(t *testing.T) {
	store := func(more ...any) raw {
		return obj(append([]any{"type", "BlockStored", "block_hashes", []any{1}, "token_ids", []any{1}, "block_size", 1}, more...)...)
	}
	t.Run("names", func(t *testing.T) {
		b := decode(t, seq(1.5, []any{
			store("colour", "red", "session_id", "s", "token_offset", 0),
			store("colour", 3),
			raw(seq("Ignored", 1)),
			raw(seq("BlockRemoved", []any{1}, "GPU", 0, "full_attention", nil, "x", "y")),
			raw(seq("AllBlocksCleared", "GPU", 7)),
			raw(obj("type", "Ignored", "shade", 1)),
		}, 0, "epoch", "more"))
		want := []event.Unknown{
			{Name: "BlockStored.colour", Count: 2}, {Name: "Ignored", Count: 2}, {Name: "BlockRemoved[6]", Count: 1},
			{Name: "AllBlocksCleared[2]", Count: 1}, {Name: "batch[3]", Count: 1},
		}
		if len(b.Events) != 4 || len(b.Skipped) != 2 {
			t.Errorf("%d events, skipped %+v", len(b.Events), b.Skipped)
		}
		got := append(append([]event.Unknown{}, b.Unknown[1:]...), b.Unknown[0]) // the batch's own comes first
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
	t.Run("a map batch", func(t *testing.T) {
		b := decode(t, obj("ts", 1.5, "events", []any{store()}, "epoch", 4))
		if want := []event.Unknown{{Name: "batch.epoch", Count: 1}}; !reflect.DeepEqual(b.Unknown, want) {
			t.Errorf("%+v", b.Unknown)
		}
	})
	t.Run("capped", func(t *testing.T) {
		var more, events []any
		for i := range 100 {
			more = append(more, fmt.Sprint("k", i), i)
			events = append(events, raw(seq(fmt.Sprint("Tag", i))))
		}
		events = append(events, store(append(more, strings.Repeat("x", 500), 1)...), raw(seq(strings.Repeat("y", 500))))
		b := decode(t, seq(1.5, events))
		sum := 0
		for _, u := range b.Unknown {
			sum += u.Count
			if len(u.Name) > 64 {
				t.Errorf("a name of %d bytes", len(u.Name))
			}
		}
		if len(b.Unknown) != 16 || b.Unknown[15].Name != event.OtherUnknown || sum != 100+101+1 {
			t.Errorf("%d names, %d in all: %+v", len(b.Unknown), sum, b.Unknown)
		}
	})
	t.Run("without allocation", func(t *testing.T) {
		payload := batch(store("colour", 1, "shade", 2), store("colour", 1), seq("Ignored"))
		var d event.Decoder
		var b event.Batch
		if n := testing.AllocsPerRun(100, func() {
			if err := d.Decode(payload, &b); err != nil || len(b.Unknown) != 3 {
				t.Fatal(err, b.Unknown)
			}
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}
