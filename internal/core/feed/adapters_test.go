package feed

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
)

// IX-32: an adapter that comes back under its name with another number is told
// once per change; the index knows it by its name alone.
func TestAdapterReloaded(t *testing.T) {
	var text bytes.Buffer
	log, a := slog.New(slog.NewTextHandler(&text, nil)), adapters{}
	stored := func(name string, number int64) event.Event {
		return event.Event{Kind: event.Stored, LoRA: name, LoRAID: number}
	}
	a.watch(log, []event.Event{
		stored("sql", 1), stored("law", 2), stored("sql", 1), stored("", -1), stored("sql", -1),
		{Kind: event.Removed, LoRA: "sql", LoRAID: 9},
	})
	if text.Len() > 0 {
		t.Errorf("nothing was loaded again: %s", &text)
	}
	a.watch(log, []event.Event{stored("sql", 3), stored("sql", 3), stored("law", 2)})
	if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "adapter=sql number=3 before=1") {
		t.Errorf("%s", got)
	}
	for i := range 2 * maxAdapters {
		a.watch(log, []event.Event{stored(fmt.Sprint("a", i), 1)})
	}
	if len(a.numbers) != maxAdapters {
		t.Errorf("%d names remembered, want %d", len(a.numbers), maxAdapters)
	}
}
