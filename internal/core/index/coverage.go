package index

import (
	"sync/atomic"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// layer says where a copy lies and how it came to be there. Copies that an
// engine announces in chunks larger than its blocks are kept apart from those
// it announces block by block, so that removing one leaves the other.
type layer uint8

const (
	layerChunk    layer = 4 // added to the tier
	layerExpected layer = 8
	// From layerWindow on, two layers for each window of a hybrid model: what is
	// held, and what will be when an expected prompt has been computed.
	layerWindow layer = 16
)

// announced reports whether the layer counts blocks of the trie that the engine
// announced; tier is meaningful for these only.
func (l layer) announced() bool { return l < layerExpected }

// window reports whether the layer shows what a window holds.
func (l layer) window() bool { return l >= layerWindow && l&1 == 0 }

func (l layer) tier() event.Tier { return event.Tier(l & 3) }

// group is one stretch [start, end) of a run and those who hold all of it on
// one layer. start is at least one below end. The stretches of one member on
// one layer neither overlap nor touch.
type group struct {
	start, end uint32 // end may move while published: see stretchTo
	layer      layer
	members    set
}

func (g *group) endNow() uint32 { return atomic.LoadUint32(&g.end) }

// stretchTo moves the end of a published group: the one change that is made in
// place, because engines append and evict at the end of what they hold. The
// group must have a single holder with nothing else in the way. Growing follows
// the publication of the keys; a reader that sees the old end when it shrinks
// reports what was true when it started.
func (g *group) stretchTo(end uint32) { atomic.StoreUint32(&g.end, end) }

func (g *group) of(m pod.Member, l layer) bool { return g.layer == l && g.members.has(m) }

// coverage is an immutable list of groups in order of start, apart from
// stretchTo. A run that nobody holds has none (nil).
type coverage struct {
	groups []group
	first  [1]group // most runs have one group: list and group are one object
}

func newCoverage(n int) *coverage {
	c := &coverage{}
	if n <= len(c.first) {
		c.groups = c.first[:0]
	} else {
		c.groups = make([]group, 0, n)
	}
	return c
}

func (r *run) groups() []group {
	if c := r.cover.Load(); c != nil {
		return c.groups
	}
	return nil
}

// publish makes c what readers see. The shard is locked.
func (r *run) publish(c *coverage) {
	if c != nil && len(c.groups) == 0 {
		c = nil
	}
	r.cover.Store(c)
}

// add inserts [a, b) of l for m, joining a group of the same stretch.
func (c *coverage) add(m pod.Member, l layer, a, b uint32) {
	for i := range c.groups {
		if g := &c.groups[i]; g.start == a && g.end == b && g.layer == l {
			g.members = g.members.with(m)
			return
		}
	}
	c.groups = append(c.groups, group{a, b, l, just(m)})
	for i := len(c.groups) - 1; i > 0 && c.groups[i].start < c.groups[i-1].start; i-- {
		c.groups[i], c.groups[i-1] = c.groups[i-1], c.groups[i]
	}
}

// has reports whether there is a group of just this stretch, which a member that
// comes to hold the same joins: a trunk of the whole fleet ends as one group.
func (c *coverage) has(l layer, a, b uint32) bool {
	for i := range c.groups {
		if g := &c.groups[i]; g.start == a && g.end == b && g.layer == l {
			return true
		}
	}
	return false
}

// hold adds [a, b) of l for m. When part of it was held before, it returns the
// coverage as it was, else nil. The shard is locked and the keys are published.
func (r *run) hold(m pod.Member, l layer, a, b uint32) (before *coverage) {
	r.step(stageCover, b)
	c := r.cover.Load()
	if c == nil {
		c = newCoverage(1)
		c.groups = append(c.groups, group{a, b, l, just(m)})
		r.publish(c)
		return nil
	}
	var tail *group // m's stretch that ends at a
	touching := 0
	for i := range c.groups {
		g := &c.groups[i]
		if g.start > b || g.end < a || !g.of(m, l) {
			continue
		}
		if g.start <= a && g.end >= b {
			return c // nothing new
		}
		touching++
		if g.end == a {
			tail = g
		}
		if g.start < b && g.end > a {
			before = c
		}
	}
	if touching == 1 && tail != nil && tail.members.isJust(m) && !c.has(l, tail.start, b) {
		tail.stretchTo(b)
		return nil
	}
	n := newCoverage(len(c.groups) + 1)
	for _, g := range c.groups {
		if touching > 0 && g.start <= b && g.end >= a && g.of(m, l) {
			a, b = min(a, g.start), max(b, g.end)
			rest, some := g.members.without(m)
			if !some {
				continue
			}
			g.members = rest
		}
		n.groups = append(n.groups, g)
	}
	n.add(m, l, a, b)
	r.publish(n)
	return before
}

// release takes [a, b) of l from m. The shard is locked; the caller reaps.
func (r *run) release(m pod.Member, l layer, a, b uint32) {
	r.step(stageRelease, a)
	c := r.cover.Load()
	if c == nil {
		return
	}
	for i := range c.groups {
		g := &c.groups[i]
		if g.start < a && g.end == b && g.layer == l && g.members.isJust(m) {
			g.stretchTo(a)
			return
		}
	}
	n := newCoverage(len(c.groups) + 1)
	left, right := a, b // what stays of the stretches cut at a and at b
	for _, g := range c.groups {
		if g.start < b && g.end > a && g.of(m, l) {
			left, right = min(left, g.start), max(right, g.end)
			rest, some := g.members.without(m)
			if !some {
				continue
			}
			g.members = rest
		}
		n.groups = append(n.groups, g)
	}
	if left < a {
		n.add(m, l, left, a)
	}
	if right > b {
		n.add(m, l, b, right)
	}
	r.publish(n)
}

// forget takes all layers for which drop says so from m.
func (r *run) forget(m pod.Member, drop func(layer) bool) {
	c := r.cover.Load()
	if c == nil {
		return
	}
	n := newCoverage(len(c.groups))
	for _, g := range c.groups {
		if g.members.has(m) && drop(g.layer) {
			rest, some := g.members.without(m)
			if !some {
				continue
			}
			g.members = rest
		}
		n.groups = append(n.groups, g)
	}
	r.publish(n)
}

// holds reports whether m held the block at off on l.
func (c *coverage) holds(m pod.Member, l layer, off uint32) bool {
	for i := range c.groups {
		if g := &c.groups[i]; g.start <= off && off < g.endNow() && g.of(m, l) {
			return true
		}
	}
	return false
}

// end is the first offset from which on nobody holds anything.
func (r *run) end() (end uint32) {
	for i, gs := 0, r.groups(); i < len(gs); i++ {
		end = max(end, gs[i].end)
	}
	return end
}
