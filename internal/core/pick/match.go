package pick

import (
	"slices"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/view"
)

// Match is what a pod holds of the prompt, in blocks of Size tokens from the
// first on; of several prompts the sum. A pod of several data-parallel ranks counts with the one that holds
// most: each rank has a cache of its own.
type Match struct {
	Rank   int32 // -1 = nothing matched
	Member pod.Member
	// Approximate marks a model of which the engine may find less, and Beyond counts
	// blocks behind Depth that are held in vain: see index.Match.
	Approximate bool
	Beyond      int32
	Size        int32
	Depth       int32 // announced by the engine, or expected from our own placements
	// Announced leaves the expected ones out; Fastest counts its blocks by the
	// fastest tier that has a copy.
	Announced int32
	Fastest   [event.NumTiers]int32
}

// Expected counts the blocks that are ours in flight and not announced yet. They
// lie on the GPU, where they are being computed.
func (m *Match) Expected() int { return int(m.Depth - m.Announced) }

// held counts the tokens of the matched blocks.
func (m *Match) held() int { return int(m.Depth) * int(m.Size) }

// reusable is the number of tokens an engine will take from its cache: whole
// blocks, and never the whole prompt, since the last token must be computed to
// get its output. vLLM 0.32.0 and SGLang 0.5.23 report exactly this as
// cached_tokens; at page size 1 it leaves one token to compute.
func (m *Match) reusable(prompt int) int {
	if m.Size <= 0 || prompt <= 0 {
		return 0
	}
	size := int(m.Size)
	return min(int(m.Depth), (prompt-1)/size) * size
}

// match looks the prompt up and finds each pod's deepest rank. Depths are compared
// in tokens: block sizes may differ within a fleet.
func (c *Card) match(v *view.View, q *Query) {
	c.deepest = slices.Grow(c.deepest[:0], len(c.Rows))[:len(c.Rows)]
	clear(c.deepest)
	c.basis.largest = v.Index.LargestBlock()
	if !c.Exact {
		if c.guesses(q) {
			v.Affinity.Lookup(q.Bytes, v.Pods, &c.near)
		}
		return
	}
	if len(q.Further) > 0 {
		c.matches = c.sums.lookup(v, q, &c.found)
	} else {
		v.Index.Lookup(&q.Prompt, &c.found)
		c.matches = c.found.Matches
	}
	for i := range c.matches {
		at := v.Pods.Place(c.matches[i].Member)
		if at < 0 {
			continue // the pod left the fleet; its blocks are being purged
		}
		if before := c.deepest[at]; before > 0 {
			p := v.Pods.Pods[at]
			var a, b Match
			a.take(&c.matches[i], p)
			b.take(&c.matches[before-1], p)
			if !deeper(&a, &b, c.Tokens) {
				continue
			}
		}
		c.deepest[at] = int32(i) + 1
	}
}

// take sets m, in place, to what was found on a rank of p.
func (m *Match) take(f *index.Match, p *pod.Pod) {
	m.Member, m.Approximate, m.Beyond = f.Member, f.Approximate, f.Beyond
	m.Size, m.Depth, m.Announced, m.Fastest = f.Size, f.Depth, f.Announced, f.Fastest
	if m.Rank = 0; len(p.Members) > 1 {
		m.Rank = int32(slices.Index(p.Members, f.Member))
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
