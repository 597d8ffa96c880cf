package feed

import (
	"cmp"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/reason"
)

// index decodes one batch and applies its events. It came live at a time in ns, or
// by a replay, 0. It returns the engine's time stamp, 0 when there is none.
func (s *subscriber) index(payload []byte, came int64) (at float64) {
	err := s.decoder.Decode(payload, &s.batch)
	b := &s.batch
	if err != nil {
		b.Events = b.Events[:0]
	}
	if n := b.Blocks[event.TierGPU]; n > 0 && s.created != nil {
		s.created(n)
	}
	t := Now()
	behind, why, detail := holeIn(b, err)
	if why != reason.None {
		s.purge(s.order.holed(why, detail, t))
	}
	if err != nil {
		s.order.unreadable(why, detail, t)
	} else {
		s.order.readable()
	}
	events := b.Events[behind:]
	s.adapters.watch(s.log, events)
	inflated := s.sink.ApplyBatch(s.member, events, t)
	if clears(events) {
		s.order.cleared()
		s.empty(came)
	}
	if inflated {
		s.purge(s.order.inflated(t))
	}
	s.count.add(func(c *Counters) {
		if err != nil {
			c.Undecodable++
		} else {
			c.batch(b, events)
		}
	})
	if err != nil {
		return 0
	}
	return b.At
}

// clears reports that events empty the cache that the engine computes in.
func clears(events []event.Event) bool {
	for i := range events {
		if e := &events[i]; e.Kind == event.Cleared && (e.Tier == event.TierGPU || e.Tier == event.TierAll) {
			return true
		}
	}
	return false
}

// holeIn says why a batch may have taken blocks away that we cannot name, None when
// it has not, and which of its events come behind that. What is not read of a
// store costs a hit; a removal or clear not read would promise one for ever. An
// event of another kind is none of those; one without a readable tag may be.
func holeIn(b *event.Batch, err error) (behind int, why reason.Code, detail string) {
	if err != nil {
		return 0, reason.Undecodable, "a batch could not be decoded: " + printable(err.Error(), 160)
	}
	for _, sk := range b.Skipped {
		if sk.Removes {
			why, detail = reason.EventsSkipped, cmp.Or(sk.Tag, "an event")+" could not be read: "+sk.Reason
			behind = sk.Before
		}
	}
	return behind, why, detail
}
