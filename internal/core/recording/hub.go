package recording

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Hub hands the records of a running feed to whoever looks on. It never holds up
// who publishes: a reader that does not keep up loses messages, and is told how
// many and where. All methods may be called from any goroutine, but the records
// of one pod are published by one at a time.
type Hub struct {
	readers atomic.Int32

	mu     sync.Mutex
	queues []*Queue
	stands Standing
}

// NewHub returns a hub without streams or readers.
func NewHub() *Hub { return &Hub{} }

// Watched reports whether anybody looks on, so that nothing need be kept for a
// record that nobody reads.
func (h *Hub) Watched() bool { return h.readers.Load() > 0 }

// Open announces a stream, at a time in ns. Every reader learns of it, those to
// come as well.
func (h *Hub) Open(p *Pod, at int64) {
	h.Publish(&Record{Type: TypePod, At: at, Pod: p})
}

// Close withdraws a stream, or a pod.
func (h *Hub) Close(p *Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stands.Forget(p)
}

// Publish hands a record, which must not change any more, to every reader.
func (h *Hub) Publish(r *Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stands.Take(r)
	for _, q := range h.queues {
		q.put(r)
	}
}

// Subscribe returns a queue that begins with the pods and streams there are and
// what stands of each. keep says which pods it is for; nil means all. The caller
// closes it.
func (h *Hub) Subscribe(lim Limits, keep func(*Pod) bool) *Queue {
	q := newQueue(lim, keep)
	q.leave = func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if i := slices.Index(h.queues, q); i >= 0 {
			h.queues = slices.Delete(h.queues, i, i+1)
			h.readers.Add(-1)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.stands.Records() {
		q.put(r)
	}
	h.queues = append(h.queues, q)
	h.readers.Add(1)
	return q
}
