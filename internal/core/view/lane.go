package view

import (
	"cmp"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// lane is the queue of one data-parallel rank: a pod of n ranks is n servers, each
// of which computes its own requests in their order. A request whose rank the
// engine chooses counts on the idlest lane, which is how engines choose too (vLLM
// weighs its ranks by their waiting and running requests).
//
// finish is the virtual finish time: when the rank would have answered everything
// placed so far. work is the sum of the prefill times of the waiting requests; sums
// are whole nanoseconds, so that no order of arrival changes a result and the
// counters return to exactly zero.
type lane struct {
	inFlight int
	waiting  int
	finish   int64
	work     int64
	meter    meter
}

// queue is how long a request would wait there.
func (l *lane) queue(now int64) time.Duration { return time.Duration(max(0, l.finish-now)) }

// Ranks appends the accounts of a pod's ranks, in their order.
func (l *Ledger) Ranks(p *pod.Pod, now int64, dst []RankLoad) []RankLoad {
	a := l.rows[p.ID].Load()
	if a == nil || a.epoch != p.Epoch {
		a = newAccount(p)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.lanes {
		on := &a.lanes[i]
		dst = append(dst, RankLoad{InFlight: on.inFlight, Waiting: on.waiting, QueueMs: float64(on.queue(now)) / float64(time.Millisecond)})
	}
	return dst
}

// compareIdle orders lanes by what a request would meet there.
func compareIdle(a, b *lane, now int64) int {
	return cmp.Or(cmp.Compare(a.queue(now), b.queue(now)), cmp.Compare(a.waiting, b.waiting), cmp.Compare(a.inFlight, b.inFlight))
}

// lane returns the rank's lane, or the number of the idlest, the first of equals,
// where that is no rank of the pod.
func (a *account) lane(rank int, now int64) int {
	if rank >= 0 && rank < len(a.lanes) {
		return rank
	}
	best := 0
	for i := range a.lanes {
		if compareIdle(&a.lanes[i], &a.lanes[best], now) < 0 {
			best = i
		}
	}
	return best
}

// Idlest appends the ranks of a pod at which a request would begin soonest: one, or
// those that are equal.
func (l *Ledger) Idlest(p *pod.Pod, now int64, dst []int) []int {
	a := l.rows[p.ID].Load()
	if a == nil || a.epoch != p.Epoch {
		a = newAccount(p)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	best := &a.lanes[a.lane(-1, now)]
	for i := range a.lanes {
		if compareIdle(&a.lanes[i], best, now) == 0 {
			dst = append(dst, i)
		}
	}
	return dst
}
