package index

import (
	"cmp"
	"io"
	"math"
	"slices"
	"time"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// Load makes an index of a snapshot. It adopts the seed of the process that
// saved it, whatever Options say: keys mean nothing under another. now is the
// time in ns, as Apply takes it. member tells which of this process's members a
// saved one is; those it refuses are left out. nil keeps the numbers. The members
// are registered as they were saved.
//
// A stream that is damaged, cut off or of another version is refused with a
// *SnapshotError. Nothing of it is kept then.
func Load(r io.Reader, o Options, now int64, member func(name string, saved pod.Member) (pod.Member, bool)) (*Index, error) {
	l := loader{frameReader: frameReader{r: r}, second: uint32(now / int64(time.Second)), runs: [][]part{nil}}
	seed, err := l.header()
	if err != nil {
		return nil, err
	}
	o.Seed = seed
	l.ix = New(o)
	l.ix.tick(now)
	for {
		kind, err := l.frame()
		if err != nil {
			return nil, err
		}
		if kind == frameEnd {
			break
		}
		if kind == frameMember {
			l.member(member)
		} else if l.saved == 0 {
			l.fail("a frame of no member", nil)
		}
		for l.more() {
			l.record(kind)
		}
		if l.err != nil {
			return nil, l.err
		}
	}
	if members, runs := l.uint(pod.MaxMembers), l.uint(math.MaxUint64); l.err != nil || members != l.saved || runs != uint64(len(l.runs)-1) {
		return nil, l.fail("the end does not fit what is before it", nil)
	}
	l.finish()
	l.ix.reapAll() // what only members left out hold
	return l.ix, nil
}

type loader struct {
	frameReader
	ix     *Index
	second uint32
	saved  uint64   // members read
	runs   [][]part // by record: where its keys stand
	chunks int64    // blocks in all chunks
	m      *member  // nil = left out
	near   uint32   // log's place of the hash before
}

// part is a stretch of a record, which ends before key number upto of it.
type part struct {
	stretch
	upto uint32
}

// chunkShare bounds the blocks in chunks per byte of the stream: chunks of 256
// pages of one token need 13. A few bytes must not ask for much work.
const chunkShare = 64

func (l *loader) record(k frameKind) {
	switch k {
	case frameRuns:
		l.run()
	case frameHashes:
		l.hashes()
	case frameChunks:
		l.chunk()
	case frameWindow:
		l.window()
	default:
		l.fail("a frame of an unknown kind", nil)
	}
}

func (l *loader) member(find func(string, pod.Member) (pod.Member, bool)) {
	l.finish()
	l.saved++
	id := pod.Member(l.uint(pod.MaxMembers - 1))
	name := l.string(1 << 16)
	o := Owner{Model: l.string(1 << 16), Engine: pod.Engine(l.uint(math.MaxUint8)), Blocks: int(l.uint(math.MaxInt32)), BlockSize: int(l.uint(math.MaxInt32))}
	size, firm := int(l.uint(math.MaxInt32)), l.uint(1) == 1
	known, indexed := l.uint(1) == 1, int(int32(l.uint(math.MaxUint32)))
	keep := true
	if find != nil {
		id, keep = find(name, id)
	}
	if l.m = nil; l.err != nil || !keep || int(id) >= pod.MaxMembers {
		return
	}
	if l.ix.member(id) != nil {
		l.fail("two members of one number", nil)
		return
	}
	l.ix.Register(id, o)
	l.m, l.near = l.ix.member(id), 0
	l.ix.setSize(l.m, size)
	l.m.sizing.firm = firm
	l.m.groups.known, l.m.groups.indexed = known, indexed
}

// finish ends the member at hand.
func (l *loader) finish() {
	if l.m != nil {
		l.ix.describe(l.m)
		l.ix.reshowWindows(l.m)
		l.m = nil
	}
}

// since turns an age back into a second.
func (l *loader) since() uint32 { return l.second - uint32(l.uint(math.MaxInt32)) }

// run lays the keys of a record. Mostly they make a run of their own; where a
// run was trimmed while it was saved they join one, or several.
func (l *loader) run() {
	record, off := l.uint(uint64(len(l.runs)-1)), uint32(l.uint(math.MaxUint32))
	var sp spaces
	if record == 0 {
		sp = spaces{full: block.Space(l.word()), unsalted: block.Space(l.word())}
	}
	read := l.since()
	n := l.uint(recordKeys)
	if l.err != nil {
		return
	}
	if n == 0 || n > uint64(len(l.rest)/8) {
		l.fail("a run that cannot be", nil)
		return
	}
	keys := make([]block.Key, n)
	for i := range keys {
		keys[i] = block.Key(l.word())
	}
	var r *run
	if record == 0 {
		r, off = &l.ix.shardOf(keys[0]).root, 0
	} else {
		at, ok := l.at(record, off-1)
		if !ok {
			l.fail("a run below no block", nil)
			return
		}
		if r = l.ix.runs.get(at.run); r == nil {
			l.fail("a run below one that is gone", nil)
			return
		}
		off, sp = at.off+1, r.space
	}
	r.shard.lock()
	var path []part
	upto := uint32(0)
	for r, s := range l.ix.path(r, off, keys, sp) {
		r.touch(read)
		upto += s.n
		path = append(path, part{s, upto})
	}
	r.shard.unlock()
	l.runs = append(l.runs, path)
}

// at finds a block of a record.
func (l *loader) at(record uint64, off uint32) (place, bool) {
	path := l.runs[record]
	i, _ := slices.BinarySearchFunc(path, off, func(p part, off uint32) int { return cmp.Compare(p.upto, off+1) })
	if i == len(path) || off == math.MaxUint32 {
		return place{}, false
	}
	p := &path[i]
	return place{p.run, p.off + p.n - (p.upto - off)}, true
}

func (l *loader) hashes() {
	record, off := l.uint(uint64(len(l.runs)-1)), uint32(l.uint(math.MaxUint32))
	stored := l.since()
	tiers := l.uint(1<<event.NumTiers - 1)
	var held [event.NumTiers]uint16
	var again [event.NumTiers]uint32
	any := uint16(0)
	for t := range held {
		if tiers>>t&1 != 0 {
			held[t], again[t] = uint16(l.uint(math.MaxUint16)), uint32(l.uint(math.MaxUint32))
			any |= held[t]
		}
	}
	if any == 0 {
		l.fail("hashes on no tier", nil)
	}
	var g [event.NumTiers]grant
	for i := uint32(0); any>>i != 0 && l.err == nil; i++ {
		if any>>i&1 == 0 {
			continue
		}
		hash := l.word()
		p, ok := l.at(record, off+i)
		if !ok {
			l.fail("a hash of no block", nil)
		}
		if l.m == nil || l.err != nil {
			continue
		}
		on := make([]copies, 0, event.NumTiers)
		for t := range event.NumTiers {
			if held[t]>>i&1 != 0 {
				on = append(on, copies{t, int(again[t] >> (2 * i) & againMask)})
				g[t].add(l.ix, l.m, p, layer(t))
			}
		}
		l.enter(hash, p, on, stored)
	}
	for t := range g {
		if l.m != nil {
			g[t].flush(l.ix, l.m)
		}
	}
}

// copies is one tier a hash is held on.
type copies struct {
	tier  event.Tier
	again int // further copies there
}

// enter puts a hash into the reverse map.
func (l *loader) enter(hash uint64, p place, on []copies, stored uint32) {
	rev := &l.m.rev
	if !rev.log.room(1) {
		l.fail("more hashes than a member can have", nil)
		return
	}
	rev.reserve(1)
	slot, _, twice := rev.find(hash)
	if twice {
		l.fail("a hash for two blocks", nil)
		return
	}
	l.near = rev.insert(slot, hash, p, on[0].tier, l.near)
	for i, c := range on {
		if i > 0 {
			rev.raise(l.near, c.tier)
		}
		if c.tier != event.TierGPU {
			rev.log.segment(l.near).stored = stored
		}
		for range c.again {
			rev.addAgain(l.near, c.tier)
		}
	}
}

func (l *loader) chunk() {
	hash, tiers := l.word(), uint8(l.uint(1<<event.NumTiers-1))
	c := &chunk{tiers: tiers}
	for t := range c.again {
		c.again[t] = uint8(l.uint(maxAgain))
	}
	c.stored = l.since()
	for n := l.uint(math.MaxUint16); n > 0 && l.err == nil; n-- {
		record, off, blocks := l.uint(uint64(len(l.runs)-1)), uint32(l.uint(math.MaxUint32)), l.uint(recordKeys)
		if l.chunks += int64(blocks); l.chunks > chunkShare*l.next {
			l.fail("chunks of too many blocks", nil)
		}
		for k := range uint32(blocks) {
			if l.err != nil {
				return
			}
			p, ok := l.at(record, off+k)
			if !ok {
				l.fail("a chunk of no block", nil)
				return
			}
			c.path = extend(c.path, p)
		}
	}
	switch {
	case l.err != nil:
		return
	case len(c.path) == 0 || tiers == 0:
		l.fail("a chunk of nothing", nil)
		return
	case l.m == nil:
		return
	case l.m.chunks.byHash[hash] != nil:
		l.fail("two chunks of one hash", nil)
		return
	case !l.m.chunks.room(len(c.path)):
		l.fail("more chunks than a member can have", nil)
		return
	}
	l.m.chunks.add(hash, c)
	for t := range event.NumTiers {
		var g grant
		for _, s := range c.path {
			for k := uint32(0); c.on(t) && k < s.n; k++ {
				g.add(l.ix, l.m, place{s.run, s.off + k}, layer(t)|layerChunk)
			}
		}
		g.flush(l.ix, l.m)
	}
}

// extend adds a block to a path.
func extend(path []stretch, p place) []stretch {
	if k := len(path) - 1; k >= 0 && path[k].run == p.run && path[k].off+path[k].n == p.off {
		path[k].n++
		return path
	}
	return append(path, stretch{run: p.run, off: p.off, n: 1})
}

// window reads all of a frame: its records follow a head.
func (l *loader) window() {
	k := GroupKind{
		Group: int(int32(l.uint(math.MaxUint32))), Kind: l.string(1 << 12), Window: int(int32(l.uint(math.MaxUint32))),
		BlockSize: int(int32(l.uint(math.MaxUint32))), Stores: l.uint(math.MaxUint64),
	}
	sparse := l.uint(1) == 1
	var w *window
	if l.m != nil && l.err == nil {
		g := &l.m.groups
		i := g.other(k.Group)
		if i < 0 && len(g.others) == maxKinds {
			l.fail("more cache groups than a member can have", nil)
			return
		}
		if i < 0 {
			i = len(g.others)
			g.others, g.windows = append(g.others, k), append(g.windows, window{held: map[uint64]resident{}, sparse: sparse})
		}
		w = &g.windows[i]
	}
	for l.more() {
		hash, r := l.word(), resident{}
		for t := range r.count {
			r.count[t] = uint8(l.uint(1 + maxAgain))
		}
		r.stored = l.since()
		if w == nil || l.err != nil {
			continue
		}
		if _, twice := w.held[hash]; twice || !r.any() || l.m.resident() >= maxResident {
			l.fail("a hash of a window that cannot be", nil)
			return
		}
		for t, n := range r.count {
			w.copies[t] += int(n)
			w.again[t] += max(0, int(n)-1)
		}
		w.held[hash] = r
	}
}

// reapAll takes out the runs that nobody holds.
func (ix *Index) reapAll() {
	for id := range ix.runs.size() {
		if r := ix.runs.lock(id); r != nil {
			ix.reap(r)
			r.shard.unlock()
		}
	}
}
