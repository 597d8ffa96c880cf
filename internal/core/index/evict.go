package index

import (
	"cmp"
	"slices"

	"github.com/eppctl/eppctl/internal/core/event"
)

// evictShare is how far below the cap an eviction goes: a twentieth, so that it
// does not come back with the next event.
const evictShare = 20

// evict keeps the memory cap: it drops whole runs without children, those first
// that nobody has read or stored for longest. A prefix that is stored once and
// read for ever stays. Expected runs stay too.
func (ix *Index) evict() {
	if ix.blocks() <= ix.max {
		return
	}
	target := ix.max - ix.max/evictShare
	var victims []*run
	holders := bitset{}
	for {
		// A round makes parents into leaves; the next one sees them.
		over := ix.blocks() - target
		if over <= 0 {
			break
		}
		leaves := ix.leaves()
		slices.SortFunc(leaves, func(a, b leaf) int { return cmp.Compare(a.read, b.read) })
		before := len(victims)
		for _, l := range leaves {
			if over <= 0 {
				break
			}
			if r := ix.evictRun(l.id, &holders); r != nil {
				victims = append(victims, r)
				over -= int(r.n.Load())
				ix.evicted.Add(uint64(r.n.Load()))
			}
		}
		if len(victims) == before {
			break // the rest is expected
		}
	}
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
func (ix *Index) evictRun(id uint32, holders *bitset) *run {
	r := ix.runs.get(id)
	if r == nil {
		return nil
	}
	r.shard.lock()
	defer r.shard.unlock()
	if r = ix.runs.get(id); r == nil || r.dead || r.expect != nil || r.kidCount() > 0 {
		return nil
	}
	for _, g := range r.groups() {
		holders.or(g.members, len(holders))
	}
	r.publish(nil) // coverage first: a reader in between sees less
	ix.unlink(r)
	return r
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
