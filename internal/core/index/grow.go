package index

import (
	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
)

// grow is applyStore for what decoding sends all day: one more block on the GPU
// behind one that is known, where nothing is new but the block. It reports
// whether it took the event; where anything is out of the ordinary it has
// changed nothing and applyStore decides.
//
// It is there for speed alone: without chain, keys and path, which have room for
// any store, a block costs a third fewer instructions, and it touches less of
// the caches that the misses of the next event need.
func (ix *Index) grow(m *member, e *event.Event, second uint32) bool {
	size := int(m.size.Load())
	if len(e.Hashes) != 1 || !e.HasParent || e.HasSalt || e.Tier != event.TierGPU || len(e.Extra) > 0 ||
		e.BlockSize != size || len(e.Tokens) != size || size == 0 ||
		m.named.size != size || m.named.lora != e.LoRA || e.LoRAID > 0 ||
		m.parked.events > 0 || m.groups.windows != nil {
		return false
	}
	m.sink = m.rev.warm(e.Parent, e.Hashes) // arrives while the tokens are hashed
	key := ix.hasher.Key(e.Tokens)
	near, ok := m.rev.lookupParent(e.Parent)
	if !ok || !m.rev.log.room(1) {
		return false
	}
	p := m.rev.log.place(near)
	p.off++ // where the block stands
	r := ix.runs.get(p.run)
	if r == nil || r.space.unsalted != m.named.space {
		return false
	}
	m.sink ^= r.warm()
	if r = ix.runs.lock(p.run); r == nil {
		return false
	}
	switch n := r.n.Load(); {
	case p.off < n && r.keys(n)[p.off] == key:
	case p.off == n && r.kid(n, key) == nil:
		r.append([]block.Key{key})
	default: // a child's
		r.shard.unlock()
		return false
	}
	r.touch(second)
	before := r.hold(m.id, layer(event.TierGPU), p.off, p.off+1)
	r.shard.unlock()

	m.sizing.firm, m.sizing.streak = true, 0 // as learn does
	m.rev.reserve(1)
	if slot, _, live := m.rev.find(e.Hashes[0]); !live && before == nil {
		m.rev.insert(slot, e.Hashes[0], p, event.TierGPU, near)
	} else { // a further copy, or a hash that moves
		c := chain{layer: layer(event.TierGPU), span: 1, hashes: e.Hashes}
		ix.enter(m, &c, []stretch{{p.run, p.off, 1, before}}, second, near)
	}
	return true
}
