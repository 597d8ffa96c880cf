package index

import (
	"sync/atomic"

	"github.com/eppctl/eppctl/internal/core/block"
)

// children is an open-addressing table of the runs that hang below a run, keyed
// by (offset, first key). Readers probe it without lock; writers, who hold the
// shard's lock, fill free slots in place and grow by building a new table.
type children struct {
	slots  []atomic.Pointer[run] // a power of two, never full
	secret uint64
	used   int // slots taken, gone ones included
	live   int
}

// gone marks a slot whose run was taken out: the probe goes on behind it.
var gone = new(run)

// home is where the probe for a child begins. The secret keeps children with
// chosen keys, which pages of one token have, from falling into one place.
func (t *children) home(off uint32, first block.Key) uint64 {
	h := (uint64(first) ^ uint64(off)*0x9E3779B97F4A7C15) * t.secret
	return h >> 32 & uint64(len(t.slots)-1)
}

// kid returns the run that continues with key first at offset off, or nil.
func (r *run) kid(off uint32, first block.Key) *run {
	t := r.kids.Load()
	if t == nil {
		return nil
	}
	mask := uint64(len(t.slots) - 1)
	for i := t.home(off, first); ; i = (i + 1) & mask {
		c := t.slots[i].Load()
		if c == nil {
			return nil
		}
		if c.first == first && c.off == off && c != gone {
			return c
		}
	}
}

func (r *run) kidCount() int {
	if t := r.kids.Load(); t != nil {
		return t.live
	}
	return 0
}

// addKid publishes c, which must be complete.
func (r *run) addKid(c *run) {
	t := r.kids.Load()
	if t == nil || (t.used+1)*4 > len(t.slots)*3 {
		t = r.regrow(t)
		t.put(c)
		r.kids.Store(t)
		return
	}
	t.put(c)
}

func (t *children) put(c *run) {
	mask := uint64(len(t.slots) - 1)
	i := t.home(c.off, c.first)
	for t.slots[i].Load() != nil {
		i = (i + 1) & mask
	}
	t.slots[i].Store(c)
	t.used++
	t.live++
}

// regrow copies the live children into a table that is at most half full after
// one more: growing and clearing gone slots are one operation.
func (r *run) regrow(old *children) *children {
	n := 4
	if old != nil {
		for n < 2*(old.live+1) {
			n *= 2
		}
	}
	t := &children{slots: make([]atomic.Pointer[run], n), secret: r.shard.secret}
	for c := range old.all {
		t.put(c)
	}
	return t
}

// dropKid takes c out, if it is there. The search is hashed: a root can have
// hundreds of thousands of children.
func (r *run) dropKid(c *run) {
	if t, i := r.find(c); t != nil {
		t.slots[i].Store(gone)
		t.live--
	}
}

// swapKid puts c in the place of the run it is a twin of.
func (r *run) swapKid(old, c *run) {
	if t, i := r.find(old); t != nil {
		t.slots[i].Store(c)
	}
}

func (r *run) find(c *run) (*children, uint64) {
	t := r.kids.Load()
	if t == nil {
		return nil, 0
	}
	mask := uint64(len(t.slots) - 1)
	for i := t.home(c.off, c.first); ; i = (i + 1) & mask {
		switch t.slots[i].Load() {
		case c:
			return t, i
		case nil:
			return nil, 0
		}
	}
}

// all yields the live children. The shard is locked.
func (t *children) all(yield func(*run) bool) {
	if t == nil {
		return
	}
	for i := range t.slots {
		if c := t.slots[i].Load(); c != nil && c != gone && !yield(c) {
			return
		}
	}
}
