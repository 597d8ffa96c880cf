package feed

import (
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// Counters is what the feed has counted about one member's event stream since
// the pod was added. Maps are nil until something was counted.
type Counters struct {
	Pod    string
	Rank   int
	Member pod.Member

	Peer        string            // ZMTP version of the publisher, "" = never connected
	Connections uint64            // handshakes completed
	Faults      map[string]uint64 // connections that failed or ended, by Fault
	Commands    uint64            // ZMTP commands received (PING, PONG, unknown)

	Batches      uint64            // messages of the right shape
	Bytes        uint64            // of all frames
	WrongShape   map[string]uint64 // messages of another shape, by what was wrong
	QueueDrops   uint64            // batches dropped because the index was behind
	Undecodable  uint64            // batches that were no batch at all
	Stored       uint64            // events applied
	Removed      uint64
	Cleared      uint64
	Skips        map[string]uint64 // events that could not be read, by reason
	Unknown      map[string]uint64 // what the decoder does not know, by name; at most maxUnknown of them
	RankMismatch uint64            // batches that name another rank than their socket's

	Missed     uint64            // batches that did not come live
	Lost       uint64            // of these, not replayed either
	Duplicates uint64            // batches that came twice
	Purges     map[string]uint64 // times the member's blocks were dropped, by cause

	Replays      map[string]uint64 // by outcome: filled, failed, aborted
	ReplayRounds uint64            // requests sent
	Lag          time.Duration     // by how much the last batch was later than the promptest one
}

// counts guards a Counters. The reader and the applier of one subscriber write
// it, anyone takes snapshots.
type counts struct {
	mu sync.Mutex
	c  Counters
}

// add runs f under the lock.
func (n *counts) add(f func(c *Counters)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f(&n.c)
}

func (n *counts) snapshot() Counters {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.c
	for _, m := range []*map[string]uint64{&c.Faults, &c.WrongShape, &c.Skips, &c.Unknown, &c.Purges, &c.Replays} {
		*m = maps.Clone(*m)
	}
	return c
}

// batch counts what a batch told: the events of it that were applied, and what else
// it held.
func (c *Counters) batch(b *event.Batch, applied []event.Event) {
	for i := range applied {
		switch applied[i].Kind {
		case event.Stored:
			c.Stored++
		case event.Removed:
			c.Removed++
		case event.Cleared:
			c.Cleared++
		}
	}
	for _, sk := range b.Skipped {
		inc(&c.Skips, sk.Reason)
	}
	for _, u := range b.Unknown {
		c.unknown(u)
	}
	if b.Rank >= 0 && b.Rank != c.Rank {
		c.RankMismatch++
	}
}

// maxUnknown bounds the names of one member: they come from the wire and label
// metrics.
const maxUnknown = 32

// unknown counts what a decoder passed over.
func (c *Counters) unknown(u event.Unknown) {
	name := printable(strings.ToValidUTF8(u.Name, "?"), 64)
	if _, known := c.Unknown[name]; !known && len(c.Unknown) >= maxUnknown-1 {
		name = event.OtherUnknown
	}
	if c.Unknown == nil {
		c.Unknown = map[string]uint64{}
	}
	c.Unknown[name] += uint64(u.Count)
}

// inc counts one under a word.
func inc(m *map[string]uint64, word string) {
	if *m == nil {
		*m = map[string]uint64{}
	}
	(*m)[word]++
}

func version(major, minor byte) string {
	return strconv.Itoa(int(major)) + "." + strconv.Itoa(int(minor))
}
