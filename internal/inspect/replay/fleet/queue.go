package fleet

import "container/heap"

// queue is the future: what happens when. Of two things at one time, the one that
// was entered first comes first.
type queue struct {
	list    eventHeap
	entered int
	now     int64 // ns
}

type entry struct {
	at int64
	n  int
	do func()
}

func (q *queue) at(t int64, do func()) {
	q.entered++
	heap.Push(&q.list, entry{max(t, q.now), q.entered, do})
}

func (q *queue) after(d int64, do func()) { q.at(q.now+d, do) }

// next does what comes next; false when there is nothing.
func (q *queue) next() bool {
	if len(q.list) == 0 {
		return false
	}
	e := heap.Pop(&q.list).(entry)
	q.now = e.at
	e.do()
	return true
}

type eventHeap []entry

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].n < h[j].n
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(entry)) }
func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = entry{}
	*h = old[:len(old)-1]
	return e
}
