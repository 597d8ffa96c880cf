package index

import "github.com/eppctl/eppctl/internal/core/event"

// GroupKind is a KV cache group that is not indexed: one that keeps only some
// blocks of a prompt, or a second one that keeps all.
type GroupKind struct {
	Group  int
	Kind   string // as the engine names it, "" = full attention
	Window int    // tokens, 0 = none
	Stores uint64 // events seen
}

// maxKinds bounds what one member can make the index remember.
const maxKinds = 64

// groups is what a member's stores told about its cache groups; removals carry
// the number only. The first group that keeps whole prompts is indexed: its
// stores are dense, and a hit needs its blocks whatever the other groups hold.
type groups struct {
	known   bool
	indexed int
	others  []GroupKind
}

// accepts reports whether the event belongs to the indexed group.
func (g *groups) accepts(e *event.Event) bool {
	other := g.other(e.Group)
	switch {
	case e.Kind == event.Stored && !e.FullAttention(),
		g.known && e.Group != g.indexed:
		if e.Kind == event.Stored {
			g.note(other, e)
		}
		return false
	case other != nil: // a placeholder names no kind
		return false
	}
	if e.Kind == event.Stored && e.Dense() {
		g.known, g.indexed = true, e.Group
	}
	return true
}

func (g *groups) other(group int) *GroupKind {
	for i := range g.others {
		if g.others[i].Group == group {
			return &g.others[i]
		}
	}
	return nil
}

func (g *groups) note(k *GroupKind, e *event.Event) {
	if k == nil {
		if len(g.others) == maxKinds {
			return
		}
		g.others = append(g.others, GroupKind{Group: e.Group})
		k = &g.others[len(g.others)-1]
	}
	if e.SpecKind != "" {
		k.Kind, k.Window = e.SpecKind, e.Window
	}
	k.Stores++
}

// sizing guards the learned block size against a first store that misleads: one
// from an offload layer with larger chunks, or a page that was not full.
type sizing struct {
	firm   bool // told by a store on the GPU
	odd    int  // another size on the GPU …
	streak int  // … and how often in a row
}

// relearnAfter stores of one other size in a row, the member's size is that.
const relearnAfter = 4

// learn tells how many blocks each hash of a dense store stands for; 0 when its
// block size cannot be indexed. m.mu is held.
func (ix *Index) learn(m *member, e *event.Event) (span int) {
	size, s := int(m.size.Load()), &m.sizing
	onGPU := e.Tier == event.TierGPU
	switch {
	case size == 0:
		ix.setSize(m, e.BlockSize)
		s.firm = onGPU
		return 1
	case e.BlockSize == size:
		s.firm = s.firm || onGPU
		s.streak = 0
		return 1
	case onGPU:
		if s.odd != e.BlockSize {
			s.odd, s.streak = e.BlockSize, 0
		}
		if s.streak++; s.firm && s.streak < relearnAfter {
			return 0
		}
		ix.drop(m)
		ix.setSize(m, e.BlockSize)
		m.sizing = sizing{firm: true}
		return 1
	case e.BlockSize%size == 0:
		return e.BlockSize / size
	}
	return 0
}

func (ix *Index) setSize(m *member, size int) {
	ix.sizes.leave(int(m.size.Load()))
	ix.sizes.use(size)
	m.size.Store(int32(size))
}
