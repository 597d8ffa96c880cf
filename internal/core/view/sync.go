package view

import (
	"fmt"
	"sync/atomic"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
)

// SyncState says how far the index can be believed about one member. There are
// seven states of an event stream, and one word for having none.
type SyncState uint8

// The states. What a member holds counts in full only while it is Live.
const (
	NoEvents   SyncState = iota // there is no stream: no event source is configured or told
	Connecting                  // not connected, and for less than the feed's downAfter
	Syncing                     // connected; history is being fetched, or whose it is is not certain yet
	Live                        // every event since the engine's start is applied
	Gap                         // batches are missing and may still be had
	Partial                     // an older part is lost; what came since is applied
	Stale                       // connected, but the events come late, cannot be read, or do not come
	Down                        // connection attempts have failed for longer than downAfter
)

var syncNames = [...]string{"no-events", "connecting", "syncing", "live", "gap", "partial", "stale", "down"}

func (s SyncState) String() string { return syncNames[s] }

// SyncStates are the states of a stream, in the order of their values.
var SyncStates = [...]SyncState{Connecting, Syncing, Live, Gap, Partial, Stale, Down}

// Sync is what the feed knows of one member's event stream. It is immutable.
type Sync struct {
	State     SyncState
	Connected bool
	Why       reason.Code // of the state; none while live
	LastEvent int64       // ns: when the last batch arrived, 0 = never
	Since     int64       // ns: when State was entered
	Missing   uint64      // Gap: batches to be had
	Detail    string      // Why in words: the last error, what was lost. No content of events
	LastSeq   uint64
	Lost      uint64 // batches lost in all, replayed ones not counted
}

// String is the state as people read it: "live", "gap(4)".
func (s Sync) String() string { return SyncLabel(s.State.String(), s.Missing) }

// SyncLabel is Sync.String for who has the parts from JSON.
func SyncLabel(state string, missing uint64) string {
	if state == syncNames[Gap] && missing > 0 {
		return fmt.Sprintf("%s(%d)", state, missing)
	}
	return state
}

// SyncBoard keeps the latest Sync per member. The member's subscriber is its
// only writer; any goroutine may read.
type SyncBoard struct {
	rows [pod.MaxMembers]atomic.Pointer[Sync]
}

// Get returns the member's state; the zero Sync when none was put.
func (b *SyncBoard) Get(m pod.Member) Sync { return *b.At(m) }

// At is Get without a copy; what it points to does not change.
func (b *SyncBoard) At(m pod.Member) *Sync {
	if s := b.rows[m].Load(); s != nil {
		return s
	}
	return &noSync
}

var noSync Sync

// Put publishes a state.
func (b *SyncBoard) Put(m pod.Member, s Sync) { b.rows[m].Store(&s) }

// Drop forgets a member that left the fleet.
func (b *SyncBoard) Drop(m pod.Member) { b.rows[m].Store(nil) }
