package feed

import (
	"time"

	"github.com/eppctl/eppctl/internal/core/view"
)

// Why a member's blocks were purged. The words label metrics.
const (
	purgeRestart   = "restart"      // numbers went back: a new publisher
	purgeIdentity  = "identity"     // the engine's process is another one
	purgeReconnect = "reconnect"    // a restart could not be told from a network cut
	purgeGap       = "gap"          // lost batches that cannot be had again
	purgeHistory   = "history-gone" // the replay begins behind what is missing
	purgeRetry     = "retry"        // starting over with a full replay
	purgeRemoved   = "removed"      // the pod left the fleet
	purgeUnread    = "unreadable"   // a removal or clear may stand in what could not be read
	purgeInflated  = "inflated"     // more blocks than the engine has: removals were lost unseen
)

// replayCooldown keeps a rank that could not be replayed from being asked again
// at once: the engine answers on the thread that publishes its live events.
const replayCooldown = 30 * time.Second

// action is what to do with the batch, or after the call, that returned it.
type action uint8

const (
	drop   action = iota // nothing
	apply                // apply the batch to the index
	replay               // replay from step.from, then settle
	hole                 // a replayed batch is missing: ask again
)

// step is one answer of the machine. A purge comes before everything else.
type step struct {
	purge string // cause, "" = none
	do    action
	from  uint64 // replay: the first number to ask for
	until uint64 // replay: done before this number; 0 = at the end marker
}

// cursor is a sequence number, or none yet.
type cursor struct {
	seq uint64
	ok  bool
}

// history says what the index holds of the engine's past.
type history uint8

const (
	nothing history = iota // nothing applied yet
	whole                  // every batch since the engine's start
	partial                // an older part is lost
)

// sequence follows one publisher's numbering and says what to do with each
// batch, so that the index never keeps blocks of an engine that is gone or whose
// removals were lost. It is a pure state machine: time is a value (ns), and
// whoever calls it does the purging, applying and replaying. Not for concurrent
// use.
//
// Two cursors: live is the last number seen on the live stream, applied the last
// one applied, live or replayed. A publisher keeps order on a connection, so a
// live number that goes back means a new publisher. A replay may run ahead of
// the live stream; live numbers up to applied are then an overlap.
type sequence struct {
	canReplay bool // a replay endpoint is known

	live, applied cursor
	history       history
	open          bool   // batches up to live are missing and may still be had
	retry         bool   // partial for want of a replay that may work later
	unreadable    string // partial because of this: a replay would bring the same bytes
	notBefore     int64  // cooldown: no replay before
	overflowed    bool   // the running replay mends what our own queue dropped

	replaying bool
	until     uint64 // of the running replay, see step
	retrying  bool   // it starts over, and has had no answer yet
	connected bool
	everUp    bool
	why       string // of the last disconnect or failed replay
	lagging   bool

	seen      identity // the engine's process as last seen; at 0 = never
	fickle    bool     // what it says of its process is of no use
	upAt      int64
	since     int64 // when the index was last empty of this member
	confirmed bool  // the identity was seen since the connection came up

	missed     uint64 // batches that did not come live
	lost       uint64 // of these, not replayed either
	duplicates uint64
}

func (q *sequence) next() uint64 {
	if !q.applied.ok || q.retrying {
		return 0
	}
	return q.applied.seq + 1
}

func (q *sequence) mayReplay(now int64) bool { return q.canReplay && now >= q.notBefore }

// forget empties the cursors. live is kept by callers that purge without a new
// publisher.
func (q *sequence) forget(now int64) {
	q.live, q.applied = cursor{}, cursor{}
	q.history, q.open, q.retry, q.unreadable = nothing, false, false, ""
	q.since = now
}

// up reports a new connection. Without an identity to compare, every connection
// after the first may be to a restarted engine, which sends nothing until its
// first request: old blocks would be false hits until then.
func (q *sequence) up(now int64) (s step) {
	first := !q.everUp
	q.everUp, q.connected, q.upAt, q.why, q.lagging = true, true, now, "", false
	told := q.seen.at > 0 && !q.seen.guessed && !q.fickle
	q.confirmed = first || !told
	if first {
		q.since = now
	} else if !told && (q.live.ok || q.applied.ok) {
		s.purge = purgeReconnect
		q.forget(now)
	}
	// What was replayed before this connection was published before it, and
	// cannot come again: from here a number up to applied is no overlap.
	if q.applied.ok && (!q.live.ok || q.live.seq < q.applied.seq) {
		q.live = q.applied
	}
	if q.history == nothing {
		return q.ask(s, now)
	}
	return s
}

// replayable reports that a replay endpoint has become known.
func (q *sequence) replayable(now int64) (s step) {
	if q.canReplay {
		return s
	}
	q.canReplay = true
	switch {
	case q.history == partial:
		q.retry = q.unreadable == "" // with the next batch
	case q.history == nothing && q.connected:
		return q.ask(s, now)
	}
	return s
}

// down reports the end of the connection.
func (q *sequence) down(why string) { q.connected, q.why = false, why }

// identify reports which process of the engine was seen last.
func (q *sequence) identify(id identity, now int64) (s step) {
	before := q.seen
	q.seen = id
	switch {
	case before.at == 0 || before.guessed != id.guessed || q.fickle:
		return s
	case id.id != before.id:
		q.confirmed = true
		// Start times only grow. Several processes that answer at one port in
		// turn would purge at every scrape.
		q.fickle = id.id < before.id
		if q.since > before.at && q.since >= q.upAt {
			// The index was empty after the old process was last seen, and no
			// connection ended since: what it holds is the new process's.
			return s
		}
		s.purge = purgeIdentity
		q.forget(now)
		if q.connected {
			return q.ask(s, now)
		}
	case q.connected && !q.confirmed && id.at > q.upAt:
		// The same engine after a cut: fetch what was published meanwhile.
		q.confirmed = true
		return q.ask(s, now)
	}
	return s
}

// ask replays all that is missing up to now, if that is possible.
func (q *sequence) ask(s step, now int64) step {
	if !q.mayReplay(now) {
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
	s.do, s.from, s.until = replay, q.next(), until
	return s
}

// batch reports a live batch.
func (q *sequence) batch(seq uint64, now int64) (s step) {
	switch {
	case q.live.ok && seq == q.live.seq:
		q.duplicates++
		return s
	case q.live.ok && seq < q.live.seq:
		s.purge = purgeRestart
		q.forget(now)
	}
	before := q.live
	q.live = cursor{seq, true}
	if q.applied.ok && seq <= q.applied.seq {
		return s
	}
	again := q.history == partial && q.retry && q.mayReplay(now)
	if seq == q.next() && !q.open && (!again || seq == 0) {
		return q.accept(s, seq)
	}
	if seq > q.next() && q.history != nothing {
		from := q.next()
		if before.ok {
			from = max(from, before.seq+1)
		}
		q.missed += seq - from
	}
	if q.mayReplay(now) {
		q.retrying = again
		q.open = q.history != nothing
		return q.fill(s, seq)
	}
	return q.accept(q.abandon(s, seq, now), seq)
}

// accept applies a batch that stands where it should.
func (q *sequence) accept(s step, seq uint64) step {
	q.applied = cursor{seq, true}
	if q.history == nothing || seq == 0 {
		q.history, q.retry, q.unreadable = whole, false, ""
	}
	s.do = apply
	return s
}

// abandon gives up on everything before seq: a lost removal would count blocks
// for ever, so the rest goes too.
func (q *sequence) abandon(s step, seq uint64, now int64) step {
	if q.applied.ok {
		q.lost += seq - q.next()
		live := q.live
		s.purge = purgeGap
		q.forget(now)
		q.live = live
	}
	q.history, q.open, q.retry = partial, false, q.canReplay
	return s
}

// dropped reports n live batches, the last numbered last, that our own queue
// could not hold.
func (q *sequence) dropped(n, last uint64, now int64) (s step) {
	if q.live.ok && last < q.live.seq {
		s.purge = purgeRestart
		q.forget(now)
	}
	q.live = cursor{last, true}
	if q.applied.ok && last <= q.applied.seq {
		return s
	}
	q.missed += n
	if q.mayReplay(now) {
		q.overflowed, q.open = true, q.history != nothing
		return q.ask(s, now)
	}
	s = q.abandon(s, last+1, now)
	q.applied = q.live
	return s
}

// replayed reports a batch of a replay; first marks the first answer to a
// request, which tells where the publisher's memory begins.
func (q *sequence) replayed(seq uint64, first bool, now int64) (s step) {
	if q.retrying {
		// Only now: a replay port that never answers must not cost the blocks
		// learned live.
		q.retrying = false
		live := q.live
		s.purge = purgeRetry
		q.forget(now)
		q.live = live
	}
	next := q.next()
	switch {
	case seq < next:
		return s
	case seq == next, first && !q.applied.ok && seq == 1:
		// llm-d's simulator numbers from 1.
		q.applied = cursor{seq, true}
		s.do = apply
		return s
	case !first:
		s.do = hole
		return s
	}
	if q.applied.ok {
		q.lost += seq - next
	}
	live := q.live
	s.purge, s.do = purgeHistory, apply
	q.forget(now)
	q.live, q.applied, q.history = live, cursor{seq, true}, partial
	q.why = "history is gone from the engine's replay buffer"
	return s
}

// replayEnd is how a replay ended.
type replayEnd uint8

const (
	replayFilled  replayEnd = iota // everything asked for is applied
	replayFailed                   // no progress
	replayAborted                  // the live connection ended, or we are closing
)

func (e replayEnd) String() string { return [...]string{"filled", "failed", "aborted"}[e] }

// ended reports the end of a replay. The live batch that caused it goes to
// settle afterwards.
func (q *sequence) ended(end replayEnd, why string, now int64) (s step) {
	if end == replayFailed || q.overflowed && end == replayFilled {
		q.notBefore = now + int64(replayCooldown)
	}
	kept := q.retrying // nothing was purged for it
	q.replaying, q.retrying, q.overflowed = false, false, false
	switch {
	case end == replayFilled:
		q.open = false
		if q.history == nothing {
			q.history = whole
		}
	case end == replayAborted:
		q.open = q.applied.ok && !kept
	case kept:
		q.why, q.open = why, false
	case q.until == 0 && (q.history != nothing || !q.applied.ok):
		q.why = why // nothing is known to be missing
	default:
		q.why = why
		s = q.abandon(s, max(q.next(), q.until), now)
	}
	return s
}

// settle decides about the live batch that waited for a replay.
func (q *sequence) settle(seq uint64, now int64) (s step) {
	switch {
	case q.open || q.history == nothing || q.applied.ok && seq <= q.applied.seq:
		return s
	case q.applied.ok && seq != q.next():
		s = q.abandon(s, seq, now)
	}
	return q.accept(s, seq)
}

// unread reports that the batch applied last may have taken blocks away without
// our being able to read which: a hole like a lost batch, save that no replay
// fills it.
func (q *sequence) unread(why string, now int64) (s step) {
	live, applied, open := q.live, q.applied, q.open
	s.purge = purgeUnread
	q.forget(now)
	q.live, q.applied, q.open = live, applied, open
	q.history, q.unreadable = partial, why
	return s
}

// inflated reports that more distinct blocks count as held than the engine has:
// removals were lost although no number is missing. It starts over, with a replay
// when there is one, but not again and again: the same may come of it.
func (q *sequence) inflated(now int64) (s step) {
	live, applied, open := q.live, q.applied, q.open
	s.purge = purgeInflated
	q.forget(now)
	q.live, q.applied, q.open = live, applied, open
	q.history, q.retry = partial, q.canReplay
	q.notBefore = now + int64(replayCooldown)
	return s
}

// cleared reports that the engine emptied its cache: whatever was lost before is
// gone there too.
func (q *sequence) cleared() {
	if q.history == partial && !q.open {
		q.history, q.retry, q.unreadable = whole, false, ""
	}
}

// state is what the fleet's view shows.
func (q *sequence) state() (st view.SyncState, why string) {
	switch {
	case !q.connected:
		return view.Connecting, q.why
	case q.open:
		return view.Gap, "batches missing"
	case q.history == nothing && q.replaying:
		return view.CatchingUp, "replaying history"
	case q.history == nothing:
		return view.CatchingUp, "no event yet"
	case q.history == partial && q.unreadable != "":
		return view.Partial, q.unreadable
	case q.history == partial && q.why != "":
		return view.Partial, q.why
	case q.history == partial && !q.canReplay:
		return view.Partial, "history lost, no replay port"
	case q.history == partial:
		return view.Partial, "history lost"
	case !q.confirmed:
		return view.CatchingUp, "engine identity not confirmed since reconnect"
	case q.lagging:
		return view.CatchingUp, "events lag"
	}
	return view.Synced, ""
}
