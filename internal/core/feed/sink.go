package feed

import (
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// sink is the part of the index a subscriber writes.
type sink interface {
	ApplyBatch(m pod.Member, events []event.Event, now int64) (inflated bool)
	Purge(m pod.Member)
	Restart(m pod.Member)
	Emptied(m pod.Member, at int64)
}

// void is a sink that keeps nothing.
type void struct{}

func (void) ApplyBatch(pod.Member, []event.Event, int64) (inflated bool) { return false }

func (void) Purge(pod.Member) {}

func (void) Restart(pod.Member) {}

func (void) Emptied(pod.Member, int64) {}

// sink is where the feed's events go.
func (f *Feed) sink() sink {
	if f.opts.Discard {
		return void{}
	}
	if w := f.opts.Watcher; w != nil {
		return overheard{f.fleet.Index, w}
	}
	return f.fleet.Index
}
