package view

import (
	"sync/atomic"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// caused counts the requests of one pod after whose end the engine must have
// announced a block: those whose rank was the engine's choice, then those sent to
// each rank. An event stream that stays silent meanwhile is broken, although its
// connection lives.
type caused []atomic.Uint64

func (c caused) add(rank int) {
	if rank+1 < len(c) {
		c[rank+1].Add(1)
	}
}

// Caused is how many requests have ended on one rank of a pod that must have made
// it announce a block. Those whose rank the engine chose count for each rank in
// equal parts. It only grows while the pod is the same.
func (l *Ledger) Caused(p *pod.Pod, rank int) uint64 {
	a := l.rows[p.ID].Load()
	if a == nil || a.epoch != p.Epoch || rank+1 >= len(a.caused) {
		return 0
	}
	return a.caused[rank+1].Load() + a.caused[0].Load()/uint64(len(a.caused)-1)
}
