package route

import "container/list"

// history is what a router without events believes a pod to hold: the blocks it sent
// there, the longest unused dropped first.
type history struct {
	capacity int
	order    *list.List
	at       map[uint32]*list.Element
}

func newHistory(capacity int) *history {
	return &history{capacity: capacity, order: list.New(), at: map[uint32]*list.Element{}}
}

func (h *history) len() int { return len(h.at) }

func (h *history) match(blocks []uint32) int {
	k := 0
	for k < len(blocks) && h.at[blocks[k]] != nil {
		k++
	}
	return k
}

// touch renews a prompt's blocks, tail first, so that its beginning is the newest.
func (h *history) touch(blocks []uint32) {
	for i := len(blocks) - 1; i >= 0; i-- {
		b := blocks[i]
		if e := h.at[b]; e != nil {
			h.order.MoveToBack(e)
		} else {
			h.at[b] = h.order.PushBack(b)
		}
	}
	for len(h.at) > h.capacity {
		e := h.order.Front()
		delete(h.at, e.Value.(uint32))
		h.order.Remove(e)
	}
}
