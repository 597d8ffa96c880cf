package index

import (
	"math"
	"slices"
	"sync"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// Expectation is a prompt that was placed on a member and is about to be in its
// cache: followers of the same prefix count it before the engine has announced
// it. It holds until it is released or expires. The zero value is an expectation
// of nothing.
type Expectation struct{ e *expectation }

// Release ends the expectation. Only the first call has an effect, and none
// after the member was purged. Any goroutine may call it.
func (x Expectation) Release() {
	if x.e != nil {
		x.e.release()
	}
}

// Expire ends the expectation at the first Sweep from time at (ns) on: by then
// the engine has announced what it holds. Any goroutine may call it.
func (x Expectation) Expire(at int64) {
	if x.e != nil {
		x.e.m.expected.mu.Lock()
		x.e.until = at
		x.e.m.expected.mu.Unlock()
	}
}

type expectation struct {
	ix    *Index
	m     *member
	size  int
	steps []expectStep // in prompt order; nil once released
	until int64        // ns: when it expires, 0 = it does not; the member's expectations guard it
}

// expectStep is a stretch [from, to) of a run of the path that is expected on a
// layer. Holding the run itself is safe: one with expectations is neither reaped
// nor trimmed nor evicted.
type expectStep struct {
	r        *run
	layer    layer
	from, to uint32
}

// expectations are the live ones of a member.
type expectations struct {
	mu   sync.Mutex
	live map[*expectation]struct{}
}

// fallbackSize is the block size of expectations on a member whose size nobody
// told yet: vLLM's default, and the finest in common use.
const fallbackSize = 16

var keyBuffers = sync.Pool{New: func() any { return new([]block.Key) }}

// Expect counts the full blocks of p as held by the member until the
// expectation ends. Any goroutine may call it.
func (ix *Index) Expect(id pod.Member, p *block.Prompt) Expectation {
	m := ix.member(id)
	if m == nil {
		return Expectation{}
	}
	size := m.expectSize()
	if len(p.Known()) < size {
		return Expectation{}
	}
	buf := keyBuffers.Get().(*[]block.Key)
	defer keyBuffers.Put(buf)
	keys := (*buf)[:0]
	keys = ix.hasher.PromptKeys(keys, p, size)
	*buf = keys
	ns := block.Namespace{Model: p.Model, LoRA: p.LoRA, Salt: p.Salt, Size: size}
	sp := spaces{full: ix.hasher.Space(ns)}
	ns.Salt = ""
	sp.unsalted = ix.hasher.Space(ns)
	keys[0] = ix.hasher.Root(sp.full, keys[0])

	e := &expectation{ix: ix, m: m, size: size}
	m.expected.mu.Lock()
	defer m.expected.mu.Unlock()
	if m.expected.live == nil {
		m.expected.live = map[*expectation]struct{}{}
	}
	m.expected.live[e] = struct{}{}
	ix.sizes.use(size)
	ix.layExpected(e, keys, sp, (len(p.Tokens)-1)/size)
	return Expectation{e}
}

// ExpectedSize is the member's block size as far as it is known: by its events,
// else by what its engine told, else the fallback.
func (ix *Index) ExpectedSize(id pod.Member) int {
	if m := ix.member(id); m != nil {
		return m.expectSize()
	}
	return fallbackSize
}

func (m *member) expectSize() int {
	if n := int(m.size.Load()); n > 0 {
		return n
	}
	if n := int(m.told.Load()); n > 0 {
		return n
	}
	return fallbackSize
}

// layExpected is lay without hashes: it makes the path and expects all of it. Of
// windows it expects the end of the first most blocks, which is what the engine
// keeps for the next request with the same prompt.
func (ix *Index) layExpected(e *expectation, keys []block.Key, sp spaces, most int) {
	sh := ix.shardOf(keys[0])
	sh.lock()
	defer sh.unlock()
	second := ix.clock.Load()
	for r, s := range ix.path(&sh.root, 0, keys, sp) {
		r.touch(second)
		e.steps = append(e.steps, expectStep{r, layerExpected, s.off, s.off + s.n})
	}
	if h := e.m.hybrid.Load(); h != nil && h.size == e.size {
		path := e.steps
		for _, r := range h.rules {
			b := uint32(most)
			a := b - min(b, r.keep)
			e.steps = append(e.steps, inPath(path, r.layer.ahead(), a, b)...)
		}
	}
	for _, s := range e.steps {
		s.r.addExpected(e.m.id, s)
	}
}

func (e *expectation) release() {
	e.m.expected.mu.Lock()
	defer e.m.expected.mu.Unlock()
	e.end()
}

// releaseAll ends every expectation of the member.
func (x *expectations) releaseAll() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for e := range x.live {
		e.end()
	}
}

// expire ends the member's expectations whose time has come.
func (x *expectations) expire(now int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for e := range x.live {
		if e.until != 0 && e.until <= now {
			e.end()
		}
	}
}

// end undoes layExpected. The member's expectations are locked.
func (e *expectation) end() {
	if e.steps == nil {
		return
	}
	sh := e.steps[0].r.shard
	sh.lock()
	for _, s := range slices.Backward(e.steps) { // children first, so that they are reaped first
		s.r.dropExpected(e.m.id, s)
		e.ix.reap(s.r)
	}
	sh.unlock()
	e.steps = nil
	delete(e.m.expected.live, e)
	e.ix.sizes.leave(e.size)
}

// inPath cuts the blocks [a, b) of a path into its runs.
func inPath(path []expectStep, l layer, a, b uint32) (out []expectStep) {
	base := uint32(0)
	for _, s := range path {
		from, to := max(a, base), min(b, base+s.to)
		if from < to {
			out = append(out, expectStep{s.r, l, from - base, to - base})
		}
		base += s.to
	}
	return out
}

// expected counts the live expectations of a run. Published is, per member and
// layer, their union.
type expected struct{ rows []expectedRow }

type expectedRow struct {
	member   pod.Member
	layer    layer
	from, to uint32
	count    uint32 // placements that expect just this
}

// addExpected expects a stretch of the run. The shard is locked.
func (r *run) addExpected(m pod.Member, s expectStep) {
	if r.expect == nil {
		r.expect = &expected{}
	}
	if row := r.expect.row(m, s); row != nil {
		row.count++
		return
	}
	r.expect.rows = append(r.expect.rows, expectedRow{m, s.layer, s.from, s.to, 1})
	r.hold(m, s.layer, s.from, s.to)
}

// dropExpected takes one of them back. The shard is locked; the caller reaps.
func (r *run) dropExpected(m pod.Member, s expectStep) {
	row := r.expect.row(m, s)
	if row.count--; row.count > 0 {
		return
	}
	rows := r.expect.rows
	*row = rows[len(rows)-1]
	r.expect.rows = rows[:len(rows)-1]
	for a := s.from; a < s.to; { // release what no other row expects
		covered, next := r.expect.from(m, s.layer, a)
		next = min(next, s.to)
		if !covered {
			r.release(m, s.layer, a, next)
		}
		a = next
	}
	if len(r.expect.rows) == 0 {
		r.expect = nil
	}
}

// from reports whether some row covers a, and up to where that is so.
func (x *expected) from(m pod.Member, l layer, a uint32) (covered bool, until uint32) {
	next := uint32(math.MaxUint32) // where the first row behind a begins
	for i := range x.rows {
		row := &x.rows[i]
		switch {
		case row.member != m || row.layer != l || row.to <= a:
		case row.from <= a:
			until = max(until, row.to)
		default:
			next = min(next, row.from)
		}
	}
	if until > a {
		return true, until
	}
	return false, next
}

func (x *expected) row(m pod.Member, s expectStep) *expectedRow {
	for i := range x.rows {
		if row := &x.rows[i]; row.member == m && row.layer == s.layer && row.from == s.from && row.to == s.to {
			return row
		}
	}
	return nil
}
