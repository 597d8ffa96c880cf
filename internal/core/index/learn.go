package index

import "github.com/eppctl/eppctl/internal/core/event"

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
	ix.describe(m)
}
