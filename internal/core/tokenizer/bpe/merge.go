package bpe

// mergeShort merges n symbols in place until so few are left, where codes[i] is the code
// of the pair at i, and returns how many are left. It looks at all pairs for each merge, which for
// few is faster than a heap.
func (m *Model) mergeShort(ids, codes []uint32, n, until int) int {
	for n > until {
		best, at := codes[0], 0
		for i, c := range codes[1 : n-1] {
			if c < best { // not <=: of equal ones the leftmost
				best, at = c, i+1
			}
		}
		if best == None {
			break
		}
		ids[at] = m.sym.product(best, ids[at], ids[at+1])
		for i := at + 1; i < n-1; i++ { // too short for copy
			ids[i] = ids[i+1]
			codes[i-1] = codes[i]
		}
		n--
		if at < n-1 {
			codes[at] = m.pairs.code(ids[at], ids[at+1])
		}
		if at > 0 {
			codes[at-1] = m.pairs.code(ids[at-1], ids[at])
		}
	}
	return n
}

// shortMerge is the most symbols that mergeShort is used for.
const shortMerge = 32

// node is a symbol of a long piece, in a list.
type node struct {
	id, code   uint32 // code of the merge with the next one
	prev, next int32
}

// heap is a binary heap of code << 32 | position: the lowest rank first, of equal
// ones the leftmost.
type heap []uint64

func (h heap) down(i int) {
	v := h[i]
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && h[c+1] < h[c] {
			c++
		}
		if h[c] >= v {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = v
}

func (h *heap) push(v uint64) {
	*h = append(*h, v)
	a := *h
	i := len(a) - 1
	for i > 0 && a[(i-1)/2] > v {
		a[i] = a[(i-1)/2]
		i = (i - 1) / 2
	}
	a[i] = v
}

func (h *heap) pop() uint64 {
	a := *h
	top := a[0]
	a[0] = a[len(a)-1]
	*h = a[:len(a)-1]
	if len(*h) > 0 {
		h.down(0)
	}
	return top
}

// mergeNodes merges the symbols in sc.nodes and appends the ids, none when the call
// has to give up.
func (m *Model) mergeNodes(sc *Scratch, out []uint32) []uint32 {
	nodes := sc.nodes
	h := heap(sc.heap[:0])
	for i := range nodes {
		if sc.ended() {
			return out
		}
		x := &nodes[i]
		x.prev, x.next, x.code = int32(i-1), int32(i+1), None
		if i+1 < len(nodes) {
			if x.code = m.pairs.code(x.id, nodes[i+1].id); x.code != None {
				h = append(h, uint64(x.code)<<32|uint64(i))
			}
		}
	}
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
	for len(h) > 0 {
		if sc.ended() {
			return out
		}
		top := h.pop()
		at := int32(uint32(top))
		x := &nodes[at]
		if x.code == None || x.code != uint32(top>>32) {
			continue // the pair is no more
		}
		y := &nodes[x.next]
		x.id, x.next = m.sym.product(x.code, x.id, y.id), y.next
		x.code, y.code = None, None
		if int(x.next) < len(nodes) {
			nodes[x.next].prev = at
			if x.code = m.pairs.code(x.id, nodes[x.next].id); x.code != None {
				h.push(uint64(x.code)<<32 | uint64(at))
			}
		}
		if x.prev >= 0 {
			p := &nodes[x.prev]
			if p.code = m.pairs.code(p.id, x.id); p.code != None {
				h.push(uint64(p.code)<<32 | uint64(x.prev))
			}
		}
	}
	sc.heap = h[:0]
	for i := 0; i < len(nodes); i = int(nodes[i].next) {
		out = append(out, m.sym.id(nodes[i].id))
	}
	return out
}
