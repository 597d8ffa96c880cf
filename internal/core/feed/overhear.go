package feed

import (
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// EventWatcher hears the events of each member in the order in which they enter the
// index, from the member's own goroutine: it must not block. Events are the feed's
// and valid during the call only.
type EventWatcher interface {
	Store(m pod.Member, events []event.Event)
	// Spoil says that the member's blocks were dropped: its stream lost some, or is
	// that of a new engine.
	Spoil(m pod.Member)
}

// overheard is a sink that somebody watches.
type overheard struct {
	sink
	watcher EventWatcher
}

func (o overheard) ApplyBatch(m pod.Member, events []event.Event, now int64) (inflated bool) {
	o.watcher.Store(m, events)
	return o.sink.ApplyBatch(m, events, now)
}

func (o overheard) Purge(m pod.Member) {
	o.watcher.Spoil(m)
	o.sink.Purge(m)
}

func (o overheard) Restart(m pod.Member) {
	o.watcher.Spoil(m)
	o.sink.Restart(m)
}
