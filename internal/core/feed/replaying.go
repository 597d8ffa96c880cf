package feed

import "context"

// replaying is a replay that runs beside the applier. Its goroutine asks the
// engine and puts each batch before the applier, which alone owns the sequence and
// the index, as an inquiry; so nothing of it is applied behind the applier's back.
type replaying struct {
	ctx     context.Context // of the live connection
	cancel  context.CancelFunc
	asks    chan inquiry
	answers chan verdict      // capacity 1: who asked may be gone
	done    chan replayResult // capacity 1
	shown   int               // batches since the board was brought up to date
}

// inquiry is what the goroutine of a replay asks the applier: about a batch, or,
// where that has no frames, about the end of a round.
type inquiry struct {
	batch replayed
	first bool
	end   ending
	moved bool
}

// replayResult is how a replay ended.
type replayResult struct {
	end    replayEnd
	rounds uint64
	err    error
}

func (s *subscriber) beginReplay(from uint64) *replaying {
	ctx, cancel := context.WithCancel(s.session)
	r := &replaying{ctx, cancel, make(chan inquiry), make(chan verdict, 1), make(chan replayResult, 1), 0}
	endpoint := *s.replayAt.Load()
	go func() {
		var o replayResult
		o.end, o.rounds, o.err = s.replay.run(ctx, endpoint, from, r)
		r.done <- o
	}()
	return r
}

// halt ends it and waits for that, which takes no more than closing a socket.
func (r *replaying) halt() replayResult {
	r.cancel()
	return <-r.done
}

// The channels of a replay, nil while none runs.
func (r *replaying) inquiries() <-chan inquiry {
	if r == nil {
		return nil
	}
	return r.asks
}

func (r *replaying) ended() <-chan replayResult {
	if r == nil {
		return nil
	}
	return r.done
}

// put asks the applier; ok is false when the replay is being ended.
func (r *replaying) put(q inquiry) (v verdict, ok bool) {
	select {
	case r.asks <- q:
	case <-r.ctx.Done():
		return v, false
	}
	select {
	case v = <-r.answers:
		return v, true
	case <-r.ctx.Done():
		return v, false
	}
}

// take implements taker.
func (r *replaying) take(a replayed, first bool) verdict {
	v, ok := r.put(inquiry{batch: a, first: first})
	if !ok {
		return verdict{do: enough} // run looks at its context
	}
	return v
}

// over implements taker.
func (r *replaying) over(e ending, moved bool) (next uint64, all bool) {
	v, _ := r.put(inquiry{end: e, moved: moved})
	return v.next, v.do == enough
}

// stop ends a replay that the machine has done with.
func (s *subscriber) stop() {
	if s.replays != nil {
		s.account(s.order.outcome, "", s.replays.halt().rounds)
	}
}

// answer tells the running replay what its batch or round comes to.
func (s *subscriber) answer(q inquiry) {
	r := s.replays
	if q.batch.frames == nil {
		all := s.order.filled(q.end, q.moved)
		r.answers <- verdict{next: s.order.from(), do: map[bool]replayDo{true: enough}[all]}
		return
	}
	st := s.order.replayed(q.batch.seq, digest(q.batch.payload), q.first, Now())
	s.purge(st)
	v := verdict{do: known, why: st.why}
	switch st.do {
	case apply:
		v.do = goOn
		s.observer.answer(q.batch.seq, q.batch.frames, Now())
		s.index(q.batch.payload, 0)
		if s.order.reached() {
			v.do = enough
		}
	case hole:
		v.do = again
	case reject:
		v.do = refused
	}
	if r.shown++; r.shown%showEvery == 0 {
		s.show()
	}
	v.next = s.order.next()
	r.answers <- v
}

// abort ends the running replay, if there is one.
func (s *subscriber) abort() {
	if s.replays != nil {
		o := s.replays.halt()
		s.finish(replayResult{replayAborted, o.rounds, o.err})
	}
}

// finish takes up the end of a replay.
func (s *subscriber) finish(o replayResult) {
	why := ""
	if o.err != nil {
		why = printable(o.err.Error(), 200)
	}
	s.account(o.end, why, o.rounds)
	s.resume(o.end, why)
}

// resume goes on with the live stream behind a replay, first with the batch that
// was held for it.
func (s *subscriber) resume(end replayEnd, why string) {
	t := Now()
	s.purge(s.order.ended(end, why, t))
	if it := s.held; it != nil {
		s.held = nil
		s.perform(s.order.settle(it.seq, digest(it.payload), t), it)
		s.overflowed(it)
	}
}

// account closes the books of a replay.
func (s *subscriber) account(end replayEnd, why string, rounds uint64) {
	if s.replays != nil {
		s.replays.cancel()
		s.replays = nil
	}
	s.count.add(func(c *Counters) {
		inc(&c.Replays, end.String())
		c.ReplayRounds += rounds
	})
	s.observer.answered(end, why, Now())
	s.log.Debug("replay", "end", end.String(), "rounds", rounds, "next", s.order.next(), "err", why)
}
