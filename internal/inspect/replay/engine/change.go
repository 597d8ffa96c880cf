package engine

// Tier is where a block lies.
type Tier uint8

// The tiers.
const (
	GPU Tier = iota
	Host
)

// Change is one announcement of an engine: blocks stored or removed on a tier.
type Change struct {
	Stored bool
	Tier   Tier
	Blocks []uint32
	// Parent is the block before the first one stored; Root says there is none,
	// Moved that the engine does not tell, because the blocks are known.
	Parent      uint32
	Root, Moved bool
	Adapter     string // of the blocks stored
}

const noParent = -1

// changes collects what is to be announced, joining neighbours.
type changes struct{ list []Change }

func (c *changes) removed(t Tier, id uint32) {
	if k := len(c.list) - 1; k >= 0 && !c.list[k].Stored && c.list[k].Tier == t {
		c.list[k].Blocks = append(c.list[k].Blocks, id)
		return
	}
	c.list = append(c.list, Change{Tier: t, Blocks: []uint32{id}})
}

// stored announces a block behind parent; noParent marks one that only changed
// its tier.
func (c *changes) stored(t Tier, id uint32, parent int64, adapter string) {
	if k := len(c.list) - 1; k >= 0 && parent >= 0 {
		if l := &c.list[k]; l.Stored && !l.Moved && l.Tier == t && l.Blocks[len(l.Blocks)-1] == uint32(parent) {
			l.Blocks = append(l.Blocks, id)
			return
		}
	}
	n := Change{Stored: true, Tier: t, Blocks: []uint32{id}, Moved: parent == noParent, Root: parent == rootParent, Adapter: adapter}
	if parent >= 0 {
		n.Parent = uint32(parent)
	}
	c.list = append(c.list, n)
}

// rootParent marks the first block of a prompt.
const rootParent = -2

// parentOf is what stands before block i of a prompt.
func parentOf(blocks []uint32, i int) int64 {
	if i == 0 {
		return rootParent
	}
	return int64(blocks[i-1])
}
