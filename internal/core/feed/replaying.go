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
