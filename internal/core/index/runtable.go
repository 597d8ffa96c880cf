package index

import (
	"sync"
	"sync/atomic"
)

const pageRuns = 1 << 12

// runTable gives runs the small numbers by which reverse maps name them.
// Reading it takes no lock: the writer of a member resolves ids all the time,
// and the members share the table.
type runTable struct {
	pages atomic.Pointer[[]*runPage] // grows by copy

	mu    sync.Mutex
	next  uint32
	spare []uint32
}

type runPage [pageRuns]atomic.Pointer[run]

func (t *runTable) slot(id uint32) *atomic.Pointer[run] {
	return &(*t.pages.Load())[id/pageRuns][id%pageRuns]
}

// get returns the run of an id, its newest twin if it was trimmed; nil if the
// id is free.
func (t *runTable) get(id uint32) *run { return t.slot(id).Load() }

// lock returns the run of an id with its shard locked; nil, and nothing locked,
// if it is out of the trie. Between its caller's look at the id and the lock the
// run may have been trimmed (then it is the twin), evicted or reaped.
func (t *runTable) lock(id uint32) *run {
	r := t.get(id)
	if r == nil {
		return nil
	}
	sh := r.shard
	sh.lock()
	if r = t.get(id); r == nil || r.dead || r.shard != sh {
		sh.unlock()
		return nil
	}
	return r
}

// add numbers the run.
func (t *runTable) add(r *run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := len(t.spare); k > 0 {
		r.id = t.spare[k-1]
		t.spare = t.spare[:k-1]
	} else {
		r.id = t.next
		t.next++
		if r.id%pageRuns == 0 {
			var pages []*runPage
			if old := t.pages.Load(); old != nil {
				pages = append(pages, *old...)
			}
			pages = append(pages, new(runPage))
			t.pages.Store(&pages)
		}
	}
	t.slot(r.id).Store(r)
}

// free gives the number back; nobody may hold it any more.
func (t *runTable) free(id uint32) {
	t.mu.Lock()
	t.slot(id).Store(nil)
	t.spare = append(t.spare, id)
	t.mu.Unlock()
}

// size is the number of ids handed out so far.
func (t *runTable) size() uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.next
}
