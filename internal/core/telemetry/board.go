package telemetry

import (
	"sync/atomic"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// State says how far a pod's numbers can be trusted.
type State uint8

// The states of a pod's telemetry.
const (
	Unknown State = iota
	Stale
	Fresh
)

func (s State) String() string {
	switch s {
	case Fresh:
		return "fresh"
	case Stale:
		return "stale"
	}
	return "unknown"
}

// Entry is what the board holds about one pod.
type Entry struct {
	Brief  Brief   // of Sample
	Sample *Sample // last good one, nil = none yet
	Err    string  // text of the last failure since then, "" = none
	ErrAt  int64   // ns
	// Mute says that the last failure was that nothing answered at all: refused,
	// reset or timed out, as of a process that died or hangs. A pod that answers
	// without giving its numbers is not mute.
	Mute bool
}

// Board keeps the latest Entry per pod. Any goroutine may read and write; a
// pod's own scraper is its only writer, and before there is one its keeper.
type Board struct {
	rows [pod.MaxMembers]atomic.Pointer[Entry]
}

// Get returns the pod's entry; the zero Entry when there is none.
func (b *Board) Get(id pod.ID) Entry { return *b.At(id) }

// At is Get without a copy; what it points to does not change.
func (b *Board) At(id pod.ID) *Entry {
	if e := b.rows[id].Load(); e != nil {
		return e
	}
	return &noEntry
}

var noEntry Entry

// Put publishes a good scrape.
func (b *Board) Put(id pod.ID, s *Sample) { b.rows[id].Store(&Entry{Sample: s, Brief: BriefOf(s)}) }

// Fail records a failed scrape; the last good values stay and age.
func (b *Board) Fail(id pod.ID, why string, at int64) { b.fail(id, Entry{Err: why, ErrAt: at}) }

// FailMute is Fail for a scrape that nothing answered.
func (b *Board) FailMute(id pod.ID, why string, at int64) {
	b.fail(id, Entry{Err: why, ErrAt: at, Mute: true})
}

func (b *Board) fail(id pod.ID, e Entry) {
	if old := b.rows[id].Load(); old != nil {
		e.Sample, e.Brief = old.Sample, old.Brief
	}
	b.rows[id].Store(&e)
}

// Drop forgets a pod that left the fleet.
func (b *Board) Drop(id pod.ID) { b.rows[id].Store(nil) }

// Limits are the ages at which values stop being fresh and known.
type Limits struct {
	FreshNs int64 // default max(2 s, 3 scrape intervals)
	KnownNs int64 // default 5 s
}

// skew is how far a sample may lie ahead of a reader that took its time first.
const skew = int64(time.Second)

// State classifies an entry at now (ns). A sample from further ahead than a
// reader can be late says nothing: else it would stay fresh until now gets there.
func (e Entry) State(now int64, l Limits) State {
	if e.Sample == nil {
		return Unknown
	}
	return e.Brief.State(now, l)
}

// State is that of an entry with a sample.
func (b *Brief) State(now int64, l Limits) State {
	switch age := now - b.At; {
	case age < -skew:
		return Unknown
	case age <= l.FreshNs:
		return Fresh
	case age <= l.KnownNs:
		return Stale
	}
	return Unknown
}
