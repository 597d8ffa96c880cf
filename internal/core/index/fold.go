package index

import (
	"math/bits"
	"slices"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// fold intersects the members that held everything so far with the coverage of
// the next run of the path. Members matter only at the ends of runs, so the
// price of a lookup hardly grows with the fleet.
//
// Most members that hold a prefix hold all of it on the GPU: those are bits in
// plain and get a match when that ends. A row to measure the rest by is for those
// that hold something else behind.
type fold struct {
	out   *Result
	from  int // first match of this block size
	size  int
	words int
	base  int    // blocks matched before the present run
	plain bitset // every block so far announced on the GPU
	mixed bitset // every block so far held somehow; have a row
	again bool   // some member had a match at another block size
	// hybrids is set when some member has several cache groups: the trail is
	// kept, and most is the number of blocks an engine can reuse of the prompt.
	hybrids *Index
	most    int
}

// run takes in a run of which the first n blocks match, n > 0.
func (f *fold) run(groups []group, n uint32) {
	var b begun
	f.begin(groups, n, &b)
	var mixed uint64
	for i := range f.words {
		stopped := b.part[i]
		if stopped != 0 {
			f.leave(i, stopped)
		}
		leaving := f.plain[i] &^ b.whole[i] &^ stopped
		if leaving != 0 {
			f.enter(i, leaving, b.here[i])
		}
		f.mixed[i] |= leaving & b.here[i] // the others have nothing of this run
		f.plain[i] &= b.whole[i]
		mixed |= f.mixed[i]
	}
	if mixed != 0 {
		f.sweep(groups, n)
	}
	if f.hybrids != nil {
		f.out.trail = append(f.out.trail, step{groups, n})
	}
	f.base += int(n)
}

// begun is who holds something from the first block of a run on.
type begun struct {
	here  bitset // on any tier
	whole bitset // all of it on the GPU
	part  bitset // of plain: a part of it on the GPU, and nothing behind that
}

// begin finds who has what of a run, and plain when it is the first one.
func (f *fold) begin(groups []group, n uint32, b *begun) {
	for i := range groups {
		g := &groups[i]
		if g.start > 0 {
			break
		}
		if g.layer >= layerWindow {
			continue
		}
		end := uint32(0)
		if g.layer == layer(event.TierGPU) {
			end = g.endNow()
		}
		switch {
		case end == 0:
			b.here.or(g.members, f.words)
		case end < n:
			b.stop(g.members, f.words, end, f.out.stops)
		default:
			b.whole.or(g.members, f.words)
		}
	}
	for i := range f.words {
		b.here[i] |= b.whole[i] | b.part[i]
	}
	if f.base == 0 {
		f.plain = b.here
	}
	var some uint64
	for i := range f.words {
		b.part[i] &= f.plain[i]
		some |= b.part[i]
	}
	if some != 0 {
		f.reachOn(groups, n, &b.part)
	}
}

// stop takes in members whose stretch on the GPU ends within the run.
func (b *begun) stop(s set, words int, end uint32, stops []uint32) {
	if s.first == nil {
		if int(s.one/64) < words {
			b.part.add(s.one)
			stops[s.one] = end
		}
		return
	}
	for i, w := range s.words()[:min(int(s.n), words)] {
		b.part[i] |= w
		for stops := stops[i*64:][:64]; w != 0; w &= w - 1 {
			stops[bits.TrailingZeros64(w)&63] = end
		}
	}
}

// reachOn takes the members out of part that hold something behind where their
// first stretch on the GPU ends: what they have needs to be measured.
func (f *fold) reachOn(groups []group, n uint32, part *bitset) {
	for i := range groups {
		g := &groups[i]
		if g.start >= n {
			break
		}
		if g.layer >= layerWindow || g.start == 0 && g.layer == layer(event.TierGPU) {
			continue
		}
		end := min(g.endNow(), n)
		if g.members.first == nil {
			if m := g.members.one; int(m/64) < f.words && end > f.out.stops[m] {
				part[m/64] &^= 1 << (m % 64)
			}
			continue
		}
		for i, w := range g.members.words()[:min(int(g.members.n), f.words)] {
			stops := f.out.stops[i*64:][:64]
			for w &= part[i]; w != 0; w &= w - 1 {
				if end > stops[bits.TrailingZeros64(w)&63] {
					part[i] &^= w & -w
				}
			}
		}
	}
}

// leave gives members of the i-th word, which held all on the GPU and stop within
// the run, their matches. A trunk of the whole fleet is left by nearly all of it at
// once, so this is what a large fleet costs: one match per member that has one.
func (f *fold) leave(i int, members uint64) {
	out := f.out
	n := f.grow(i, members)
	matches, stops := out.Matches[n:], out.stops[i*64:][:64]
	for w := members; w != 0; w &= w - 1 {
		at := bits.TrailingZeros64(w) & 63
		m := pod.Member(i*64 + at)
		out.slot[m] = uint16(n)
		n++
		matches[0].plain(m, f.size, f.base+int(stops[at]))
		matches = matches[1:]
	}
}

// grow makes room for the matches of members of the i-th word and returns where it
// begins.
func (f *fold) grow(i int, members uint64) (n int) {
	out, k := f.out, bits.OnesCount64(members)
	n = len(out.Matches)
	out.Matches = slices.Grow(out.Matches, k)[:n+k]
	out.rows = slices.Grow(out.rows, k)[:n+k]
	if f.from > 0 {
		for j, w := n, members; w != 0; j, w = j+1, w&(w-1) {
			out.rows[j].earlier = f.earlier(pod.Member(i*64 + bits.TrailingZeros64(w)))
		}
	}
	return n
}

// enter gives members of the i-th word, which until here held all on the GPU,
// their matches; those in mixed go on and need a row.
func (f *fold) enter(i int, members, mixed uint64) {
	out := f.out
	n := f.grow(i, members)
	matches := out.Matches[n:]
	for w := members; w != 0; w &= w - 1 {
		m := pod.Member(i*64 + bits.TrailingZeros64(w))
		out.slot[m] = uint16(n)
		n++
		matches[0].plain(m, f.size, f.base)
		matches = matches[1:]
	}
	for w := members & mixed; w != 0; w &= w - 1 {
		f.row(pod.Member(i*64 + bits.TrailingZeros64(w))).announced = true
	}
}

// earlier finds the match of a member at a block size looked up before, or -1.
func (f *fold) earlier(m pod.Member) int32 {
	if i, ok := f.out.find(m); ok && i < f.from {
		f.again = true
		return int32(i)
	}
	return -1
}

// sweep measures the members that do not hold the run as one stretch on the GPU.
func (f *fold) sweep(groups []group, n uint32) {
	for i := range f.words {
		for w := f.mixed[i]; w != 0; w &= w - 1 {
			f.row(pod.Member(i*64 + bits.TrailingZeros64(w))).begin()
		}
	}
	for i := range groups {
		g := &groups[i]
		if g.start >= n {
			break
		}
		if g.layer >= layerWindow {
			continue
		}
		end := min(g.endNow(), n)
		if g.members.first == nil {
			if m := g.members.one; int(m/64) < f.words && f.mixed.has(m) {
				f.row(m).add(g.layer, g.start, end)
			}
			continue
		}
		for i, w := range g.members.words()[:min(int(g.members.n), f.words)] {
			for w &= f.mixed[i]; w != 0; w &= w - 1 {
				f.row(pod.Member(i*64+bits.TrailingZeros64(w))).add(g.layer, g.start, end)
			}
		}
	}
	for i := range f.words {
		for w := f.mixed[i]; w != 0; w &= w - 1 {
			m := pod.Member(i*64 + bits.TrailingZeros64(w))
			if !f.settle(m, n) {
				f.mixed[i] &^= w & -w
			}
		}
	}
}

func (f *fold) row(m pod.Member) *row { return &f.out.rows[f.out.slot[m]] }

// settle books what the member holds of the run; false when that is not all.
func (f *fold) settle(m pod.Member, n uint32) bool {
	x, w := &f.out.Matches[f.out.slot[m]], f.row(m)
	x.Depth += int32(w.any)
	if w.announced {
		x.Announced += int32(w.ext)
		faster := uint32(0)
		for t, c := range w.count {
			x.Fastest[t] += int32(c - faster)
			faster = c
		}
		w.announced = w.ext == n
	}
	return w.any == n
}

// done reports whether nobody is left.
func (f *fold) done() bool {
	var any uint64
	for i := range f.words {
		any |= f.plain[i] | f.mixed[i]
	}
	return any == 0
}

// finish gives a row to those who held all of the path on the GPU, and cuts
// what the windows of hybrid models do not allow.
func (f *fold) finish() {
	for i := range f.words {
		if f.plain[i] != 0 {
			f.enter(i, f.plain[i], 0)
		}
	}
	if f.hybrids != nil {
		f.shorten()
	}
	if f.again {
		f.merge()
	}
}

// merge leaves one match for a member that has one at two block sizes, which an
// expectation from before the size was known can cause: the longer in tokens.
func (f *fold) merge() {
	out := f.out
	for i := len(out.Matches) - 1; i >= f.from; i-- {
		e := out.rows[i].earlier
		if e < 0 {
			continue
		}
		if x, y := &out.Matches[i], &out.Matches[e]; x.Depth*x.Size > y.Depth*y.Size {
			*y = *x
		}
		out.slot[out.Matches[e].Member] = uint16(e)
		out.remove(i)
	}
}
