package index

import (
	"slices"

	"github.com/eppctl/eppctl/internal/core/event"
)

// chunk is a piece of a prompt that an offload layer (LMCache, say) stores as
// one object, larger than the engine's blocks. It goes by a hash of its own.
type chunk struct {
	path   []stretch             // in prompt order; one per run it crosses
	tiers  uint8                 // bit per tier
	again  [event.NumTiers]uint8 // further copies, as againPage counts them
	stored uint32                // second of the latest store
}

func (c *chunk) on(t event.Tier) bool { return c.tiers>>t&1 != 0 }

// maxChunkParts bounds the chunks of one member by the parts they have, one per
// run that a chunk crosses. Chunks of 256 tokens, LMCache's, mostly lie in one run:
// a million of them are 268 million tokens, which at 70 KB each, a compressed
// cache's, are 19 TB.
const maxChunkParts = 1 << 20

// chunks are those of a member, by hash.
type chunks struct {
	byHash map[uint64]*chunk
	parts  int // in all paths
}

// room reports whether chunks of so many blocks fit, were each block to lie in a
// run of its own.
func (cs *chunks) room(blocks int) bool { return cs.parts+blocks <= maxChunkParts }

// add takes in a chunk whose hash is not there yet.
func (cs *chunks) add(hash uint64, c *chunk) {
	if cs.byHash == nil {
		cs.byHash = map[uint64]*chunk{}
	}
	cs.byHash[hash] = c
	cs.parts += len(c.path)
}

// forget takes a chunk out. What it covers is the caller's business.
func (cs *chunks) forget(hash uint64, c *chunk) {
	delete(cs.byHash, hash)
	cs.parts -= len(c.path)
}

// enterChunks writes the hashes of a laid chain of chunks down.
func (ix *Index) enterChunks(m *member, c *chain, path []stretch, second uint32) {
	t := c.layer.tier()
	ix.share(m, c.layer, path)
	rest := slices.Clone(path)
	for i := range rest {
		rest[i].before = nil // of no more use
	}
	for _, hash := range c.hashes {
		front, more := cut(rest, uint32(c.span))
		rest = more
		old := m.chunks.byHash[hash]
		elsewhere := old != nil && !samePath(old.path, front)
		if elsewhere && c.late {
			late := &chunk{path: front, tiers: 1 << t}
			ix.lowerChunk(m, late, t)
			continue
		}
		if elsewhere {
			ix.dropChunk(m, hash, old)
			old = nil
		}
		switch {
		case old == nil:
			m.chunks.add(hash, &chunk{path: front, tiers: 1 << t, stored: second})
			continue
		case old.on(t):
			old.again[t] = min(old.again[t]+1, maxAgain)
			ix.unshare(m, c.layer, old.path)
		default:
			old.tiers |= 1 << t
		}
		old.stored = second
	}
}

// share counts one more hash for the blocks of the path that the member held
// already, before any hash moves: taking one away must find the newcomer there.
func (ix *Index) share(m *member, l layer, path []stretch) {
	for _, s := range path {
		if s.before == nil {
			continue
		}
		for off := s.off; off < s.off+s.n; off++ {
			if s.before.holds(m.id, l, off) {
				m.others.add(place{s.run, off}, l)
			}
		}
	}
}

// unshare takes back what share counted for a chunk that was there already.
func (ix *Index) unshare(m *member, l layer, path []stretch) {
	for _, s := range path {
		for off := s.off; off < s.off+s.n; off++ {
			m.others.drop(place{s.run, off}, l)
		}
	}
}

// removeChunk takes a chunk from a tier; false when there is no such chunk.
func (ix *Index) removeChunk(m *member, hash uint64, t event.Tier) bool {
	c := m.chunks.byHash[hash]
	if c == nil {
		return false
	}
	if !c.on(t) {
		return true
	}
	if c.again[t] > 0 {
		c.again[t]--
		return true
	}
	ix.lowerChunk(m, c, t)
	if c.tiers == 0 {
		m.chunks.forget(hash, c)
	}
	return true
}

// dropChunk takes a chunk from all tiers.
func (ix *Index) dropChunk(m *member, hash uint64, c *chunk) {
	for t := range event.NumTiers {
		if c.on(t) {
			ix.lowerChunk(m, c, t)
		}
	}
	m.chunks.forget(hash, c)
}

func (ix *Index) lowerChunk(m *member, c *chunk, t event.Tier) {
	c.tiers &^= 1 << t
	c.again[t] = 0
	l := layer(t) | layerChunk
	var w withdrawal
	for _, s := range c.path {
		for off := s.off; off < s.off+s.n; off++ {
			if p := (place{s.run, off}); !m.others.drop(p, l) {
				w.add(ix, m, p, l)
			}
		}
	}
	w.flush(ix, m)
}

// cut takes n blocks off the front of a path; nil when it is too short.
func cut(path []stretch, n uint32) (front, rest []stretch) {
	for i := range path {
		s := &path[i]
		if s.n > n {
			head := *s
			head.n = n
			s.off += n
			s.n -= n
			return append(front, head), path[i:]
		}
		front = append(front, *s)
		if n -= s.n; n == 0 {
			return front, path[i+1:]
		}
	}
	return nil, nil
}

func samePath(a, b []stretch) bool {
	return slices.EqualFunc(a, b, func(x, y stretch) bool {
		return x.run == y.run && x.off == y.off && x.n == y.n
	})
}
