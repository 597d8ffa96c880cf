package index

import (
	"iter"
	"slices"
	"time"
)

// Bounds of what one member may have parked. A parent that was lost for good
// must not hold memory; one that is merely late comes with the next batches.
const (
	maxOrphans      = 1024
	maxOrphanBlocks = 65536
	orphanWait      = int64(5 * time.Second)
)

// orphans keeps the stores whose parent is not known: without it their position
// is not known either. They wait as keys, not as tokens.
type orphans struct {
	byParent map[uint64][]*orphan
	byHash   map[uint64][]*orphan // those that store the hash, removals taken off
	queue    []*orphan            // by time of arrival, those attached since included
	events   int
	blocks   int
}

type orphan struct {
	chain
	at      int64
	left    bool     // attached or dropped
	removed []uint64 // hashes the engine has removed meanwhile
}

// park keeps a copy of c, or says that it could not.
func (m *member) park(c *chain, now int64) Verdict {
	p := &m.parked
	m.stats.OrphansLost += uint64(p.expire(now))
	if p.events == maxOrphans || p.blocks+len(c.keys) > maxOrphanBlocks {
		m.stats.OrphansLost++
		return OrphanLost
	}
	if p.byParent == nil {
		p.byParent, p.byHash = map[uint64][]*orphan{}, map[uint64][]*orphan{}
	}
	o := &orphan{chain: c.clone(), at: now}
	o.late = true
	p.byParent[o.parent] = append(p.byParent[o.parent], o)
	for _, h := range o.hashes {
		p.byHash[h] = append(p.byHash[h], o)
	}
	if len(p.queue) >= 2*maxOrphans { // mostly attached ones behind a waiting one
		p.queue = slices.DeleteFunc(p.queue, func(o *orphan) bool { return o.left })
	}
	p.queue = append(p.queue, o)
	p.events++
	p.blocks += len(o.keys)
	m.stats.OrphansParked++
	return Parked
}

// remove notes that a parked hash is gone from a tier; false if none is parked.
// Each parked store of the hash takes one note, the latest first.
func (p *orphans) remove(hash uint64, l layer) bool {
	for i, o := range slices.Backward(p.byHash[hash]) {
		if o.layer&^layerChunk == l {
			o.removed = append(o.removed, hash)
			p.unname(hash, i)
			return true
		}
	}
	return false
}

func (p *orphans) unname(hash uint64, i int) {
	if rest := slices.Delete(p.byHash[hash], i, i+1); len(rest) > 0 {
		p.byHash[hash] = rest
	} else {
		delete(p.byHash, hash)
	}
}

// leave takes an orphan out of the tables, except the queue.
func (p *orphans) leave(o *orphan) {
	o.left = true
	p.events--
	p.blocks -= len(o.keys)
	for _, h := range o.hashes {
		if i := slices.Index(p.byHash[h], o); i >= 0 {
			p.unname(h, i)
		}
	}
	same := p.byParent[o.parent]
	if same = slices.DeleteFunc(same, func(x *orphan) bool { return x == o }); len(same) == 0 {
		delete(p.byParent, o.parent)
	} else {
		p.byParent[o.parent] = same
	}
}

// expire drops those that waited too long and returns their number.
func (p *orphans) expire(now int64) (dropped int) {
	i := 0
	for ; i < len(p.queue) && (p.queue[i].left || now-p.queue[i].at > orphanWait); i++ {
		if o := p.queue[i]; !o.left {
			p.leave(o)
			dropped++
		}
		p.queue[i] = nil
	}
	p.queue = p.queue[i:]
	return dropped
}

// clear drops those of the layers for which drop says so.
func (p *orphans) clear(drop func(layer) bool) {
	for _, o := range p.queue {
		if !o.left && drop(o.layer) {
			p.leave(o)
		}
	}
}

// forgo leaves out of the chain what the engine has removed meanwhile: were it stored
// first and removed then, a reader in between would find it. The keys before the last
// that is left stay, since that one hangs below them. It reports whether any is left.
func (o *orphan) forgo() bool {
	if len(o.removed) == 0 {
		return true
	}
	slices.Sort(o.removed)
	o.gone = make([]bool, len(o.hashes))
	end := 0
	var left []uint64
	for i, h := range o.hashes {
		if _, o.gone[i] = slices.BinarySearch(o.removed, h); !o.gone[i] {
			left, end = append(left, h), i+1
		}
	}
	o.hashes, o.keys = left, o.keys[:end*o.span]
	return end > 0
}

// left yields the parts of a stretch that are not gone. Its first block is number at of
// the chain.
func (c *chain) left(s stretch, at uint32) iter.Seq[stretch] {
	return func(yield func(stretch) bool) {
		gone := func(i uint32) bool { return c.gone[int(at+i)/c.span] }
		for i := uint32(0); i < s.n; i++ {
			from := i
			for i < s.n && !gone(i) {
				i++
			}
			if i > from && !yield(stretch{run: s.run, off: s.off + from, n: i - from}) {
				return
			}
		}
	}
}

// attach stores what waited for one of the hashes, and what waited for that.
func (ix *Index) attach(m *member, hashes []uint64, now int64, second uint32) (n int) {
	m.stats.OrphansLost += uint64(m.parked.expire(now))
	for todo := [][]uint64{hashes}; len(todo) > 0; {
		hashes, todo = todo[0], todo[1:]
		for _, h := range hashes {
			for _, o := range slices.Clone(m.parked.byParent[h]) {
				m.parked.leave(o)
				waitedFor := o.hashes
				if o.forgo() {
					if v := ix.store(m, &o.chain, second); v != Applied {
						if v == orphaned { // its parent is gone already, or moved
							v = OrphanLost
						}
						m.stats.OrphansLost++
						m.stats.Verdicts[v]++
						continue
					}
				}
				n++
				m.stats.OrphansAttached++
				todo = append(todo, waitedFor)
			}
			if m.parked.events == 0 {
				return n
			}
		}
	}
	return n
}
