package serve

import (
	"sync/atomic"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/view"
)

// tally counts what one pod got since it joined, for /v1/state. The metrics page
// has the picks, and of the rest the fleet's sums; a series of every pod and kind would cost there for ever
// what is looked at during incidents. Safe for concurrent use.
type tally struct {
	epoch                       uint64
	picks, queried, cached      atomic.Uint64
	engineQueried, engineCached atomic.Uint64
	depths                      [view.DepthBuckets]atomic.Uint64
}

// tallies has a row per pod ID. A pod that was removed and added again has a
// higher epoch and starts at zero.
type tallies struct {
	rows [pod.MaxMembers]atomic.Pointer[tally]
}

func (t *tallies) of(p *pod.Pod) *tally {
	for {
		old := t.rows[p.ID].Load()
		if old != nil && old.epoch == p.Epoch {
			return old
		}
		fresh := &tally{epoch: p.Epoch}
		if old != nil && old.epoch > p.Epoch {
			return fresh // of a pod that left: nobody reads it
		}
		if t.rows[p.ID].CompareAndSwap(old, fresh) {
			return fresh
		}
	}
}

// picked counts a decision for its winner.
func (t *tallies) picked(c *pick.Card) {
	w := c.WinnerRow()
	if w == nil {
		return
	}
	row := t.of(w.Pod)
	row.picks.Add(1)
	if c.Exact {
		row.queried.Add(uint64(c.Tokens))
		row.cached.Add(uint64(w.Cached))
		row.depths[view.DepthBucket(w.Cached, c.Tokens)].Add(1)
	}
}

// spent counts what the engine reports of a prompt's hits.
func (t *tallies) spent(p *pod.Pod, u usage) {
	if u.Cached < 0 {
		return
	}
	row := t.of(p)
	row.engineQueried.Add(uint64(u.Prompt))
	row.engineCached.Add(uint64(u.Cached))
}

func (t *tally) read() view.PodServed {
	s := view.PodServed{
		Picks: t.picks.Load(), Queried: t.queried.Load(), Cached: t.cached.Load(),
		EngineQueried: t.engineQueried.Load(), EngineCached: t.engineCached.Load(),
	}
	for i := range t.depths {
		s.Depths[i] = t.depths[i].Load()
	}
	return s
}
