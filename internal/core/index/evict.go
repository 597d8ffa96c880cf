package index

import (
	"container/heap"
	"slices"

	"github.com/eppctl/eppctl/internal/core/event"
)

// evictShare is how far below the cap an eviction goes: a twentieth, so that it
// does not come back with the next event.
const evictShare = 20

// What blocks cost, for the budget in bytes. What a run has beside its keys: its
// object, a coverage of one group, a slot each among its parent's children and in
// the run table. A hash: eight bytes in the log, a sixteenth of a segment's
// header, and a slot of the table, which is at most 4/7 full. A chunk and a part of
// it, a further hash of a place, a parked block: objects and map entries, by what
// a million of each take (TestBytesAreCounted).
const (
	keyBytes   = 8
	runBytes   = 256
	hashBytes  = 24
	chunkBytes = 88
	partBytes  = 24
	otherBytes = 28
	parkBytes  = 112
)

// budget is an amount of memory.
type budget struct {
	blocks int
	bytes  int64
}

func (b budget) within(max budget) bool { return b.blocks <= max.blocks && b.bytes <= max.bytes }

// used is what the index holds, and how much of it is parked. Each member is
// locked for an instant.
func (ix *Index) used() (b budget, parked int64) {
	for i := range ix.shards {
		blocks, room, runs := ix.shards[i].size()
		b.blocks += blocks
		b.bytes += int64(room)*keyBytes + int64(runs)*runBytes
	}
	for i := range ix.members {
		if m := ix.members[i].Load(); m != nil {
			m.mu.Lock()
			b.bytes += int64(m.rev.live+m.resident())*hashBytes + int64(len(m.others))*otherBytes
			b.bytes += int64(len(m.chunks.byHash))*chunkBytes + int64(m.chunks.parts)*partBytes
			parked += int64(m.parked.blocks) * parkBytes
			m.mu.Unlock()
		}
	}
	b.bytes += parked
	return b, parked
}

// evict keeps the memory caps: it drops whole runs without children, those first
// that nobody has read or stored for longest. A prefix that is stored once and
// read for ever stays. Expected runs stay too.
//
// What a run's hashes cost is only estimated while choosing (a hash on two tiers
// is one hash), so the account is taken anew after each round, and the next one
// makes up for what was missing.
//
// Parked stores go before any run where they take more than what an eviction
// frees: nobody can ask for them.
func (ix *Index) evict() {
	used, parked := ix.used()
	if used.bytes > ix.max.bytes && parked > ix.max.bytes/evictShare {
		ix.unpark()
		used, _ = ix.used()
	}
	if !used.within(ix.max) {
		target := budget{ix.max.blocks - ix.max.blocks/evictShare, ix.max.bytes - ix.max.bytes/evictShare}
		for !used.within(target) && ix.evictOldest(used, target) {
			used, _ = ix.used()
		}
	}
	ix.sweep.bytes.Store(used.bytes)
}

// unpark gives up all that is parked.
func (ix *Index) unpark() {
	for i := range ix.members {
		if m := ix.members[i].Load(); m != nil {
			m.mu.Lock()
			m.stats.OrphansLost += uint64(m.parked.events)
			m.parked = orphans{}
			m.mu.Unlock()
		}
	}
}

// evictOldest evicts until the estimate is within the target, and reports
// whether anything was. Where it is the bytes that are too many, the estimate may
// be far too low (a block can go by many hashes), so a round then takes no more
// than a share of the blocks. A parent takes its place among the leaves as soon as it
// is one: cold chains go from the tail to the head before a fresh leaf does.
func (ix *Index) evictOldest(used, target budget) bool {
	oldest := ix.leaves()
	heap.Init(&oldest)
	var victims []*run
	holders := bitset{}
	floor := min(target.blocks, used.blocks-max(used.blocks/evictShare, 1))
	for len(oldest) > 0 && !used.within(target) && used.blocks > floor {
		r, freed := ix.evictRun(heap.Pop(&oldest).(leaf).id, &holders)
		if r == nil {
			continue
		}
		victims = append(victims, r)
		used.blocks -= freed.blocks
		used.bytes -= freed.bytes
		ix.evicted.Add(uint64(freed.blocks))
		if r.parent.isRoot() {
			continue
		}
		if up, ok := ix.leaf(r.parent.id); ok {
			heap.Push(&oldest, up)
		}
	}
	// The runs are out of the trie, but reverse maps still name their ids.
	for id := range holders.in(len(holders)) {
		if m := ix.members[id].Load(); m != nil {
			ix.forgetDead(m)
		}
	}
	for _, r := range victims {
		ix.free(r)
	}
	return len(victims) > 0
}

type leaf struct{ id, read uint32 }

// leafHeap has the leaf on top that was read longest ago.
type leafHeap []leaf

func (h leafHeap) Len() int           { return len(h) }
func (h leafHeap) Less(i, j int) bool { return h[i].read < h[j].read }
func (h leafHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *leafHeap) Push(x any)        { *h = append(*h, x.(leaf)) }
func (h *leafHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

func (ix *Index) leaves() (out leafHeap) {
	for id := range ix.runs.size() {
		if l, ok := ix.leaf(id); ok {
			out = append(out, l)
		}
	}
	return out
}

// leaf tells whether the run of this id can be evicted.
func (ix *Index) leaf(id uint32) (leaf, bool) {
	r := ix.runs.lock(id)
	if r == nil {
		return leaf{}, false
	}
	defer r.shard.unlock()
	return leaf{id, r.read.Load()}, r.expect == nil && r.kidCount() == 0
}

// evictRun takes a run out of the trie and adds its holders to those given; nil
// if it is not a leaf any more.
func (ix *Index) evictRun(id uint32, holders *bitset) (r *run, freed budget) {
	if r = ix.runs.lock(id); r == nil {
		return nil, freed
	}
	defer r.shard.unlock()
	if r.expect != nil || r.kidCount() > 0 {
		return nil, freed
	}
	freed = budget{int(r.n.Load()), int64(r.cap)*keyBytes + runBytes}
	for _, g := range r.groups() {
		holders.or(g.members, len(holders))
		freed.bytes += int64(g.end-g.start) * int64(g.members.count()) * hashBytes
	}
	r.publish(nil) // coverage first: a reader in between sees less
	ix.unlink(r)
	return r, freed
}

// forgetDead takes the hashes that lie in evicted runs out of the member's
// tables.
func (ix *Index) forgetDead(m *member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dead := func(id uint32) bool {
		r := ix.runs.get(id)
		return r == nil || r.dead
	}
	for at, s := range m.rev.log.held {
		if !dead(s.run) {
			continue
		}
		for i := range uint32(segBlocks) {
			for t := range s.tiers {
				if s.tiers[t]>>i&1 != 0 {
					m.rev.forgetAgain(at+i, event.Tier(t))
					m.rev.lower(at+i, event.Tier(t))
					m.forgetResident(m.rev.log.hash(at + i))
				}
			}
		}
	}
	for p := range m.others {
		if dead(p.run) {
			delete(m.others, p)
		}
	}
	for hash, c := range m.chunks.byHash {
		if slices.ContainsFunc(c.path, func(s stretch) bool { return dead(s.run) }) {
			ix.dropChunk(m, hash, c)
		}
	}
}
