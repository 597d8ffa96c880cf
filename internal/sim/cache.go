package sim

// pool is an engine's KV block pool: block-exact, with reference counts and
// LRU eviction of unreferenced blocks. It follows vLLM's block pool: blocks of
// a finished request keep their content and go to the end of the free list,
// tail of the prompt first, so that tails are evicted before the prefixes they
// hang on; a block is evicted when it is handed out again. Two blocks may hold
// the same content. Not safe for concurrent use.
type pool struct {
	blocks []poolBlock // the last entry is the sentinel of the free list
	byHash map[digest][]int32
	free   int
}

type poolBlock struct {
	hash       digest
	stored     bool // hash is valid and findable
	refs       int32
	prev, next int32 // free list, oldest first; meaningful while refs == 0
}

func newPool(blocks int) *pool {
	p := &pool{}
	p.init(blocks)
	return p
}

func (p *pool) init(n int) {
	p.blocks = make([]poolBlock, n+1)
	p.byHash = make(map[digest][]int32)
	p.free = 0
	s := int32(n)
	p.blocks[s] = poolBlock{prev: s, next: s}
	for i := range s {
		p.link(i)
	}
}

// match returns how many leading blocks are present.
func (p *pool) match(hashes []digest) int {
	for i, h := range hashes {
		if len(p.byHash[h]) == 0 {
			return i
		}
	}
	return len(hashes)
}

// idle returns how many of the leading n blocks, all present, no request holds:
// taking them uses up that many free blocks.
func (p *pool) idle(hashes []digest) int {
	n := 0
	for _, h := range hashes {
		if p.blocks[p.byHash[h][0]].refs == 0 {
			n++
		}
	}
	return n
}

// hold takes a reference on the blocks of these hashes, which must be present.
func (p *pool) hold(hashes []digest) []int32 {
	out := make([]int32, len(hashes))
	for i, h := range hashes {
		b := p.byHash[h][0]
		p.ref(b)
		out[i] = b
	}
	return out
}

func (p *pool) ref(b int32) {
	if p.blocks[b].refs == 0 {
		p.unlink(b)
	}
	p.blocks[b].refs++
}

// take hands out n empty blocks, oldest free ones first, and names the content
// it evicted for them in order. It does nothing and returns false when fewer
// than n are free.
func (p *pool) take(n int) (blocks []int32, evicted []digest, ok bool) {
	if n > p.free {
		return nil, nil, false
	}
	for range n {
		b := p.blocks[len(p.blocks)-1].next
		if p.blocks[b].stored {
			evicted = append(evicted, p.blocks[b].hash)
			p.forget(b)
		}
		p.ref(b)
		blocks = append(blocks, b)
	}
	return blocks, evicted, true
}

// store makes a held block findable under its hash.
func (p *pool) store(b int32, h digest) {
	p.blocks[b].hash, p.blocks[b].stored = h, true
	p.byHash[h] = append(p.byHash[h], b)
}

// release gives the blocks back, last one first.
func (p *pool) release(blocks []int32) {
	for i := len(blocks) - 1; i >= 0; i-- {
		b := blocks[i]
		if p.blocks[b].refs--; p.blocks[b].refs == 0 {
			p.link(b)
		}
	}
}

// reset forgets all content; false when a request still holds a block.
func (p *pool) reset() bool {
	if p.free != p.size() {
		return false
	}
	p.init(p.size())
	return true
}

func (p *pool) size() int { return len(p.blocks) - 1 }

// usage is the share of blocks that requests hold. An idle pool full of cached
// blocks has usage 0, as in vLLM and SGLang.
func (p *pool) usage() float64 { return float64(p.size()-p.free) / float64(p.size()) }

// cachedIdle counts the blocks with content that nobody holds.
func (p *pool) cachedIdle() int {
	n := 0
	for i := range p.size() {
		if p.blocks[i].stored && p.blocks[i].refs == 0 {
			n++
		}
	}
	return n
}

func (p *pool) forget(b int32) {
	h := p.blocks[b].hash
	list := p.byHash[h]
	for i, x := range list {
		if x == b {
			list = append(list[:i], list[i+1:]...)
			break
		}
	}
	if p.byHash[h] = list; len(list) == 0 {
		delete(p.byHash, h)
	}
	p.blocks[b].stored = false
}

// link puts b at the young end of the free list.
func (p *pool) link(b int32) {
	s := int32(len(p.blocks) - 1)
	last := p.blocks[s].prev
	p.blocks[b].prev, p.blocks[b].next = last, s
	p.blocks[last].next, p.blocks[s].prev = b, b
	p.free++
}

func (p *pool) unlink(b int32) {
	prev, next := p.blocks[b].prev, p.blocks[b].next
	p.blocks[prev].next, p.blocks[next].prev = next, prev
	p.free--
}
