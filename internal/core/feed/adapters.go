package feed

import (
	"log/slog"

	"github.com/eppctl/eppctl/internal/core/event"
)

// maxAdapters bounds the names that are remembered of a stream. An engine that
// loads more under way is not followed any further: only a log line is lost.
const maxAdapters = 1024

// adapters remembers which number each adapter's name had, to tell of a reload:
// an engine that loads an adapter again under its name gives it a new number. The
// index goes by names, so what it holds of the old one counts for the new. The zero value is ready;
// for the applier alone.
type adapters struct {
	numbers map[string]int64
}

// watch logs the adapters among the events whose number is another one than it
// was.
func (a *adapters) watch(log *slog.Logger, events []event.Event) {
	for i := range events {
		e := &events[i]
		if e.Kind != event.Stored || e.LoRA == "" || e.LoRAID < 0 {
			continue
		}
		old, known := a.numbers[e.LoRA]
		switch {
		case known && old == e.LoRAID, !known && len(a.numbers) >= maxAdapters:
			continue
		case known:
			log.Info("adapter loaded again under its name", "adapter", e.LoRA, "number", e.LoRAID, "before", old)
		case a.numbers == nil:
			a.numbers = map[string]int64{}
		}
		a.numbers[e.LoRA] = e.LoRAID
	}
}
