package view

import (
	"sync/atomic"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// SyncState says how complete the index is about one member.
type SyncState uint8

// The states of a member's event stream (zero value: none is configured).
const (
	NoEvents   SyncState = iota // no event source is configured
	Connecting                  // no connection yet, or lost
	CatchingUp                  // connected, history being replayed
	Synced                      // every event since the engine's start is applied
	Gap                         // events are missing, replay runs or waits
	Partial                     // history is lost for good; live events apply
)

var syncNames = [...]string{"no-events", "connecting", "catching-up", "synced", "gap", "partial"}

func (s SyncState) String() string { return syncNames[s] }

// Sync is what the feed knows of one member's event stream. It is immutable.
type Sync struct {
	State     SyncState
	Why       string // reason of the state: "eof", "handshake: …", "no replay port"
	Since     int64  // ns: when State was entered
	LastEvent int64  // ns: when the last batch arrived, 0 = never
	LastSeq   uint64
	Lost      uint64 // batches lost in all, replayed ones not counted
	Connected bool
}

// SyncBoard keeps the latest Sync per member. The member's subscriber is its
// only writer; any goroutine may read.
type SyncBoard struct {
	rows [pod.MaxMembers]atomic.Pointer[Sync]
}

// Get returns the member's state; the zero Sync when none was put.
func (b *SyncBoard) Get(m pod.Member) Sync {
	if s := b.rows[m].Load(); s != nil {
		return *s
	}
	return Sync{}
}

// Put publishes a state.
func (b *SyncBoard) Put(m pod.Member, s Sync) { b.rows[m].Store(&s) }

// Drop forgets a member that left the fleet.
func (b *SyncBoard) Drop(m pod.Member) { b.rows[m].Store(nil) }
