package serve

import (
	"fmt"

	"github.com/eppctl/eppctl/internal/core/parity"
	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/view"
)

// routed begins to compare a request that is placed by native ids with what its
// engine will announce; nil = this one is not compared, as none of several prompts is: what
// is held of each is not told apart.
func (c *parityCheck) routed(card *pick.Card, q *pick.Query) *parity.Watched {
	if c == nil || q.Origin.Provider != byNative || len(q.Further) > 0 {
		return nil
	}
	row := card.WinnerRow()
	rank := 0
	if len(row.Pod.Members) != 1 {
		rank = row.Rank // the engine's choice when it is negative
	}
	if rank < 0 || rank >= len(row.Pod.Members) {
		return nil
	}
	m := row.Pod.Members[rank]
	size := c.fleet.Index.BlockSize(m)
	if row.Match.Depth > 0 && int(row.Match.Size) != size {
		return nil
	}
	return c.watch.Place(&parity.Routed{
		Model: q.Base, Member: m, Tokens: q.Prompt.Known(), Size: size, Held: int(row.Match.Depth), Known: int(row.Match.Announced), Lost: c.fleet.Sync.Get(m).Lost,
	}, q.Now)
}

// sweep takes in the verdicts that are due.
func (c *parityCheck) sweep() {
	found := c.watch.Sweep(c.now(), func(m pod.Member, lost uint64) bool {
		s := c.fleet.Sync.Get(m)
		return s.State == view.Live && s.Lost == lost
	})
	if len(found) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range found {
		c.met.announced.WithLabelValues(modelLabel(&Model{Name: j.Model}), j.Verdict.String()).Inc()
		if p := c.models[j.Model]; p != nil {
			before := p.tally.Parted()
			p.tally.Add(j)
			if now := p.tally.Parted(); now != before && now != nil {
				p.parted = c.nameOf(j.Member)
			}
			c.show(j.Model, p)
		}
	}
}

// nameOf is the pod of a member, "an engine" when it is gone.
func (c *parityCheck) nameOf(m pod.Member) string {
	if p, _ := c.fleet.Pods.Snapshot().Owner(m); p != nil {
		return p.Spec.Name
	}
	return "an engine"
}

// tellParted says where the ids of a request part from those that its engine announced,
// by positions alone: ids of clients' prompts are shown to nobody.
func (p *modelParity) tellParted(x *view.Parity) {
	j := p.tally.Parted()
	if j == nil {
		x.Detail = "engines announced other token ids than requests were routed by"
		return
	}
	x.DiffersBlock = &j.Block
	where := fmt.Sprintf("in block %d", j.Block)
	if j.At >= 0 {
		x.DiffersAt = &j.At
		where = fmt.Sprintf("from id %d on (block %d)", j.At, j.Block)
	}
	x.Detail = p.parted + " announced other token ids than a request was routed by, " + where
	if j.Verdict == parity.Unseen {
		x.Detail = p.parted + " announced nothing like a request that was routed to it; what begins most like it has other token ids " + where
	}
}
