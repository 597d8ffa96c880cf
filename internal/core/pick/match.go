package pick

import (
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/view"
)

// Match is what a pod holds of the prompt, in blocks of Size tokens from the
// first on. A pod of several data-parallel ranks counts with the one that holds
// most: each rank has a cache of its own.
type Match struct {
	Rank   int // -1 = nothing matched
	Member pod.Member
	Size   int
	Depth  int // announced by the engine, or expected from our own placements
	// Announced leaves the expected ones out; Fastest counts its blocks by the
	// fastest tier that has a copy.
	Announced int
	Fastest   [event.NumTiers]int
	// Beyond counts blocks behind Depth that are held in vain, and Approximate
	// marks a model of which the engine may find less: see index.Match.
	Beyond      int
	Approximate bool
}

// Expected counts the blocks that are ours in flight and not announced yet. They
// lie on the GPU, where they are being computed.
func (m *Match) Expected() int { return m.Depth - m.Announced }

// reusable is the number of tokens an engine will take from its cache: whole
// blocks, and never the whole prompt, since the last token must be computed to
// get its output. vLLM 0.32.0 and SGLang 0.5.23 report exactly this as
// cached_tokens; at page size 1 it leaves one token to compute.
func (m *Match) reusable(prompt int) int {
	if m.Size <= 0 || prompt <= 0 {
		return 0
	}
	return min(m.Depth, (prompt-1)/m.Size) * m.Size
}

// match looks the prompt up and hands each pod its deepest rank's match. Depths
// are compared in tokens: block sizes may differ within a fleet.
func (c *Card) match(v *view.View, q *Query) {
	c.rowOf = c.rowOf[:0]
	for i := range c.Rows {
		for len(c.rowOf) <= int(c.Rows[i].Pod.ID) {
			c.rowOf = append(c.rowOf, -1)
		}
		c.rowOf[c.Rows[i].Pod.ID] = int32(i)
	}
	if !c.Exact {
		return
	}
	v.Index.Lookup(&q.Prompt, &c.found)
	for i := range c.found.Matches {
		f := &c.found.Matches[i]
		p, rank := v.Pods.Owner(f.Member)
		if p == nil {
			continue // the pod left the fleet; its blocks are being purged
		}
		m := Match{Rank: rank, Member: f.Member, Size: f.Size, Depth: f.Depth, Announced: f.Announced, Fastest: f.Fastest,
			Beyond: int(f.Beyond), Approximate: f.Approximate}
		if r := &c.Rows[c.rowOf[p.ID]]; deeper(&m, &r.Match, c.Tokens) {
			r.Match = m
		}
	}
}

// deeper is a total order on the ranks of one pod, so that the order in which
// the index reports them does not show.
func deeper(a, b *Match, prompt int) bool {
	if b.Rank < 0 {
		return true
	}
	if x, y := a.reusable(prompt), b.reusable(prompt); x != y {
		return x > y
	}
	if a.Announced != b.Announced {
		return a.Announced > b.Announced
	}
	return a.Rank < b.Rank
}
