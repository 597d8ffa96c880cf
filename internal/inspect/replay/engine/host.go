package engine

// host is the tier behind the pool: what the pool evicts is copied there, and a
// prompt that needs it again fetches it instead of computing it.
type host struct {
	capacity int
	blocks   map[uint32]*block
	order    list
}

func newHost(capacity int) *host {
	h := &host{capacity: capacity, blocks: map[uint32]*block{}}
	h.order.init()
	return h
}

// take copies a block to the host, or renews it there.
func (h *host) take(id uint32, out *changes) {
	if h.touch(id) {
		return
	}
	for len(h.blocks) >= h.capacity {
		b := h.order.oldest()
		h.order.remove(b)
		delete(h.blocks, b.id)
		out.removed(Host, b.id)
	}
	b := &block{id: id}
	h.blocks[id] = b
	h.order.push(b)
	out.stored(Host, id, noParent, "")
}

// touch makes a block the newest; false when it is not there.
func (h *host) touch(id uint32) bool {
	b := h.blocks[id]
	if b == nil {
		return false
	}
	h.order.remove(b)
	h.order.push(b)
	return true
}

// matched counts the blocks at the front of ids that are on the host.
func (h *host) matched(ids []uint32) int {
	if h == nil {
		return 0
	}
	n := 0
	for n < len(ids) && h.touch(ids[n]) {
		n++
	}
	return n
}
