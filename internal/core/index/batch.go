package index

import (
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// ahead is the number of events whose memory is fetched before the first of them
// is applied, and for which the member is locked once. A processor keeps 10 to 16
// misses in flight, so more overlap nothing; each touches about six lines, and 32
// of them fill a quarter of a first-level cache.
const ahead = 32

// ApplyBatch takes the events of one batch of a member, in order, at time now
// (ns). It does what Apply does with one after the other, for less: engines send
// what one step of theirs changed, mostly single blocks, as one batch. It
// reports whether Outcome.Inflated holds after the last.
func (ix *Index) ApplyBatch(id pod.Member, events []event.Event, now int64) (inflated bool) {
	second := ix.tick(now)
	m := ix.member(id)
	if m == nil {
		return false
	}
	for len(events) > 0 {
		n := min(len(events), ahead)
		m.mu.Lock()
		inflated = ix.applyAll(m, events[:n], now, second)
		ix.refilled(m)
		m.mu.Unlock()
		events = events[n:]
	}
	return inflated
}

// applyAll applies up to ahead events. Removals that follow each other become
// one: their hashes leave the reverse map one by one, and the runs they stood in
// once, before anything else looks at the coverage. m.mu is held.
func (ix *Index) applyAll(m *member, events []event.Event, now int64, second uint32) (inflated bool) {
	if len(events) > 1 {
		ix.fetch(m, events)
	}
	var gone removal
	for i := range events {
		e := &events[i]
		var o Outcome
		if m.plainRemoval(e) {
			o.Unknown = ix.take(m, &gone, e.Tier, e.Hashes)
		} else {
			ix.finish(m, &gone)
			o = ix.apply(m, e, now, second)
		}
		inflated = m.book(&o)
	}
	ix.finish(m, &gone)
	return inflated
}

// plainRemoval reports that apply would hand the event straight to remove.
func (m *member) plainRemoval(e *event.Event) bool {
	return e.Kind == event.Removed && e.Tier < event.NumTiers && !e.Shared && m.groups.plain(e)
}

// fetch reads what applying the events will read: for all of them the slots of
// their parents and own hashes, then the log where these lead, then the parents'
// runs. Within one event each of these waits for the one before it; here the
// misses of one kind overlap. Nothing is decided by it, so what a slot says need
// not be true any more. Stores of many blocks are left out: see reverse.warm.
func (ix *Index) fetch(m *member, events []event.Event) {
	if len(m.rev.table) == 0 {
		return
	}
	var sum uint64
	for i := range events {
		if e := &events[i]; ofFew(e) {
			sum ^= m.rev.warm(e.Parent, e.Hashes)
			if len(e.Tokens) > 0 {
				sum ^= uint64(e.Tokens[0])
			}
		}
	}
	var parents [ahead]uint32 // places in the log, then the runs there
	n := 0
	for i := range events {
		e := &events[i]
		if !ofFew(e) {
			continue
		}
		for _, hash := range e.Hashes {
			if at := m.rev.peek(hash); at != 0 {
				sum ^= uint64(m.rev.log.segment(at).gen)
			}
		}
		if at := m.rev.peek(e.Parent); at != 0 && e.HasParent {
			parents[n] = at
			sum ^= m.rev.log.hash(at)
			n++
		}
	}
	for i, at := range parents[:n] {
		parents[i] = m.rev.log.segment(at).run
	}
	var runs [ahead]*run
	for i, id := range parents[:n] {
		runs[i] = ix.runs.get(id)
	}
	for _, r := range runs[:n] {
		if r != nil {
			sum ^= uint64(r.n.Load())
		}
	}
	for _, r := range runs[:n] {
		if r != nil {
			sum ^= r.warm()
		}
	}
	m.sink ^= sum
}

// ofFew reports whether the event is a store of few blocks.
func ofFew(e *event.Event) bool { return e.Kind == event.Stored && len(e.Hashes) <= fewKeys }
