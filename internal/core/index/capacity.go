package index

import (
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// capacity is the number of blocks the engine can have in use, 0 = not known:
// vLLM 0.32.0 keeps one block of its pool for itself, SGLang 0.5.23 none. Of
// other engines nobody has measured what their figure bounds.
func (o *Owner) capacity() int {
	switch o.Engine {
	case pod.EngineVLLM:
		return max(o.Blocks-1, 0)
	case pod.EngineSGLang:
		return max(o.Blocks, 0)
	}
	return 0
}

// copies counts the blocks of a tier as the engine's pool does, all cache groups
// together; again is how many of them are further copies of a block.
func (m *member) copies(t event.Tier) (n, again int) {
	n, again = m.rev.tiers[t]+m.rev.again[t], m.rev.again[t]
	for i := range m.groups.windows {
		w := &m.groups.windows[i]
		n, again = n+w.copies[t], again+w.again[t]
	}
	return n, again
}

// checkCapacity holds the copies on the GPU against the engine's blocks. More
// than these mean that stores were repeated without a second copy: an engine
// that reports its cache again does so, and nothing on the wire tells it from a
// second physical block. Which counts are too high is not known, so every block
// is left one copy. One that does have two is lost at its first removal, an
// undercount; the counts would have held on to blocks that are gone.
//
// It reports whether even the distinct blocks are too many: then removals were
// lost, and only a reset helps.
func (m *member) checkCapacity() (inflated bool) {
	n, again := m.copies(event.TierGPU)
	if n <= m.capacity {
		return false
	}
	if again > 0 {
		m.stats.Breaches++
		m.rev.forgetAllAgain(event.TierGPU)
		for i := range m.groups.windows {
			m.groups.windows[i].forgetAgain(event.TierGPU)
		}
	}
	return n-again > m.capacity
}
