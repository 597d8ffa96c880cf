package feed

import (
	"fmt"
	"time"

	"github.com/eppctl/eppctl/internal/core/reason"
)

// Why a member's blocks were purged. The words label metrics.
const (
	purgeRestart   = "restart"         // numbers went back: a new publisher
	purgeIdentity  = "identity"        // the engine's process is another one
	purgeReconnect = "reconnect"       // a restart could not be told from a network cut
	purgeGap       = "gap"             // lost batches that cannot be had again
	purgeDropped   = "queue-full"      // the same, and it was our own queue that lost them
	purgeHistory   = "history-gone"    // the replay begins behind what is missing
	purgeRetry     = "retry"           // starting over with a full replay
	purgeRemoved   = "removed"         // the pod left the fleet
	purgeUnread    = "unreadable"      // a removal or clear may stand in what could not be read
	purgeInflated  = "inflated"        // more blocks than the engine has: removals were lost unseen
	purgeMismatch  = "replay-mismatch" // a batch came live otherwise than it was replayed
	purgeUnproven  = "replay-unproven" // the connection ended before a live batch could tell whose replay it was
)

// restarts are the causes that mean a new process, or may.
var restarts = map[string]bool{purgeRestart: true, purgeIdentity: true, purgeReconnect: true}

// replayCooldown keeps a rank that could not be replayed from being asked again
// at once: the engine answers on the thread that publishes its live events.
const replayCooldown = 30 * time.Second

const (
	// downAfter is how long there is no connection until its member counts as
	// down: two of the longest waits between attempts.
	downAfter = 2 * backoffMax
	// staleAfter is how late events may be, how long nothing may be readable, and
	// how long nothing may come although requests that must cause events have
	// ended. vLLM 0.32.0's worst event came 1.05 s after its response had ended.
	staleAfter = 5 * time.Second
)

// action is what to do with the batch, live or replayed, that was reported.
type action uint8

const (
	drop   action = iota // nothing
	apply                // apply it to the index
	hold                 // live: keep it, and take no other, until the replay has ended; then settle
	hole                 // replayed: batches before it are missing, ask again
	reject               // replayed: of no use, nor is what would follow; step.why says why
)

// step is one answer of the machine, in the order in which it is carried out. A
// purge comes first. A replay that the machine has ended by itself (replaying is
// false then) is stopped before anything is applied.
type step struct {
	purge string // cause, "" = none
	why   string // the same in words
	do    action
	ask   bool   // start a replay, in place of one that runs
	from  uint64 // the first number to ask for
}

// cursor is a sequence number, or none yet.
type cursor struct {
	seq uint64
	ok  bool
}

// mark is the digest of a batch, or that it is not known.
type mark struct {
	sum uint32
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
// live number that goes back means a new publisher.
//
// A replay begins with the batch applied last, and each of its rounds does: the
// same bytes there show that the port is the publisher's before anything of it is
// applied. Where nothing is applied yet, the live stream shows it afterwards.
//
// It runs beside the live stream. A live batch that follows on what is
// applied is applied at once, and shows that there is nothing left to replay; one
// that leaves a hole, or follows on what the running replay has brought, is held
// until the replay has brought it too. A replay may run ahead of the live stream;
// live numbers up to applied are then an overlap, which must have the same bytes:
// else the replay port is another publisher's.
type sequence struct {
	canReplay bool   // a replay endpoint is known
	begin     uint64 // the first batch wanted of the first publisher; nothing before is asked for

	live, applied cursor
	past          cursor // the last number before a reconnect that may be to a new process
	sum           mark   // of the batch applied last
	history       history
	open          bool        // batches up to live are missing and may still be had
	retry         bool        // partial for want of a replay that may work later
	unread        reason.Code // partial because of this: a replay would bring the same bytes
	notBefore     int64       // cooldown: no replay before
	overflowed    bool        // the running replay mends what our own queue dropped

	replaying  bool
	until      uint64    // the running replay must reach this number; 0 = none is known to be missing
	holding    bool      // a live batch waits for it, numbered until
	retrying   bool      // it starts over, and has had no answer yet
	outcome    replayEnd // of the last replay
	ahead      ahead     // what it brought ahead of the live stream
	unproven   bool      // no live batch has met what was replayed: it may be another publisher's
	mistrusted bool      // the replay port is another publisher's
	joined     bool      // a live batch of this connection followed on what is applied

	connected bool
	everUp    bool
	parted    int64       // since when there is no connection
	apart     reason.Code // why there is none
	cut       string      // the same in words, kept until a batch is applied
	failed    string      // of the last replay, "" = it did not
	loss      string      // how history was lost
	late      time.Duration
	silent    uint64      // requests that must have caused events, of which there are none
	garbled   reason.Code // the newest message could not be read, None = it could
	garble    string      // the same in words
	garbledAt int64       // since when none could

	seen      identity // the engine's process as last seen; at 0 = never
	seenFirst int64    // ns: when this one was first seen
	foreign   bool     // what is applied may come from an older process than seen
	fickle    bool     // what it says of its process is of no use
	upAt      int64
	since     int64 // when the index was last empty of this member
	confirmed bool  // the identity was seen since the connection came up

	missed     uint64 // batches that did not come live
	lost       uint64 // of these, not replayed either
	duplicates uint64
}

// follows is the number behind the last one applied.
func (q *sequence) follows() uint64 {
	if !q.applied.ok {
		return q.begin
	}
	return q.applied.seq + 1
}

// next is the number a replay should bring next.
func (q *sequence) next() uint64 {
	if q.retrying {
		return q.begin
	}
	return q.follows()
}

func (q *sequence) mayReplay(now int64) bool {
	return q.canReplay && !q.mistrusted && now >= q.notBefore
}

// forget empties the cursors. live is kept by callers that purge without a new
// publisher.
func (q *sequence) forget(now int64) {
	q.live, q.applied, q.sum, q.begin, q.unproven = cursor{}, cursor{}, mark{}, 0, false
	q.history, q.open, q.retry, q.unread, q.loss = nothing, false, false, reason.None, ""
	q.since = now
}

// reset forgets a publisher, and what its replay port was found to be.
func (q *sequence) reset(now int64) {
	q.forget(now)
	q.stop(replayAborted)
	q.ahead, q.mistrusted = ahead{}, false
}

// stop ends the running replay, if there is one.
func (q *sequence) stop(end replayEnd) {
	if q.replaying {
		q.outcome = end
	}
	q.replaying, q.holding, q.retrying, q.overflowed = false, false, false, false
}

// up reports a new connection. Without an identity to compare, every connection
// after the first may be to a restarted engine, which sends nothing until its
// first request: old blocks would be false hits until then.
func (q *sequence) up(now int64) (s step) {
	first := !q.everUp
	q.everUp, q.connected, q.upAt, q.late, q.silent, q.garbled = true, true, now, 0, 0, reason.None
	told := q.seen.at > 0 && !q.seen.guessed && !q.fickle
	q.confirmed = first || !told
	switch {
	case first:
		q.since = now
	case (!told || q.foreign) && (q.live.ok || q.applied.ok):
		s.purge, s.why = purgeReconnect, "the engine does not tell its start time: it may be a new process"
		if told {
			s.why = "the engine's process was first seen after it had published this"
		}
		q.past = cursor{max(q.live.seq, q.applied.seq), true}
		q.reset(now)
	case q.unproven:
		// What comes from here on follows on it, and can tell nothing of it.
		s.purge, s.why = purgeUnproven, "the connection ended before a live batch showed that what was replayed is this engine's"
		q.reset(now)
	}
	q.foreign, q.joined, q.ahead = false, false, ahead{}
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

// down reports the end of the connection, or a failed attempt to make one, which
// came at `at`. A process first seen after the end is not the one that published
// there.
func (q *sequence) down(why reason.Code, detail string, at int64) {
	if q.connected {
		q.connected, q.parted = false, at
		q.foreign = q.foreign || q.seenFirst > at
	}
	q.apart, q.cut = why, detail
}

// unreadable reports a message that could not be read at all, readable one that
// could.
func (q *sequence) unreadable(why reason.Code, detail string, now int64) {
	if q.garbled == reason.None {
		q.garbledAt = now
	}
	q.garbled, q.garble = why, detail
}

func (q *sequence) readable() { q.garbled = reason.None }

// identify reports which process of the engine was seen last.
func (q *sequence) identify(id identity, now int64) (s step) {
	before := q.seen
	q.seen = id
	told := before.at > 0 && before.guessed == id.guessed && !q.fickle
	if !told || id.id != before.id {
		q.seenFirst = id.at
	}
	switch {
	case !told:
		q.foreign = q.foreign || !q.connected
		return s
	case id.id != before.id:
		// A connection known to be the old process's may have some more of its
		// batches for us.
		q.foreign = q.connected && q.confirmed
		q.confirmed = true
		// Start times only grow. Several processes that answer at one port in
		// turn would purge at every scrape.
		q.fickle = id.id < before.id
		if q.connected && q.since > before.at && q.since >= q.upAt {
			// The index was empty after the old process was last seen, and no
			// connection ended since: what it holds is the new process's.
			return s
		}
		s.purge, s.why = purgeIdentity, "the engine's process is another one"
		q.reset(now)
		if q.connected {
			return q.ask(s, now)
		}
	case q.connected && !q.confirmed && id.at > q.upAt:
		q.confirmed = true
		if (q.joined || q.unproven && q.outcome == replayFilled) && !q.open {
			// Its numbers went on, so nothing was published meanwhile; or a replay
			// asked for since the connection came up has brought that already.
			return s
		}
		// The same engine after a cut: fetch what was published meanwhile.
		return q.ask(s, now)
	}
	return s
}

// renumbered reports that a live batch is the first since such a reconnect and has a
// number that the publisher before it used: it is another process. One that goes on
// where that stopped may be the same.
func (q *sequence) renumbered(seq uint64) bool {
	past := q.past
	q.past = cursor{}
	return past.ok && seq <= past.seq
}

// batch reports a live batch and the digest of its payload.
func (q *sequence) batch(seq uint64, sum uint32, now int64) (s step) {
	switch {
	case q.live.ok && seq == q.live.seq:
		q.duplicates++
		return s
	case q.live.ok && seq < q.live.seq:
		s = q.restarted(s, seq, now)
	}
	before, next := q.live, q.follows()
	q.live = cursor{seq, true}
	switch {
	case q.applied.ok && seq < next:
		return q.overlap(s, seq, sum, now)
	case seq == next && !q.open && !(q.replaying && q.unproven):
		return q.follow(s, seq, sum, now)
	case seq > next && q.history != nothing:
		if before.ok {
			next = max(next, before.seq+1)
		}
		q.miss(seq - next)
	}
	if !q.replaying {
		if !q.mayReplay(now) {
			return q.accept(q.abandon(s, purgeGap, seq, now), seq, sum)
		}
		q.retrying = q.mayRetry(now)
		s = q.fill(s, seq)
	}
	q.open, q.until, s.do = q.history != nothing && seq > q.follows(), seq, hold
	q.holding = true
	return s
}

// follow applies a live batch that follows on what is applied. What a replay
// would bring is then applied already, unless it starts over.
func (q *sequence) follow(s step, seq uint64, sum uint32, now int64) step {
	s, q.joined = q.accept(s, seq, sum), true
	switch {
	case q.replaying && !q.retrying:
		q.ended(replayFilled, "", now)
	case !q.replaying && q.mayRetry(now):
		q.retrying = true
		return q.fill(s, 0)
	}
	return s
}

// overlap takes a live batch that a replay has brought before.
func (q *sequence) overlap(s step, seq uint64, sum uint32, now int64) step {
	switch {
	case q.ahead.vouches(seq, sum):
	case seq == 0: // what was replayed is the past of a process that is gone
		s.purge, s.why = purgeRestart, fmt.Sprintf("batch 0 came after batch %d was replayed", q.applied.seq)
		q.reset(now)
		q.live = cursor{seq, true}
		return q.accept(s, seq, sum)
	default:
		return q.mistrust(s, seq, sum, now)
	}
	q.joined, q.unproven = true, false
	if q.replaying {
		q.ended(replayFilled, "", now)
	}
	return s
}

// accept applies a batch that stands where it should.
func (q *sequence) accept(s step, seq uint64, sum uint32) step {
	q.applied, q.sum, q.unproven = cursor{seq, true}, mark{sum, true}, false
	if seq == 0 {
		q.begin = 0
	}
	if q.history == nothing || seq == 0 {
		q.completed()
	}
	q.cut = ""
	s.do = apply
	return s
}

// completed makes the index whole, or as whole as was wanted.
func (q *sequence) completed() {
	q.history, q.retry, q.unread, q.loss = whole, false, reason.None, ""
	if q.begin > 0 {
		q.history, q.loss = partial, fmt.Sprintf("nothing before batch %d was asked for", q.begin)
	}
}

const (
	replayFilled  replayEnd = iota // everything asked for is applied
	replayFailed                   // no progress
	replayAborted                  // the live connection ended, or we are closing
	replayCrowded                  // others took all the places for too long: the engine was not asked
)
