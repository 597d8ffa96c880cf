package feed

import (
	"fmt"
	"math"

	"github.com/eppctl/eppctl/internal/core/reason"
)

// mistrust drops what was replayed when the live stream shows that it was another
// publisher's, and asks that port no more.
func (q *sequence) mistrust(s step, seq uint64, sum uint32, now int64) step {
	s.purge = purgeMismatch
	s.why = fmt.Sprintf("the replay port had another batch %d than the event stream: it is another engine's, or a process's that is gone", seq)
	live := q.live
	q.stop(replayFailed)
	q.forget(now)
	q.live, q.history, q.mistrusted, q.ahead = live, partial, true, ahead{}
	q.loss, q.failed = s.why, s.why
	return q.accept(s, seq, sum)
}

// restarted drops what the publisher before this one announced.
func (q *sequence) restarted(s step, seq uint64, now int64) step {
	s.purge, s.why = purgeRestart, fmt.Sprintf("batch %d came after batch %d", seq, q.live.seq)
	q.reset(now)
	return s
}

// abandon gives up on everything before seq: a lost removal would count blocks
// for ever, so the rest goes too.
func (q *sequence) abandon(s step, cause string, seq uint64, now int64) step {
	loss := fmt.Sprintf("nothing before batch %d is known", seq)
	if q.applied.ok {
		live := q.live
		// Not known to be a number, when a replay ended in the middle.
		loss = fmt.Sprintf("what came behind batch %d is not known", q.applied.seq)
		if seq > q.next() {
			q.lost += seq - q.next()
			loss = "lost " + span(q.next(), seq-1)
		}
		s.purge = cause
		q.forget(now)
		q.live = live
	}
	q.loss = loss + q.circumstances(cause, now)
	if s.purge == cause {
		s.why = q.loss
	}
	q.history, q.open, q.retry = partial, false, q.canReplay
	return s
}

// span names batches in words.
func span(first, last uint64) string {
	if first == last {
		return fmt.Sprintf("batch %d", first)
	}
	return fmt.Sprintf("batches %d to %d", first, last)
}

// circumstances says what may have lost batches, and why no replay has them.
func (q *sequence) circumstances(cause string, now int64) (text string) {
	switch {
	case cause == purgeDropped:
		text = " by our own queue, which was full"
	case q.cut != "":
		text = " when the connection ended (" + q.cut + ")"
	case q.garbled != reason.None:
		text = " beside a message that could not be read (" + q.garble + ")"
	}
	switch {
	case !q.canReplay:
		return text + "; no replay port"
	case q.failed != "":
		return text + "; " + q.failed
	case now < q.notBefore:
		return text + "; the replay port is left alone for a while"
	}
	return text
}

// miss counts batches that did not come live. Their numbers are the peer's to
// choose: the count stops at the largest one rather than go back.
func (q *sequence) miss(n uint64) { q.missed += min(n, math.MaxUint64-q.missed) }

// dropped reports n live batches, the last numbered last, that our own queue
// could not hold.
func (q *sequence) dropped(n, last uint64, now int64) (s step) {
	if q.live.ok && last < q.live.seq {
		s = q.restarted(s, last, now)
	}
	q.live = cursor{last, true}
	if q.applied.ok && last <= q.applied.seq {
		return s
	}
	q.miss(n)
	switch {
	case q.replaying:
		q.overflowed, q.open, q.until = true, q.history != nothing, last+1
		return s
	case q.mayReplay(now):
		q.overflowed, q.open = true, q.history != nothing
		return q.ask(s, now)
	}
	s = q.abandon(s, purgeDropped, last+1, now)
	q.applied = q.live // and no digest of it
	return s
}

// holed reports that the batch applied last may have taken blocks away without
// our being able to read which: a hole like a lost batch, save that no replay
// fills it.
func (q *sequence) holed(why reason.Code, detail string, now int64) (s step) {
	s.purge, s.why = purgeUnread, detail
	q.empty(now)
	q.history, q.unread, q.loss = partial, why, detail
	return s
}

// inflated reports that more distinct blocks count as held than the engine has:
// removals were lost although no number is missing. It starts over, with a replay
// when there is one, but not again and again: the same may come of it.
func (q *sequence) inflated(now int64) (s step) {
	s.purge, s.why = purgeInflated, "more blocks were announced than the engine has: removals were lost unseen"
	q.empty(now)
	q.history, q.retry, q.loss = partial, q.canReplay, s.why
	q.notBefore = now + int64(replayCooldown)
	return s
}

// empty drops what is held and keeps the place in the stream.
func (q *sequence) empty(now int64) {
	live, applied, sum, open, unproven := q.live, q.applied, q.sum, q.open, q.unproven
	q.forget(now)
	q.live, q.applied, q.sum, q.open, q.unproven = live, applied, sum, open, unproven
}

// cleared reports that the engine emptied its cache: whatever was lost before is
// gone there too.
func (q *sequence) cleared() {
	if q.history == partial && !q.open {
		q.begin = 0
		q.completed()
		if q.retrying {
			q.stop(replayAborted) // there is nothing to bring back
		}
	}
}
