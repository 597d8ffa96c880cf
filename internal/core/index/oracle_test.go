package index

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// mostCopies of a hash count, see docs/index.md.
const mostCopies = 4

// oracle is the slow twin of Index: it keeps, per member, what each engine hash
// stands for, the whole prefix, and answers by trying one block after the other.
type oracle struct {
	size    int
	names   map[extension]prefix
	members map[pod.Member]*owner
	live    map[int]*wish
}

// prefix numbers a whole prefix, namespace included; two are equal only if they
// are spelled alike.
type prefix int

type extension struct {
	of    prefix
	block string
}

func (o *oracle) name(x extension) prefix {
	if _, ok := o.names[x]; !ok {
		o.names[x] = prefix(len(o.names) + 1)
	}
	return o.names[x]
}

func (o *oracle) root(ns block.Namespace) prefix { return o.name(extension{0, spell(ns)}) }

func spell(ns block.Namespace) string { return fmt.Sprintf("%q/%q:", ns.LoRA, ns.Salt) }

func (o *oracle) extend(p prefix, tokens []uint32, extra uint64) prefix {
	var b []byte
	for _, t := range tokens {
		b = binary.LittleEndian.AppendUint32(b, t)
	}
	return o.name(extension{p, string(binary.LittleEndian.AppendUint64(b, extra))})
}

type owner struct {
	hashes map[uint64]*copyOf
	chunks map[uint64]*copyOf
	parked []*waiting
	engine pod.Engine
	// Of a hybrid model: whether a store told the block size, and what the other
	// cache groups hold, by group.
	sized   bool
	windows map[int]*oracleWindow
}

type oracleWindow struct {
	keep   int // blocks a hit needs
	copies map[uint64]*[event.NumTiers]int
}

func newOwner(engine pod.Engine) *owner {
	return &owner{hashes: map[uint64]*copyOf{}, chunks: map[uint64]*copyOf{}, windows: map[int]*oracleWindow{}, engine: engine}
}

// copyOf is what a hash stands for: the prefixes that end in its blocks.
type copyOf struct {
	prefixes []prefix
	space    block.Namespace
	count    [event.NumTiers]int
}

type waiting struct {
	e       event.Event
	at      int64
	removed []uint64
}

type wish struct {
	member   pod.Member
	prefixes map[prefix]bool
	windows  map[int]map[prefix]bool
}

func newOracle(size int, members map[pod.Member]pod.Engine) *oracle {
	o := &oracle{size: size, names: map[extension]prefix{}, members: map[pod.Member]*owner{}, live: map[int]*wish{}}
	for m, engine := range members {
		o.members[m] = newOwner(engine)
	}
	return o
}

func (o *oracle) purge(m pod.Member) {
	o.members[m] = newOwner(o.members[m].engine)
	for id, w := range o.live {
		if w.member == m {
			delete(o.live, id)
		}
	}
}

func (o *oracle) apply(m pod.Member, e *event.Event, now int64) Verdict {
	w := o.members[m]
	if e.Group > 0 {
		o.applyWindow(w, e)
		return Applied
	}
	switch e.Kind {
	case event.Cleared:
		for t := range event.NumTiers {
			if t != e.Tier && !(w.engine == pod.EngineSGLang && e.Medium == "") {
				continue
			}
			for _, table := range []map[uint64]*copyOf{w.hashes, w.chunks} {
				for h, c := range table {
					c.count[t] = 0
					c.tidy(table, h)
				}
			}
			w.parked = slices.DeleteFunc(w.parked, func(x *waiting) bool { return x.e.Tier == t })
			for _, x := range w.windows {
				for h, c := range x.copies {
					c[t] = 0
					x.tidy(h)
				}
			}
		}
		return Applied
	case event.Removed:
		o.remove(w, e.Tier, e.Hashes)
		return Applied
	}
	if len(e.Tokens) == 0 {
		for _, h := range e.Hashes {
			if c := w.hashes[h]; c != nil {
				c.count[e.Tier] = min(c.count[e.Tier]+1, mostCopies)
			}
		}
		return Applied
	}
	w.sized = true
	v := o.store(w, e, nil)
	if v != Applied {
		for _, h := range e.Hashes { // stored at a place that is not known
			delete(w.hashes, h)
			delete(w.chunks, h)
		}
	}
	if v == orphaned {
		keep := *e
		keep.Hashes, keep.Tokens = slices.Clone(e.Hashes), slices.Clone(e.Tokens)
		w.parked = append(w.parked, &waiting{e: keep, at: now})
		return Parked
	}
	if v == Applied {
		o.expire(now)
		o.attach(w, e.Hashes)
	}
	return v
}

func (o *oracle) applyWindow(w *owner, e *event.Event) {
	x := w.windows[e.Group]
	if x == nil && e.Kind == event.Removed {
		return
	}
	if x == nil {
		x = &oracleWindow{keep: 1 << 30, copies: map[uint64]*[event.NumTiers]int{}}
		if e.Window > 0 {
			x.keep = (e.Window - 1 + o.size - 1) / o.size
		}
		w.windows[e.Group] = x
	}
	for _, h := range e.Hashes {
		c := x.copies[h]
		switch {
		case e.Kind == event.Stored:
			if c == nil {
				c = &[event.NumTiers]int{}
				x.copies[h] = c
			}
			c[e.Tier] = min(c[e.Tier]+1, mostCopies)
		case c != nil:
			c[e.Tier] = max(0, c[e.Tier]-1)
			x.tidy(h)
		}
	}
}

func (x *oracleWindow) tidy(h uint64) {
	if *x.copies[h] == [event.NumTiers]int{} {
		delete(x.copies, h)
	}
}

// resident is the prefixes that end in a block a window holds too.
func (w *owner) resident(group int) map[prefix]bool {
	out := map[prefix]bool{}
	for h, c := range w.hashes {
		if w.windows[group].copies[h] != nil {
			out[c.prefixes[0]] = true
		}
	}
	return out
}

// usable is the longest hit of at most n blocks: each window holds the last keep
// of them.
func (o *oracle) usable(m pod.Member, prefixes []prefix, n int, expected bool) int {
	w, held := o.members[m], map[int]map[prefix]bool{}
	for g := range w.windows {
		held[g] = w.resident(g)
	}
	for _, l := range o.live {
		for g := range l.windows {
			if expected && l.member == m && held[g] != nil {
				maps.Copy(held[g], l.windows[g])
			}
		}
	}
	fits := func(n int) bool {
		for g, x := range w.windows {
			for _, s := range prefixes[max(0, n-x.keep):n] {
				if !held[g][s] {
					return false
				}
			}
		}
		return true
	}
	for n > 0 && !fits(n) {
		n--
	}
	return n
}

func (o *oracle) remove(w *owner, t event.Tier, hashes []uint64) {
	for _, h := range hashes {
		if c := w.hashes[h]; c != nil {
			c.count[t] = max(0, c.count[t]-1)
			c.tidy(w.hashes, h)
		} else if c := w.chunks[h]; c != nil {
			c.count[t] = max(0, c.count[t]-1)
			c.tidy(w.chunks, h)
		} else {
			for _, x := range slices.Backward(w.parked) {
				if x.e.Tier == t && count(x.e.Hashes, h) > count(x.removed, h) {
					x.removed = append(x.removed, h)
					break
				}
			}
		}
	}
}

func count(list []uint64, h uint64) (n int) {
	for _, x := range list {
		if x == h {
			n++
		}
	}
	return n
}

func (c *copyOf) tidy(table map[uint64]*copyOf, h uint64) {
	if c.count == [event.NumTiers]int{} {
		delete(table, h)
	}
}

// store takes a store in; late is what was parked of it, if it was.
func (o *oracle) store(w *owner, e *event.Event, late *waiting) Verdict {
	ns := block.Namespace{LoRA: e.LoRA, Salt: e.Salt}
	p := o.root(ns)
	if e.HasParent {
		c := w.hashes[e.Parent]
		if c == nil {
			c = w.chunks[e.Parent]
		}
		if c == nil {
			return orphaned
		}
		if c.space.LoRA != e.LoRA || e.HasSalt && c.space.Salt != e.Salt {
			return OtherSpace
		}
		ns, p = c.space, c.prefixes[len(c.prefixes)-1]
	}
	table, span := w.hashes, e.BlockSize/o.size
	if span > 1 {
		table = w.chunks
	}
	tokens := e.Tokens
	for i, h := range e.Hashes {
		n := &copyOf{space: ns}
		for range span {
			var x uint64
			if len(e.Extra) > 0 {
				x = e.Extra[i]
			}
			p = o.extend(p, tokens[:o.size], x)
			tokens = tokens[o.size:]
			n.prefixes = append(n.prefixes, p)
		}
		if late != nil && slices.Contains(late.removed, h) {
			continue
		}
		if old := table[h]; late != nil && old != nil && !slices.Equal(old.prefixes, n.prefixes) {
			continue // newer
		} else if old == nil || !slices.Equal(old.prefixes, n.prefixes) {
			table[h] = n
		}
		c := table[h]
		c.count[e.Tier] = min(c.count[e.Tier]+1, mostCopies)
	}
	return Applied
}

func (o *oracle) attach(w *owner, hashes []uint64) {
	for todo := slices.Clone(hashes); len(todo) > 0; todo = todo[1:] {
		for _, x := range slices.Clone(w.parked) {
			if x.e.Parent != todo[0] || !slices.Contains(w.parked, x) {
				continue
			}
			w.parked = slices.DeleteFunc(w.parked, func(y *waiting) bool { return y == x })
			if o.store(w, &x.e, x) == Applied {
				todo = append(todo, x.e.Hashes...)
			}
		}
	}
}

func (o *oracle) expire(now int64) {
	for _, w := range o.members {
		w.parked = slices.DeleteFunc(w.parked, func(x *waiting) bool { return now-x.at > 5e9 })
	}
}

func (o *oracle) prefixes(p *block.Prompt) (out []prefix) {
	s := o.root(block.Namespace{LoRA: p.LoRA, Salt: p.Salt})
	known := p.Tokens
	if p.Cut >= 0 {
		known = known[:p.Cut]
	}
	for i := range len(known) / o.size {
		s = o.extend(s, known[i*o.size:][:o.size], extraOf(p, i, o.size))
		out = append(out, s)
	}
	return out
}

// extraOf is what an engine says of block i besides its tokens.
func extraOf(p *block.Prompt, i, size int) (x uint64) {
	for _, it := range p.Items {
		if it.Offset < (i+1)*size && i*size < it.Offset+it.Length {
			x = uint64(block.ExtraItem(block.Extra(x), it.ID, int64(it.Offset-i*size)))
		}
	}
	return x
}

func (o *oracle) expect(id int, m pod.Member, p *block.Prompt) {
	w := &wish{m, map[prefix]bool{}, map[int]map[prefix]bool{}}
	path := o.prefixes(p)
	for _, s := range path {
		w.prefixes[s] = true
	}
	if own := o.members[m]; own.sized && len(p.Tokens) > 0 {
		end := (len(p.Tokens) - 1) / o.size
		for g, x := range own.windows {
			w.windows[g] = map[prefix]bool{}
			for _, s := range path[max(0, end-x.keep):end] {
				w.windows[g][s] = true
			}
		}
	}
	o.live[id] = w
}

// lookup is the definition of Lookup.
func (o *oracle) lookup(p *block.Prompt) (out []Match) {
	prefixes := o.prefixes(p)
	for m, w := range o.members {
		held := map[prefix]int{} // -> fastest tier
		for _, table := range []map[uint64]*copyOf{w.hashes, w.chunks} {
			for _, c := range table {
				for t := range event.NumTiers {
					if c.count[t] == 0 {
						continue
					}
					for _, s := range c.prefixes {
						if was, ok := held[s]; !ok || int(t) < was {
							held[s] = int(t)
						}
					}
				}
			}
		}
		x := Match{Member: m, Size: int32(o.size)}
		announced := true
		var tiers []int
		for _, s := range prefixes {
			tier, ok := held[s]
			expected := false
			for _, l := range o.live {
				expected = expected || l.member == m && l.prefixes[s]
			}
			if !ok && !expected {
				break
			}
			x.Depth++
			if announced = announced && ok; announced {
				x.Announced++
				tiers = append(tiers, tier)
			}
		}
		if w.sized && len(w.windows) > 0 {
			most, held := max(0, len(p.Tokens)-1)/o.size, x.Depth
			x.Announced = int32(o.usable(m, prefixes, min(int(x.Announced), most), false))
			x.Depth = max(x.Announced, int32(o.usable(m, prefixes, min(int(x.Depth), most), true)))
			x.Beyond = held - x.Depth
		}
		for _, t := range tiers[:x.Announced] {
			x.Fastest[t]++
		}
		if x.Depth > 0 {
			out = append(out, x)
		}
	}
	slices.SortFunc(out, func(a, b Match) int { return int(a.Member) - int(b.Member) })
	return out
}
