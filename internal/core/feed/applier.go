package feed

import (
	"context"
	"time"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/view"
)

// lagLimit is how much later than the promptest batch of its connection one may
// come before the member counts as not in sync. Relative to the promptest, a
// constant difference of the two clocks does not matter.
const lagLimit = 5 * time.Second

// clockStep is how far back, in seconds, a stamp lies behind the one before it
// when the engine's clock must have been set back in between.
const clockStep = 1

// showEvery is the number of queued items after which the board is brought up to
// date although more wait.
const showEvery = 64

// applier is the state of a subscriber's second goroutine.
type applier struct {
	order    sequence
	session  context.Context // of the connection the queue's items come from
	decoder  event.Decoder
	batch    event.Batch
	shown    view.Sync // as last put on the board
	last     int64     // ns: arrival of the latest live batch
	promptly float64   // s: smallest delay, see lag
	stamped  bool      // promptly is set
	stamp    float64   // s: of the latest live batch
	warned   bool      // of a batch that could not be read
}

// applyAll takes from the queue until ctx ends. A replay runs inside it: what
// arrives live meanwhile waits in the queue, which keeps a replayed store from
// reviving a block whose removal came live.
func (s *subscriber) applyAll(ctx context.Context) {
	s.session = ctx
	s.show()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.nudge:
			s.notice()
		case <-s.queue.ready:
		}
		for n := 1; ctx.Err() == nil; n++ {
			// Before each item: a new identity, and the purge it means, must not
			// wait behind a long queue.
			select {
			case <-s.nudge:
				s.notice()
			default:
			}
			it, ok := s.queue.take()
			if !ok {
				break
			}
			s.handle(&it)
			if n%showEvery == 0 {
				s.show()
			}
		}
		s.show()
	}
}

// notice takes up what identify and setReplay left.
func (s *subscriber) notice() {
	if s.replayAt.Load() != nil {
		s.perform(s.order.replayable(Now()), nil)
	}
	if id := s.seen.Load(); id != nil {
		s.perform(s.order.identify(*id, Now()), nil)
	}
}

func (s *subscriber) handle(it *item) {
	t := Now()
	switch it.kind {
	case itemUp:
		s.session, s.stamped = it.session, false
		s.perform(s.order.up(t), nil)
	case itemDown:
		s.order.down(it.why)
	case itemBatch:
		s.last = it.at
		s.perform(s.order.batch(it.seq, t), it)
	}
	if it.dropped > 0 {
		s.perform(s.order.dropped(it.dropped, it.last, t), nil)
	}
}

// perform does what the sequence machine says; live is the batch it was asked
// about, nil when it was none.
func (s *subscriber) perform(st step, live *item) {
	s.purge(st.purge)
	switch st.do {
	case apply:
		s.lag(s.index(live.payload), Now())
	case replay:
		s.show()
		end, why := s.fetch(st)
		t := Now()
		s.purge(s.order.ended(end, why, t).purge)
		if live != nil {
			s.perform(s.order.settle(live.seq, t), live)
		}
	}
}

// fetch runs one replay, under the life of the live connection.
func (s *subscriber) fetch(st step) (end replayEnd, why string) {
	ctx, cancel := context.WithCancel(s.session)
	defer cancel()
	s.mu.Lock()
	s.cancel = cancel
	s.mu.Unlock()
	end, rounds, err := s.replay.run(ctx, *s.replayAt.Load(), st.from, st.until, s.replayed)
	s.mu.Lock()
	s.cancel = nil
	s.mu.Unlock()
	s.count.add(func(c *Counters) {
		inc(&c.Replays, end.String())
		c.ReplayRounds += rounds
	})
	if err != nil {
		why = printable(err.Error(), 200)
	}
	s.log.Debug("replay", "from", st.from, "until", st.until, "end", end.String(), "rounds", rounds, "next", s.order.next(), "err", why)
	return end, why
}

// replayed is the reply function of a running replay.
func (s *subscriber) replayed(seq uint64, payload []byte, first bool) (next uint64, ok bool) {
	st := s.order.replayed(seq, first, Now())
	s.purge(st.purge)
	if st.do == apply {
		s.index(payload)
	}
	return s.order.next(), st.do != hole
}

// index decodes one batch and applies its events. It returns the engine's time
// stamp, 0 when there is none.
func (s *subscriber) index(payload []byte) (at float64) {
	err := s.decoder.Decode(payload, &s.batch)
	b := &s.batch
	if err != nil {
		b.Events = b.Events[:0]
	}
	t := Now()
	cleared, inflated := false, false
	behind, why := holeIn(b, err)
	if why != "" {
		s.unread(why)
	}
	for i := behind; i < len(b.Events); i++ {
		e := &b.Events[i]
		inflated = s.sink.Apply(s.member, e, t).Inflated
		cleared = cleared || e.Kind == event.Cleared && (e.Tier == event.TierGPU || e.Tier == event.TierAll)
	}
	if cleared {
		s.order.cleared()
	}
	if inflated {
		s.drop(s.order.inflated(t).purge)
	}
	s.count.add(func(c *Counters) {
		if err != nil {
			c.Undecodable++
			return
		}
		for i := range b.Events[behind:] {
			switch b.Events[behind+i].Kind {
			case event.Stored:
				c.Stored++
			case event.Removed:
				c.Removed++
			case event.Cleared:
				c.Cleared++
			}
		}
		for _, sk := range b.Skipped {
			inc(&c.Skips, sk.Reason)
		}
		if b.Rank >= 0 && b.Rank != s.rank {
			c.RankMismatch++
		}
	})
	if err != nil {
		return 0
	}
	return b.At
}

// holeIn says why a batch may have taken blocks away that we cannot name, "" when
// it has not, and which of its events come behind that. What is not read of a
// store costs a hit; a removal or clear not read would promise one for ever. An
// event of another kind is none of those; one without a readable tag may be.
func holeIn(b *event.Batch, err error) (behind int, why string) {
	if err != nil {
		return 0, "a batch could not be decoded: " + printable(err.Error(), 160)
	}
	for i, sk := range b.Skipped {
		switch sk.Tag {
		case "BlockRemoved", "AllBlocksCleared":
			why = sk.Tag + " could not be read: " + sk.Reason
		case "":
			why = "an event could not be read: " + sk.Reason
		default:
			continue
		}
		behind = min(max(sk.Index-i, 0), len(b.Events))
	}
	return behind, why
}

// unread drops what the member holds: see holeIn. It logs the first time only,
// since what one release of an engine writes it writes in every batch.
func (s *subscriber) unread(why string) {
	s.drop(s.order.unread(why, Now()).purge)
	if !s.warned {
		s.warned = true
		s.log.Warn("dropped the cached blocks of an engine that writes what we cannot read; logged once", "why", why)
	}
}

// lag compares a live batch's delay with the smallest of its connection. Stamps
// that go back mean that the engine's clock was set back: from there everything
// would look late by as much, so the comparison starts over. (Set forward,
// everything looks prompt, and the smallest delay follows at once.)
func (s *subscriber) lag(stamp float64, now int64) {
	if stamp <= 0 {
		return
	}
	if stamp < s.stamp-clockStep {
		s.stamped = false
	}
	s.stamp = stamp
	delay := float64(now)/1e9 - stamp
	if !s.stamped || delay < s.promptly {
		s.promptly, s.stamped = delay, true
	}
	lag := time.Duration((delay - s.promptly) * float64(time.Second))
	s.order.lagging = lag > lagLimit
	s.count.add(func(c *Counters) { c.Lag = lag })
}

// purge drops the member's blocks.
func (s *subscriber) purge(cause string) {
	if cause == "" {
		return
	}
	s.drop(cause)
	s.log.Info("dropped the cached blocks of an engine", "cause", cause)
}

// drop is purge without a word.
func (s *subscriber) drop(cause string) {
	s.sink.Purge(s.member)
	s.count.add(func(c *Counters) { inc(&c.Purges, cause) })
}

// show publishes the state where it differs from the one shown.
func (s *subscriber) show() {
	state, why := s.order.state()
	t := Now()
	seq := s.order.live.seq
	if s.order.applied.ok { // a replay may be ahead of the live stream
		seq = max(seq, s.order.applied.seq)
	}
	next := view.Sync{
		State: state, Why: why, Since: s.shown.Since,
		LastEvent: s.last, LastSeq: seq,
		Lost: s.order.lost, Connected: s.order.connected,
	}
	if state != s.shown.State || s.shown.Since == 0 {
		next.Since = t
	}
	if next == s.shown {
		return
	}
	if next.State != s.shown.State {
		s.log.Info("event stream", "state", state.String(), "why", why)
	}
	s.shown = next
	s.board.Put(s.member, next)
	s.count.add(func(c *Counters) {
		c.Missed, c.Lost, c.Duplicates = s.order.missed, s.order.lost, s.order.duplicates
	})
}
