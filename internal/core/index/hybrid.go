package index

import (
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// hybrid is what readers must know of a member with several cache groups. It is
// immutable.
type hybrid struct {
	size        int
	rules       []rule
	approximate bool // there are groups whose rule is not known
}

// rule says that a hit needs the last keep of its blocks, or all when it has
// fewer, on a window's layer.
type rule struct {
	layer layer
	keep  uint32
}

// describe publishes what was learned of a member's groups. m.mu is held.
func (ix *Index) describe(m *member) {
	var h *hybrid
	if len(m.groups.others) > 0 {
		h = &hybrid{size: int(m.size.Load())}
	}
	for i := range m.groups.others {
		k := &m.groups.others[i]
		keep, ok := k.keeps(h.size, m.groups.windows[i].sparse)
		if k.Exact = ok && i < maxWindows; k.Exact {
			h.rules = append(h.rules, rule{windowLayer(i), keep})
			continue
		}
		h.approximate = true
		if h.size > 0 && len(m.groups.windows[i].held) > 0 {
			ix.dropWindow(m, i)
		}
	}
	old := m.hybrid.Swap(h)
	if (old == nil) != (h == nil) {
		ix.hybrids.Add(map[bool]int32{true: 1, false: -1}[h != nil])
	}
}

// applyWindow applies an event of the i-th group that is not the trie's.
func (ix *Index) applyWindow(m *member, i int, e *event.Event, second uint32) (o Outcome) {
	size := int(m.size.Load())
	if i < 0 || i >= maxWindows {
		return Outcome{Verdict: OtherGroup}
	}
	k := &m.groups.others[i]
	if size == 0 {
		size = k.BlockSize // windows come before the group that tells
	}
	if _, ok := k.keeps(size, m.groups.windows[i].sparse); !ok {
		return Outcome{Verdict: OtherGroup}
	}
	if e.Kind == event.Removed {
		o.Unknown = ix.removeWindow(m, i, e.Tier, e.Hashes)
	} else if ix.storeWindow(m, i, e, second) > 0 {
		o.Verdict = Full
	}
	return o
}

// dropWindow forgets what a group holds, since it turned out to be of a kind
// that is not known.
func (ix *Index) dropWindow(m *member, i int) {
	mine := func(l layer) bool { return l == windowLayer(i) }
	ix.forget(m, m.rev.runs(), mine)
	m.others.clear(mine)
	m.groups.windows[i] = window{}
}

// step is a run of a looked-up path: its coverage at the time, and how many of
// its blocks match.
type step struct {
	groups []group
	n      uint32
}

// shorten cuts the matches of hybrid members to what their windows allow.
func (f *fold) shorten() {
	out := f.out
	for i := len(out.Matches) - 1; i >= f.from; i-- {
		x := &out.Matches[i]
		m := f.hybrids.member(x.Member)
		if m == nil {
			continue
		}
		h := m.hybrid.Load()
		if h == nil || h.size != f.size {
			continue
		}
		x.Approximate = h.approximate
		if len(h.rules) == 0 {
			continue
		}
		held := x.Depth
		announced := f.usable(h, x.Member, x.Announced, false)
		x.Depth = max(announced, f.usable(h, x.Member, x.Depth, true))
		x.Beyond = held - x.Depth
		if announced < x.Announced {
			f.recount(x, announced)
		}
		if x.Depth == 0 {
			out.remove(i)
		}
	}
	clear(out.trail) // or the result would keep versions alive
	out.trail = out.trail[:0]
}

// usable is the longest hit of at most so many blocks that every rule and the
// engine's computing of the last token allow.
// Expected windows count when asked for.
func (f *fold) usable(h *hybrid, m pod.Member, blocks int32, expected bool) int32 {
	n := uint32(min(int(blocks), f.most))
	for before := n + 1; n != before; {
		before = n
		for _, r := range h.rules {
			n = r.longest(f.out.trail, m, n, expected)
		}
	}
	return int32(n)
}

// longest is the longest hit of at most n blocks that the rule allows. Its
// coverage is joined over the runs of the path; groups come in order of start.
func (r rule) longest(trail []step, m pod.Member, n uint32, expected bool) (best uint32) {
	var a, b, base uint32 // the covered stretch at hand is [a, b)
	for _, s := range trail {
		for i := range s.groups {
			g := &s.groups[i]
			if g.start >= s.n {
				break
			}
			if g.layer != r.layer && !(expected && g.layer == r.layer.ahead()) || !g.members.has(m) {
				continue
			}
			from, to := base+g.start, base+min(g.endNow(), s.n)
			if from > b {
				a = from
			}
			b = max(b, to)
			if l := min(b, n); l > a && (a == 0 || l-a >= r.keep) {
				best = max(best, l)
			}
		}
		if base += s.n; base >= n {
			break
		}
	}
	return best
}

// recount measures the tiers of the first n blocks.
func (f *fold) recount(x *Match, n int32) {
	onGPU := x.Fastest[event.TierGPU] == x.Announced
	x.Announced = n
	x.Fastest = [event.NumTiers]int32{}
	if onGPU {
		x.Fastest[event.TierGPU] = n
		return
	}
	for _, s := range f.out.trail {
		w, here := row{}, min(s.n, uint32(n))
		for i := range s.groups {
			g := &s.groups[i]
			if end := min(g.endNow(), here); g.layer < layerExpected && g.start < end && g.members.has(x.Member) {
				w.add(g.layer, g.start, end)
			}
		}
		faster := uint32(0)
		for t, c := range w.count {
			x.Fastest[t] += int32(c - faster)
			faster = c
		}
		if n -= int32(here); n == 0 {
			break
		}
	}
}

// remove takes the i-th match out.
func (r *Result) remove(i int) {
	last := len(r.Matches) - 1
	if i != last {
		r.Matches[i], r.rows[i] = r.Matches[last], r.rows[last]
		r.slot[r.Matches[i].Member] = uint16(i)
	}
	r.Matches, r.rows = r.Matches[:last], r.rows[:last]
}
