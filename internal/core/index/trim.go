package index

import (
	"slices"
	"unsafe"

	"github.com/eppctl/eppctl/internal/core/block"
)

// trimShare is how much of a run may be dead: an eighth of what is live. What
// engines evict at the end of a chain and never store again would otherwise
// stay for as long as the head is held.
const trimShare = 8

// trim looks at the next runs for dead tails.
func (ix *Index) trim() {
	total := ix.runs.size()
	s := &ix.sweep
	for range min(total, sweepRuns) {
		if s.next >= total {
			s.dead.Store(int64(s.sum))
			s.next, s.sum = 0, 0
		}
		s.sum += ix.trimRun(s.next)
		s.next++
	}
	if s.next >= total {
		s.dead.Store(int64(s.sum))
		s.next, s.sum = 0, 0
	}
}

// trimRun shortens a run and returns the dead blocks it keeps.
func (ix *Index) trimRun(id uint32) (dead int) {
	r := ix.runs.lock(id)
	if r == nil {
		return 0
	}
	defer r.shard.unlock()
	if r.expect != nil {
		return 0
	}
	end := r.end()
	for c := range r.kids.Load().all {
		end = max(end, c.off)
	}
	n := r.n.Load()
	if end == 0 || end == n || (n-end)*trimShare <= end {
		return int(n - end)
	}
	ix.replace(r, end)
	ix.trimmed.Add(uint64(n - end))
	return 0
}

// replace puts a twin with the first n keys in the place of r. r itself stays
// as it is for the readers that have it: were its tail cut and grown again with
// other keys, a reader of the old keys would take the coverage of the new ones
// for theirs. For the same reason the twin has a coverage of its own, which may
// grow in place. The shard is locked.
func (ix *Index) replace(r *run, n uint32) {
	t := &run{off: r.off, id: r.id, first: r.first, space: r.space, parent: r.parent, shard: r.shard, cap: n}
	keys := make([]block.Key, n)
	copy(keys, r.keys(n))
	t.arr.Store(unsafe.SliceData(keys))
	t.n.Store(n)
	t.read.Store(r.read.Load())
	if c := r.cover.Load(); c != nil {
		t.publish(&coverage{groups: slices.Clone(c.groups)})
	}
	kids := r.kids.Load()
	t.kids.Store(kids)
	for c := range kids.all {
		c.parent = t
	}
	r.shard.blocks += int(n) - int(r.n.Load())
	r.shard.room += int(n) - int(r.cap)
	ix.runs.slot(r.id).Store(t)
	r.parent.swapKid(r, t)
}
