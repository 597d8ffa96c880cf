package index

import (
	"cmp"
	"slices"

	"github.com/eppctl/eppctl/internal/core/event"
)

// evictShare is how far below the cap an eviction goes: a twentieth, so that it
// does not come back with the next event.
const evictShare = 20

// What blocks cost, for the budget in bytes. What a run has beside its keys: its
// object, a coverage of one group, a slot each among its parent's children and in
// the run table. A hash: eight bytes in the log, a sixteenth of a segment's
// header, and a slot of the table, which is at most 4/7 full.
const (
	keyBytes  = 8
	runBytes  = 224
	hashBytes = 24
)

// budget is an amount of memory.
type budget struct {
	blocks int
	bytes  int64
}

func (b budget) within(max budget) bool { return b.blocks <= max.blocks && b.bytes <= max.bytes }

// used is what the index holds. Each member is locked for an instant.
func (ix *Index) used() (b budget) {
	for i := range ix.shards {
		blocks, room, runs := ix.shards[i].size()
		b.blocks += blocks
		b.bytes += int64(room)*keyBytes + int64(runs)*runBytes
	}
	for i := range ix.members {
		if m := ix.members[i].Load(); m != nil {
			m.mu.Lock()
			b.bytes += int64(m.rev.live+m.resident()) * hashBytes
			m.mu.Unlock()
		}
	}
	return b
}

// evict keeps the memory caps: it drops whole runs without children, those first
// that nobody has read or stored for longest. A prefix that is stored once and
// read for ever stays. Expected runs stay too.
func (ix *Index) evict() {
	used := ix.used()
	ix.sweep.bytes.Store(used.bytes)
	if used.within(ix.max) {
		return
	}
	target := budget{ix.max.blocks - ix.max.blocks/evictShare, ix.max.bytes - ix.max.bytes/evictShare}
	var victims []*run
	holders := bitset{}
	// A round makes parents into leaves; the next one sees them.
	for more := true; more && !used.within(target); {
		leaves := ix.leaves()
		slices.SortFunc(leaves, func(a, b leaf) int { return cmp.Compare(a.read, b.read) })
		more = false // unless the rest is not just expected runs
		for _, l := range leaves {
			if used.within(target) {
				break
			}
			if r, freed := ix.evictRun(l.id, &holders); r != nil {
				victims = append(victims, r)
				used.blocks -= freed.blocks
				used.bytes -= freed.bytes
				ix.evicted.Add(uint64(freed.blocks))
				more = true
			}
		}
	}
	ix.sweep.bytes.Store(used.bytes)
	// The runs are out of the trie, but reverse maps still name their ids.
	for id := range holders.in(len(holders)) {
		if m := ix.members[id].Load(); m != nil {
			ix.forgetDead(m)
		}
	}
	for _, r := range victims {
		ix.runs.free(r.id)
	}
}

type leaf struct{ id, read uint32 }

func (ix *Index) leaves() (out []leaf) {
	for id := range ix.runs.size() {
		r := ix.runs.get(id)
		if r == nil {
			continue
		}
		r.shard.lock()
		if !r.dead && r.expect == nil && r.kidCount() == 0 {
			out = append(out, leaf{id, r.read.Load()})
		}
		r.shard.unlock()
	}
	return out
}

// evictRun takes a run out of the trie and adds its holders to those given; nil
// if it is not a leaf any more.
func (ix *Index) evictRun(id uint32, holders *bitset) (r *run, freed budget) {
	if r = ix.runs.get(id); r == nil {
		return nil, freed
	}
	sh := r.shard
	sh.lock()
	defer sh.unlock()
	if r = ix.runs.get(id); r == nil || r.shard != sh || r.dead || r.expect != nil || r.kidCount() > 0 {
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
	for hash, c := range m.chunks {
		if slices.ContainsFunc(c.path, func(s stretch) bool { return dead(s.run) }) {
			ix.dropChunk(m, hash, c)
		}
	}
}
