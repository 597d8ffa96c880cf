package index

import (
	"slices"
	"sync"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// Expectation is a prompt that was placed on a member and is about to be in its
// cache: followers of the same prefix count it before the engine has announced
// it. It holds until the request ends, since a running request pins its blocks.
// The zero value is an expectation of nothing.
type Expectation struct{ e *expectation }

// Release ends the expectation. Only the first call has an effect, and none
// after the member was purged. Any goroutine may call it.
func (x Expectation) Release() {
	if x.e != nil {
		x.e.release()
	}
}

type expectation struct {
	ix    *Index
	m     *member
	size  int
	steps []expectStep // in prompt order; nil once released
}

// expectStep is a run of the path and how many of its blocks are expected:
// always from its first on, since a prompt covers its path from the root.
// Holding the run itself is safe: one with expectations is neither reaped nor
// trimmed nor evicted.
type expectStep struct {
	r *run
	n uint32
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
// expectation is released. Any goroutine may call it.
func (ix *Index) Expect(id pod.Member, p *block.Prompt) Expectation {
	m := ix.member(id)
	if m == nil {
		return Expectation{}
	}
	size := m.expectSize()
	tokens := known(p)
	if len(tokens) < size {
		return Expectation{}
	}
	buf := keyBuffers.Get().(*[]block.Key)
	defer keyBuffers.Put(buf)
	keys := (*buf)[:0]
	keys = ix.hasher.Keys(keys, tokens, size)
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
	ix.layExpected(e, keys, sp)
	return Expectation{e}
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

// layExpected is lay without hashes: it makes the path and expects all of it.
func (ix *Index) layExpected(e *expectation, keys []block.Key, sp spaces) {
	sh := ix.shardOf(keys[0])
	second := ix.clock.Load()
	sh.lock()
	defer sh.unlock()
	for r := &sh.root; ; {
		n := r.n.Load()
		var off uint32
		keys, off = r.follow(keys, 0, n)
		if len(keys) > 0 && off == n && r.parent != nil && r.kid(n, keys[0]) == nil {
			r.append(keys)
			keys, off = nil, n+uint32(len(keys))
		}
		if off > 0 {
			r.touch(second)
			r.addExpected(e.m.id, off)
			e.steps = append(e.steps, expectStep{r, off})
		}
		if len(keys) == 0 {
			return
		}
		kid := r.kid(off, keys[0])
		if kid == nil {
			kid = ix.newRun(r, off, keys, sp)
		}
		r = kid
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

// end undoes layExpected. The member's expectations are locked.
func (e *expectation) end() {
	if e.steps == nil {
		return
	}
	sh := e.steps[0].r.shard
	sh.lock()
	for _, s := range slices.Backward(e.steps) { // children first, so that they are reaped first
		s.r.dropExpected(e.m.id, s.n)
		e.ix.reap(s.r)
	}
	sh.unlock()
	e.steps = nil
	delete(e.m.expected.live, e)
	e.ix.sizes.leave(e.size)
}

// expected counts the live expectations of a run. Published is, per member, the
// longest of them.
type expected struct{ rows []expectedRow }

type expectedRow struct {
	member pod.Member
	n      uint32 // blocks
	count  uint32 // placements that expect just as many
}

func (x *expected) longest(m pod.Member) (n uint32) {
	for i := range x.rows {
		if row := &x.rows[i]; row.member == m {
			n = max(n, row.n)
		}
	}
	return n
}

// addExpected expects the first n blocks of the run. The shard is locked.
func (r *run) addExpected(m pod.Member, n uint32) {
	if r.expect == nil {
		r.expect = &expected{}
	}
	was := r.expect.longest(m)
	if row := r.expect.row(m, n); row != nil {
		row.count++
		return
	}
	r.expect.rows = append(r.expect.rows, expectedRow{m, n, 1})
	if n > was {
		r.hold(m, layerExpected, was, n)
	}
}

// dropExpected takes one of them back. The shard is locked; the caller reaps.
func (r *run) dropExpected(m pod.Member, n uint32) {
	row := r.expect.row(m, n)
	if row.count--; row.count > 0 {
		return
	}
	rows := r.expect.rows
	*row = rows[len(rows)-1]
	r.expect.rows = rows[:len(rows)-1]
	if now := r.expect.longest(m); now < n {
		r.release(m, layerExpected, now, n)
	}
	if len(r.expect.rows) == 0 {
		r.expect = nil
	}
}

func (x *expected) row(m pod.Member, n uint32) *expectedRow {
	for i := range x.rows {
		if row := &x.rows[i]; row.member == m && row.n == n {
			return row
		}
	}
	return nil
}
