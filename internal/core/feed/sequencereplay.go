package feed

import (
	"fmt"

	"github.com/eppctl/eppctl/internal/core/reason"
)

// replayable reports that a replay endpoint has become known.
func (q *sequence) replayable(now int64) (s step) {
	if q.canReplay {
		return s
	}
	q.canReplay = true
	switch {
	case q.history == partial:
		q.retry = q.unread == reason.None // with the next batch
	case q.history == nothing && q.connected:
		return q.ask(s, now)
	}
	return s
}

// ask replays all that is missing up to now, if that is possible.
func (q *sequence) ask(s step, now int64) step {
	if q.replaying || !q.mayReplay(now) {
		return s
	}
	if q.live.ok && q.live.seq >= q.next() {
		return q.fill(s, q.live.seq+1)
	}
	return q.fill(s, 0)
}

// fill replays from the next number on.
func (q *sequence) fill(s step, until uint64) step {
	q.replaying, q.until = true, until
	s.ask, s.from = true, q.from()
	return s
}

// from is the number a replay is asked for: that of the batch applied last, by
// which the port proves itself.
func (q *sequence) from() uint64 {
	if q.sum.ok && !q.retrying {
		return q.applied.seq
	}
	return q.next()
}

// mayRetry reports that a replay from the start may bring back what was lost.
func (q *sequence) mayRetry(now int64) bool {
	return q.history == partial && q.retry && q.mayReplay(now)
}

// replayed reports a batch of a replay and the digest of its payload; first marks
// the first answer to a request, which tells where the publisher's memory begins.
func (q *sequence) replayed(seq uint64, sum uint32, first bool, now int64) (s step) {
	if first && seq > q.next() && (q.until > 0 || q.retrying) && seq > q.live.seq {
		// All that is wanted is gone, and the live stream goes on before this.
		s.do, s.why = reject, fmt.Sprintf("the replay begins with batch %d, behind batch %d of the event stream", seq, q.live.seq)
		return s
	}
	if q.retrying {
		// Only now: a replay port that never answers must not cost the blocks
		// learned live.
		q.retrying = false
		live := q.live
		s.purge, s.why = purgeRetry, "a full replay has begun"
		q.forget(now)
		q.live = live
		if q.until == 0 {
			q.until = live.seq + 1 // all that was applied of the live stream
		}
	}
	next := q.next()
	switch {
	case first && q.sum.ok && seq == q.applied.seq && sum != q.sum.sum:
		if q.unproven { // either may be the other publisher's: it starts over
			q.retrying, s.do = true, hole
			return s
		}
		q.mistrusted = true
		s.do, s.why = reject, fmt.Sprintf("the replay port had another batch %d than was applied: it is another engine's, or a process's that is gone", seq)
		return s
	case seq < next:
		return s
	case seq == next, first && !q.applied.ok && seq == 1:
		// llm-d's simulator numbers from 1.
		return q.bring(s, seq, sum)
	case !first:
		s.do = hole
		return s
	}
	if q.applied.ok {
		q.lost += seq - next
	}
	live := q.live
	q.forget(now)
	q.live, q.history = live, partial
	q.loss = span(next, seq-1) + " gone from the engine's replay buffer"
	s.purge, s.why = purgeHistory, q.loss
	return q.bring(s, seq, sum)
}

// bring applies a replayed batch.
func (q *sequence) bring(s step, seq uint64, sum uint32) step {
	q.applied, q.sum, q.unproven = cursor{seq, true}, mark{sum, true}, true
	if !q.live.ok || seq >= q.live.seq {
		q.ahead.add(seq, sum)
	}
	s.do = apply
	return s
}

// reached reports that the running replay has brought what was wanted and one
// batch more: the live batch that waits for it, which then proves that both are of
// one publisher.
func (q *sequence) reached() bool { return q.holding && q.next() > q.until }

// filled reports whether the running replay is complete, when one of its rounds
// has ended. moved says that a round before brought something.
func (q *sequence) filled(end ending, moved bool) bool {
	switch {
	case q.retrying:
		return false // not one answer yet
	case q.until > 0:
		return q.next() >= q.until
	}
	// Silence: the marker was lost, and there is nothing behind what we have.
	return end == roundEnd || end == roundSilent && moved
}

// replayEnd is how a replay ended.
type replayEnd uint8

func (e replayEnd) String() string { return [...]string{"filled", "failed", "aborted", "crowded"}[e] }

// ended reports the end of a replay. The live batch that was held for it goes to
// settle afterwards.
func (q *sequence) ended(end replayEnd, why string, now int64) (s step) {
	if end == replayFailed || q.overflowed && end == replayFilled {
		q.notBefore = now + int64(replayCooldown)
	}
	kept := q.retrying // nothing was purged for it
	q.stop(end)
	if end != replayAborted {
		q.failed = why
	}
	switch {
	case end == replayFilled:
		q.open = false
		if q.history == nothing {
			q.completed()
		}
	case end == replayAborted:
		q.open = (q.applied.ok || q.history != nothing) && q.live.ok && q.live.seq >= q.follows()
	case q.until == 0 && (kept || q.history != nothing || !q.applied.ok):
		// nothing is known to be missing
	default:
		s = q.abandon(s, purgeGap, max(q.next(), q.until), now)
	}
	return s
}

// settle decides about the live batch that was held for a replay.
func (q *sequence) settle(seq uint64, sum uint32, now int64) (s step) {
	switch {
	case q.open || q.history == nothing:
		return s
	case q.applied.ok && seq <= q.applied.seq:
		return q.overlap(s, seq, sum, now)
	case q.applied.ok && seq != q.next():
		s = q.abandon(s, purgeGap, seq, now)
	}
	q.joined = true
	return q.accept(s, seq, sum)
}
