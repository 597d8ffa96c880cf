package engine

// pool is the KV pool. A block is shared and counted once computed; one that
// nobody refers to stays until its room is needed, oldest first.
type pool struct {
	capacity int
	private  int
	blocks   map[uint32]*block
	idle     list
	host     *host
	out      changes
}

type block struct {
	id         uint32
	users      int
	prev, next *block
}

func newPool(capacity, host int) *pool {
	p := &pool{capacity: capacity, blocks: map[uint32]*block{}}
	p.idle.init()
	if host > 0 {
		p.host = newHost(host)
	}
	return p
}

// free counts the blocks that hold nothing at all.
func (p *pool) free() int { return p.capacity - p.private - len(p.blocks) }

// matched counts the leading blocks that are in the pool, and how many of these
// are idle.
func (p *pool) matched(ids []uint32) (n, idle int) {
	for _, id := range ids {
		b := p.blocks[id]
		if b == nil {
			break
		}
		if b.users == 0 {
			idle++
		}
		n++
	}
	return n, idle
}

// hold refers to a block that is in the pool.
func (p *pool) hold(id uint32) {
	b := p.blocks[id]
	if b.users == 0 {
		p.idle.remove(b)
	}
	b.users++
}

// add puts a block into the pool with one reference.
func (p *pool) add(id uint32) { p.blocks[id] = &block{id: id, users: 1} }

// reserve evicts until n blocks are free; false, and nothing evicted, when that
// cannot be.
func (p *pool) reserve(n int) bool {
	if p.free()+p.idle.n < n {
		return false
	}
	for p.free() < n {
		b := p.idle.oldest()
		p.idle.remove(b)
		delete(p.blocks, b.id)
		p.out.removed(GPU, b.id)
		if p.host != nil {
			p.host.take(b.id, &p.out)
		}
	}
	return true
}

// release takes a sequence's blocks back, tail first: the end of a prompt is
// evicted before its beginning.
func (p *pool) release(s *Sequence) {
	for i := len(s.shared) - 1; i >= 0; i-- {
		b := p.blocks[s.shared[i]]
		if b.users--; b.users == 0 {
			p.idle.push(b)
		}
	}
	p.private -= s.private
	s.shared, s.private = s.shared[:0], 0
}

// usage is the share of blocks that sequences hold.
func (p *pool) usage() float64 {
	return float64(p.private+len(p.blocks)-p.idle.n) / float64(p.capacity)
}

// list is a queue of blocks with removal from anywhere.
type list struct {
	head block
	n    int
}

func (l *list) init() { l.head.prev, l.head.next = &l.head, &l.head }

func (l *list) oldest() *block { return l.head.next }

func (l *list) push(b *block) {
	b.prev, b.next = l.head.prev, &l.head
	b.prev.next, b.next.prev = b, b
	l.n++
}

func (l *list) remove(b *block) {
	b.prev.next, b.next.prev = b.next, b.prev
	b.prev, b.next = nil, nil
	l.n--
}
