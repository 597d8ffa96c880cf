package feed

import (
	"context"
	"time"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/view"
)

// showEvery is the number of queued items after which the board is brought up to
// date although more wait.
const showEvery = 64

const (
	// watchEvery is how often the states that time alone brings are looked for.
	watchEvery = time.Second
	// silentRequests is the number of requests without an event, per rank of the
	// pod, that make a stream silent: few enough to tell soon, more than could
	// all be full hits on what the engine holds and the index does not know, as
	// right after a late join.
	silentRequests = 20
)

// decoder reads the payloads of one stream, in their order.
type decoder interface {
	Decode(payload []byte, b *event.Batch) error
}

// applier is the state of a subscriber's second goroutine.
type applier struct {
	order    sequence
	session  context.Context // of the connection the queue's items come from
	replays  *replaying      // the one that runs, nil = none
	held     *item           // the batch that waits for it, and all in the queue behind
	decoder  decoder
	forget   func()      // drops what the decoder knows of blocks; nil = it keeps nothing
	created  func(n int) // hears how many blocks a new engine has on its GPU; nil = nobody
	batch    event.Batch
	adapters adapters
	shown    view.Sync // as last put on the board
	last     int64     // ns: arrival of the latest live batch
	promptly promptest // the smallest delay, see lag
	stamp    float64   // s: of the latest live batch
	lagged   int64     // ns: when its lag was taken
	before   uint64    // requests that had caused events by then, see watch
	said     string    // cause of the last purge that was logged since the stream was live
}

// applyAll takes from the queue, and from the replay that runs, until ctx ends.
// While a replay has a hole to close, live batches wait in the queue: a replayed
// store must not revive a block whose removal came live.
func (s *subscriber) applyAll(ctx context.Context) {
	s.session, s.order.parted = ctx, Now()
	s.show()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	defer s.abort()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.watch(Now())
		case <-s.nudge:
			s.notice()
		case q := <-s.replays.inquiries():
			s.answer(q)
		case o := <-s.replays.ended():
			s.finish(o)
		case <-s.queue.ready:
		}
		s.drain(ctx)
		s.show()
	}
}

// drain takes what is queued, unless it has to wait for a replay.
func (s *subscriber) drain(ctx context.Context) {
	for n := 1; s.held == nil && ctx.Err() == nil; n++ {
		// Before each item: neither a new identity, and the purge it means, nor a
		// replay must wait behind a long queue.
		select {
		case <-s.nudge:
			s.notice()
		case q := <-s.replays.inquiries():
			s.answer(q)
			continue // it may have begun to need the live stream to wait
		case o := <-s.replays.ended():
			s.finish(o)
		default:
		}
		it, ok := s.queue.take()
		if !ok {
			return
		}
		s.handle(&it)
		if n%showEvery == 0 {
			s.show()
		}
	}
}

// notice takes up what identify and setReplay left.
func (s *subscriber) notice() {
	if s.replayAt.Load() != nil {
		s.perform(s.order.replayable(Now()), nil)
	}
	if id := s.seen.Load(); id != nil {
		if s.order.seen.at > 0 && s.order.seen.id != id.id {
			s.abort() // what a replay still brings is the new process's
		}
		s.perform(s.order.identify(*id, Now()), nil)
	}
	s.look(Now())
}

// look takes up what the reader says of the shape of messages.
func (s *subscriber) look(now int64) {
	if why := s.malformed.Load(); why != nil {
		s.order.unreadable(reason.WrongFraming, *why, now)
	}
}

// watch looks for what no event tells: that none come.
func (s *subscriber) watch(now int64) {
	s.look(now)
	if s.order.late > 0 && now-s.lagged > int64(s.order.late) {
		s.order.late = 0 // whatever was on its way as late as that has come
	}
	quiet := now - max(s.last, s.order.upAt)
	if n := s.caused() - s.before; s.order.connected && n >= silentRequests && quiet >= int64(staleAfter) {
		s.order.silent = n
	}
}

// caused counts the requests that must have made the engine publish.
func (s *subscriber) caused() uint64 {
	if s.routed == nil {
		return 0
	}
	return s.routed()
}

func (s *subscriber) handle(it *item) {
	t := Now()
	switch it.kind {
	case itemUp:
		s.abort()
		s.session, s.promptly, s.stamp = it.session, promptest{}, 0
		s.before = s.caused()
		s.observer.up(it.how, t)
		s.perform(s.order.up(t), nil)
	case itemDown:
		s.abort()
		s.order.down(it.apart, it.why, it.at)
		s.observer.down(it.why, t)
	case itemOdd:
		s.observer.message(it)
	case itemBatch:
		s.last, s.before = it.at, s.caused()
		s.order.silent = 0
		if s.order.renumbered(it.seq) {
			s.sink.Emptied(s.member, s.order.upAt)
		}
		missed := s.order.missed
		st := s.order.batch(it.seq, digest(it.payload), t)
		s.observer.gap(s.order.missed-missed, it)
		s.perform(st, it)
	}
	if s.held == nil {
		s.overflowed(it)
	}
}

// overflowed takes up the mark of batches that were dropped right behind it.
func (s *subscriber) overflowed(it *item) {
	if it.dropped > 0 {
		s.observer.overflow(it)
		s.perform(s.order.dropped(it.dropped, it.last, Now()), nil)
	}
}

// perform does what the sequence machine says; live is the batch it was asked
// about, nil when it was none.
func (s *subscriber) perform(st step, live *item) {
	if st.ask || !s.order.replaying {
		s.stop()
	}
	s.purge(st)
	switch st.do {
	case drop:
		s.observer.message(live)
	case apply:
		s.observer.message(live)
		s.lag(s.index(live.payload, live.at), live.at, Now())
		if !s.order.replaying {
			s.stop() // it was to bring back what this batch cleared
		}
	case hold:
		held := *live
		s.held = &held
	}
	switch {
	case !st.ask:
	case s.session.Err() != nil:
		// The queue may hold thousands of batches of a connection that has ended:
		// each would start a replay only for it to be aborted.
		s.resume(replayAborted, "")
	default:
		s.observer.asked(Now())
		s.log.Debug("replay begins", "from", st.from, "until", s.order.until)
		s.replays = s.beginReplay(st.from)
		s.show()
	}
}

// purge drops the member's blocks when the step says so. The same cause again is
// logged only once the stream has been live in between: what one release of an
// engine writes it writes in every batch, and a lossy network loses again.
func (s *subscriber) purge(st step) {
	if st.purge == "" {
		return
	}
	t := Now()
	if restarts[st.purge] {
		s.sink.Restart(s.member)
	} else {
		s.sink.Purge(s.member)
	}
	if s.forget != nil {
		s.forget()
	}
	sure := st.purge == purgeRestart || st.purge == purgeIdentity // after a reconnect it may be the same engine
	if sure {
		s.empty(t)
	}
	s.observer.purged(st.purge, st.why, sure, t)
	s.count.add(func(c *Counters) { inc(&c.Purges, st.purge) })
	if s.said == st.purge {
		return
	}
	s.said = st.purge
	s.log.Info("dropped the cached blocks of an engine", "cause", st.purge, "why", st.why)
}

// empty takes up that the engine's cache is empty since t, 0 = not known.
func (s *subscriber) empty(t int64) {
	s.sink.Emptied(s.member, t)
	if s.emptied != nil {
		s.emptied()
	}
}

// show publishes the state where it differs from the one shown.
func (s *subscriber) show() {
	t := Now()
	next := s.order.state(t)
	next.Since, next.LastEvent, next.LastSeq = s.shown.Since, s.last, s.order.live.seq
	if s.order.applied.ok { // a replay may be ahead of the live stream
		next.LastSeq = max(next.LastSeq, s.order.applied.seq)
	}
	if next.State != s.shown.State {
		next.Since = t
	}
	if next == s.shown {
		return
	}
	if next.State != s.shown.State {
		s.log.Info("event stream", "state", next.String(), "why", next.Why, "detail", next.Detail)
	}
	if next.State == view.Live {
		s.said = ""
	}
	s.observer.state(next, s.shown, t)
	s.shown = next
	s.count.add(func(c *Counters) { // first: who sees the state finds it counted
		c.Missed, c.Lost, c.Duplicates = s.order.missed, s.order.lost, s.order.duplicates
	})
	s.board.Put(s.member, next)
}
