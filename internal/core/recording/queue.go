package recording

import (
	"slices"
	"sync"
)

// Limits bound what waits for one reader. The zero value means the defaults.
type Limits struct {
	Records int // default 16,384: under a second of a fleet of 64 busy engines
	Bytes   int // default 32 MiB: two of the largest messages there can be
}

func (l Limits) withDefaults() Limits {
	if l.Records <= 0 {
		l.Records = 16 << 10
	}
	if l.Bytes <= 0 {
		l.Bytes = 32 << 20
	}
	return l
}

// Queue is one reader's place at a Hub. One goroutine takes from it.
//
// When it is full the older half gives way: its messages are dropped, and a
// Dropped notice with their number stands in their place. Notices stay, up to a
// quarter of the records.
//
// Metrics pages, of which a fleet of 64 pods brings 25 MB per second, must not
// crowd out the messages: they have a quarter of the bytes, in which the oldest
// give way to the newest. Nobody is told: what a page said, the next one says.
type Queue struct {
	lim   Limits
	keep  func(*Pod) bool
	leave func()
	ready chan struct{} // capacity 1

	mu      sync.Mutex
	records []*Record
	bytes   int
	pages   int // of these bytes, in pages
}

func newQueue(lim Limits, keep func(*Pod) bool) *Queue {
	return &Queue{lim: lim.withDefaults(), keep: keep, ready: make(chan struct{}, 1)}
}

// Ready delivers when there may be something to take.
func (q *Queue) Ready() <-chan struct{} { return q.ready }

// Take returns what has come since the last call, oldest first; nil = nothing.
func (q *Queue) Take() []*Record {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := q.records
	q.records, q.bytes, q.pages = nil, 0, 0
	return out
}

// Close takes the reader off its hub. It may be called twice.
func (q *Queue) Close() { q.leave() }

func (q *Queue) put(r *Record) {
	if r.Pod != nil && q.keep != nil && !q.keep(r.Pod) {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	size := r.Size()
	if r.Type == TypePage {
		q.makeRoom(size)
	}
	if len(q.records) >= q.lim.Records || q.bytes+size > q.lim.Bytes && len(q.records) > 0 {
		q.shed(r.At)
	}
	q.records = append(q.records, r)
	q.count(r, size)
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

func (q *Queue) count(r *Record, size int) {
	q.bytes += size
	if r.Type == TypePage {
		q.pages += size
	}
}

// pageShare is the part of the bytes that pages may take, one in so many.
const pageShare = 4

// makeRoom drops the oldest pages until one of this size has room. mu is held.
func (q *Queue) makeRoom(size int) {
	if q.pages == 0 || q.pages+size <= q.lim.Bytes/pageShare {
		return
	}
	q.records = slices.DeleteFunc(q.records, func(r *Record) bool {
		if r.Type != TypePage || q.pages+size <= q.lim.Bytes/pageShare {
			return false
		}
		q.count(r, -r.Size())
		return true
	})
}

// shed drops the messages of the older half, by number or by bytes, whichever is
// over its limit. mu is held.
func (q *Queue) shed(now int64) {
	var kept []*Record
	var dropped uint64
	from := 0
	for bytes := q.bytes; from < len(q.records) && (len(q.records)-from > q.lim.Records/2 || bytes > q.lim.Bytes/2); from++ {
		r := q.records[from]
		bytes -= r.Size()
		switch {
		case r.Type == TypeNotice && r.Notice.Kind == Dropped && r.Pod == nil:
			dropped += r.Notice.Count // becomes one with ours
		case r.Type == TypePage:
		case r.Type != TypeFrame && r.Type != TypeReplay && len(kept) < q.lim.Records/4:
			kept = append(kept, r)
		default:
			dropped++
		}
	}
	if dropped > 0 {
		kept = append(kept, &Record{Type: TypeNotice, At: now, Notice: Notice{
			Kind: Dropped, Count: dropped, Why: "the reader did not keep up",
		}})
	}
	q.records = append(kept, q.records[from:]...)
	q.bytes, q.pages = 0, 0
	for _, r := range q.records {
		q.count(r, r.Size())
	}
}
