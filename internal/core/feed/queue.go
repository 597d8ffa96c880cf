package feed

import (
	"context"
	"sync"
	"time"

	"github.com/eppctl/eppctl/internal/core/reason"
)

const (
	// Bounds of what waits between the socket and the index, per rank. 20,000
	// batches/s of 2 kB (a busy engine's order of magnitude) fill it in 0.2 s.
	queueBatches = 4096
	queueBytes   = 16 << 20
	// queueGrace is how long a full queue holds up the socket before batches
	// are dropped. Longer and the engine's own queue grows and goes stale.
	queueGrace = time.Second
)

// item is one thing the reader tells the applier: a batch, or that the
// connection came up or went down.
type item struct {
	kind    itemKind
	seq     uint64
	payload []byte
	at      int64    // ns: when it arrived, or the connection ended
	frames  [][]byte // the whole message, when it is observed or odd
	how     string   // up: the protocol and its version

	session context.Context // up: ends with the connection
	why     string          // down
	apart   reason.Code     // down: the same as a word

	// Batches dropped right behind this item: how many, and the last number
	// among them. The mark costs no room, so that a full queue can hold it.
	dropped uint64
	last    uint64
}

type itemKind uint8

const (
	itemBatch itemKind = iota
	itemUp
	itemDown
	itemOdd // a message of another shape, for the observer
)

// size is what the item counts for in the queue.
func (it *item) size() int {
	if it.frames == nil {
		return len(it.payload)
	}
	return sizeOf(it.frames)
}

// queue is the bounded queue between the goroutine that reads the socket and the
// one that applies to the index. One goroutine puts, one takes.
type queue struct {
	grace time.Duration

	mu       sync.Mutex
	items    []item
	bytes    int
	dropping bool

	ready chan struct{} // capacity 1: something may be taken
	room  chan struct{} // capacity 1: something was taken
}

func newQueue() *queue {
	return &queue{grace: queueGrace, ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// put appends an item, and reports whether it did: a batch waits a grace time
// for room, then is dropped with a mark, and so are those behind it until half
// of the queue is free again, which makes one hole of many.
func (q *queue) put(ctx context.Context, it item) bool {
	var timeout <-chan time.Time
	for {
		q.mu.Lock()
		if q.dropping && len(q.items) <= queueBatches/2 && q.bytes <= queueBytes/2 {
			q.dropping = false
		}
		full := len(q.items) >= queueBatches || q.bytes+it.size() > queueBytes && len(q.items) > 0
		if it.kind == itemOdd && (full || q.dropping) { // no number, so no hole
			q.mu.Unlock()
			return false
		}
		if it.kind == itemUp || it.kind == itemDown || !full && !q.dropping {
			q.items = append(q.items, it)
			q.bytes += it.size()
			q.mu.Unlock()
			signal(q.ready)
			return true
		}
		if q.dropping {
			// Not empty: a queue that has been emptied is no longer dropping.
			tail := &q.items[len(q.items)-1]
			tail.dropped++
			tail.last = it.seq
			q.mu.Unlock()
			return false
		}
		q.mu.Unlock()
		if timeout == nil {
			t := time.NewTimer(q.grace)
			defer t.Stop()
			timeout = t.C
		}
		select {
		case <-q.room:
		case <-ctx.Done():
			return false
		case <-timeout:
			q.mu.Lock()
			q.dropping = true
			q.mu.Unlock()
		}
	}
}

// take removes the oldest item.
func (q *queue) take() (item, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return item{}, false
	}
	it := q.items[0]
	q.items[0] = item{}
	q.items = q.items[1:]
	q.bytes -= it.size()
	signal(q.room)
	return it, true
}

// signal wakes the one goroutine that waits on c; c has capacity 1.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
