package index

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// world turns bytes into operations on an Index and on its oracle, and compares
// the two after each of them.
type world struct {
	t     testing.TB
	data  []byte
	ix    *Index
	o     *oracle
	size  int
	seqs  []*block.Prompt
	now   int64
	wants map[int]Expectation
	ids   []int
	next  int
	out   Result
	// capped: eviction is at work, so the index may know less than the oracle.
	capped bool
	told   []told
}

// told is an event that the world applied.
type told struct {
	m pod.Member
	e event.Event
}

const (
	worldSeqs   = 12
	worldBlocks = 40
	worldKinds  = 6 // further hashes of one place, by kind
)

// worldMembers lie in different words of a set.
var worldMembers = []pod.Member{0, 1, 63, 64, 65, 1023}

func (w *world) byte() int {
	if len(w.data) == 0 {
		return 0
	}
	b := w.data[0]
	w.data = w.data[1:]
	return int(b)
}

func newWorld(t testing.TB, data []byte) *world {
	w := &world{t: t, data: data, wants: map[int]Expectation{}, now: int64(time.Hour)}
	w.size = []int{1, 2, 16}[w.byte()%3]
	r := rand.New(rand.NewPCG(uint64(w.byte()), 3))
	w.ix = New(Options{Seed: r.Uint64(), TTL: -1})
	engines := map[pod.Member]pod.Engine{}
	for i, m := range worldMembers {
		engine := pod.EngineVLLM
		if i == 5 {
			engine = pod.EngineSGLang
		}
		engines[m] = engine
		w.ix.Register(m, Owner{Engine: engine, BlockSize: w.size})
	}
	w.o = newOracle(w.size, engines)
	for i := range worldSeqs {
		p := &block.Prompt{Cut: -1, Tokens: make([]uint32, worldBlocks*w.size)}
		for j := range p.Tokens {
			p.Tokens[j] = r.Uint32N(50) // equal blocks at other places happen
		}
		if i > 0 && r.IntN(4) > 0 {
			q := w.seqs[r.IntN(i)]
			copy(p.Tokens, q.Tokens[:r.IntN(worldBlocks)*w.size])
			p.LoRA, p.Salt = q.LoRA, q.Salt
			if r.IntN(2) == 0 {
				p.Items = q.Items // which may stand where the ids differ by now
			}
		}
		if r.IntN(3) == 0 {
			p.Items = worldItems(r, len(p.Tokens))
		}
		if r.IntN(3) == 0 {
			p.LoRA = []string{"", "a", "b"}[r.IntN(3)]
			p.Salt = []string{"", "s"}[r.IntN(2)]
		}
		w.seqs = append(w.seqs, p)
	}
	return w
}

// worldItems are a few images, next to each other or apart.
func worldItems(r *rand.Rand, tokens int) (items []block.Item) {
	for at := r.IntN(tokens); at < tokens && len(items) < 5; {
		it := block.Item{ID: block.IdentifyItem([]string{"a", "b"}[r.IntN(2)]), Offset: at, Length: 1 + r.IntN(min(40, tokens-at))}
		items = append(items, it)
		at = it.End() + r.IntN(3)*r.IntN(20)
	}
	return items
}

// extra is what the engine says of blocks [a, b) besides their tokens; nil = nothing.
func (w *world) extra(s, a, b int) (list []uint64) {
	for i := a; i < b; i++ {
		list = append(list, extraOf(w.seqs[s], i, w.size))
	}
	if !slices.ContainsFunc(list, func(x uint64) bool { return x != 0 }) {
		return nil
	}
	return list
}

// hash is the engine's hash of a block: equal for equal prefixes, other on each
// member. kind makes further hashes for one place, and hashes for chunks.
func (w *world) hash(m pod.Member, s, i int, kind uint64) uint64 {
	p := w.seqs[s]
	ns := block.Namespace{LoRA: p.LoRA, Salt: p.Salt}
	x := block.ExtraString(block.ExtraInt(0, int64(m)), spell(ns))
	for j, t := range p.Tokens[:(i+1)*w.size] {
		x = block.ExtraInt(x, int64(t))
		if j%w.size == 0 {
			x = block.ExtraInt(x, int64(extraOf(p, j/w.size, w.size)))
		}
	}
	if kind == 0 && x%97 == 0 && !w.capped { // see store: several blocks share it
		return 0 // a legal hash
	}
	return uint64(block.ExtraInt(x, int64(kind)))
}

func (w *world) member() pod.Member { return worldMembers[w.byte()%len(worldMembers)] }

// span reads a range [a, b) of blocks, short ones more often.
func (w *world) span() (a, b int) {
	a = w.byte() % worldBlocks
	n := w.byte()
	if n < 128 {
		n %= 4
	}
	return a, min(a+1+n%worldBlocks, worldBlocks)
}

func (w *world) step() {
	op, m, s := w.byte(), w.member(), w.byte()%worldSeqs
	switch {
	case op < 120 && hybridMember(m) && w.byte()%3 == 0:
		w.window(m, s)
	case op < 120:
		w.store(m, s)
	case op < 185:
		w.remove(m, s)
	case op < 195:
		a, b := w.span()
		e := &event.Event{Kind: event.Stored, Tier: w.tier()}
		for i := a; i < b; i++ {
			e.Hashes = append(e.Hashes, w.hash(m, s, i, 0))
		}
		w.apply(m, e)
	case op < 207:
		w.expect(m, s)
	case op < 219:
		w.release()
	case op < 231:
		w.chunk(m, s)
	case op < 240:
		e := &event.Event{Kind: event.Removed, Tier: event.TierHost}
		for a := w.byte() % 10; a < 10 && len(e.Hashes) < 3; a++ {
			e.Hashes = append(e.Hashes, w.hash(m, s, a*4+3, 9))
		}
		w.apply(m, e)
	case op < 248:
		w.now += int64(w.byte()%8) * int64(time.Second)
		w.ix.Sweep(w.now)
		w.o.expire(w.now)
	case op < 249:
		w.crowd(m, s)
	case op < 252:
		e := &event.Event{Kind: event.Cleared}
		if w.byte()%2 == 0 {
			e.Tier, e.Medium = w.tier(), "x"
		}
		w.apply(m, e)
	case op < 253:
		w.restart()
	default:
		w.ix.Purge(m)
		w.o.purge(m)
		w.ix.Register(m, Owner{Engine: w.o.members[m].engine, BlockSize: w.size})
	}
	w.compare(s, worldBlocks)
	w.compare(w.byte()%worldSeqs, w.byte()%(worldBlocks+1))
}

// restart goes on with what a snapshot of the index loads as. Expectations and
// parked orphans are no part of it.
func (w *world) restart() {
	for _, x := range w.wants {
		x.Release()
	}
	w.ids, w.wants, w.o.live = nil, map[int]Expectation{}, map[int]*wish{}
	for _, o := range w.o.members {
		o.parked = nil
	}
	var file bytes.Buffer
	if err := w.ix.Save(&file, nil); err != nil {
		w.t.Fatal(err)
	}
	loaded, err := Load(&file, Options{MaxBlocks: w.ix.max.blocks, TTL: -1}, w.now, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.ix = loaded
}

// hybridMember tells the members whose engines have two cache groups more: a
// sliding window of a little over two blocks, and one of full attention.
func hybridMember(m pod.Member) bool { return m == 63 || m == 64 }

func (w *world) window(m pod.Member, s int) {
	e := &event.Event{Kind: event.Stored, Group: 1 + w.byte()%2, Tier: w.tier(), BlockSize: w.size, SpecKind: "sliding_window", Window: 2*w.size + 2}
	if e.Group == 2 {
		if !w.o.members[m].sized {
			return // it would become the trie's
		}
		e.SpecKind, e.Window = "full_attention", 0
	}
	if w.byte()%4 == 0 {
		e.Kind = event.Removed
		if w.o.members[m].windows[e.Group] == nil {
			return
		}
	}
	a, b := w.span()
	kind := w.kind()
	for i := a; i < b; i++ {
		e.Hashes = append(e.Hashes, w.hash(m, s, i, kind))
	}
	w.apply(m, e)
}

// kind is mostly the one of most stores; the others are further hashes for the
// same places.
func (w *world) kind() uint64 {
	if k := w.byte(); k <= 24 {
		return uint64(1 + k%worldKinds)
	}
	return 0
}

// crowd lets one block go by more hashes than eight bits count, or takes some or
// all of these away.
func (w *world) crowd(m pod.Member, s int) {
	p, i, what := w.seqs[s], w.byte()%2, w.byte()
	if i > 0 && w.o.members[m].hashes[w.hash(m, s, 0, 0)] == nil || w.capped {
		return
	}
	const n = 300
	e := &event.Event{Kind: event.Removed, Tier: event.TierHost}
	for k := range uint64(n) {
		e.Hashes = append(e.Hashes, w.hash(m, s, i, 100+k))
	}
	switch {
	case what < 90:
		e.Hashes = e.Hashes[:n-1-what/2]
		fallthrough
	case what < 130:
		w.apply(m, e)
		return
	}
	for k := range n {
		one := &event.Event{Kind: event.Stored, Tier: e.Tier, Hashes: e.Hashes[k : k+1], Tokens: p.Tokens[i*w.size:][:w.size], BlockSize: w.size, LoRA: p.LoRA, LoRAID: -1, Extra: w.extra(s, i, i+1)}
		if i > 0 {
			one.HasParent, one.Parent = true, w.hash(m, s, 0, 0)
			if one.Parent == 0 {
				return
			}
		} else {
			one.HasSalt, one.Salt = true, p.Salt
		}
		w.apply(m, one)
	}
}

func (w *world) tier() event.Tier { return event.Tier([]int{0, 0, 0, 1, 1, 2, 3}[w.byte()%7]) }

func (w *world) apply(m pod.Member, e *event.Event) {
	w.told = append(w.told, told{m, *e})
	got, want := w.ix.Apply(m, e, w.now), w.o.apply(m, e, w.now)
	if got.Verdict != want && !w.capped {
		w.t.Fatalf("verdict %v, want %v for %+v", got.Verdict, want, e)
	}
}

func (w *world) store(m pod.Member, s int) {
	p := w.seqs[s]
	a, b := w.span()
	if w.byte()%3 == 0 {
		a = 0
	}
	kind, odd := w.kind(), w.byte()
	e := &event.Event{Kind: event.Stored, Tier: w.tier(), BlockSize: w.size, LoRA: p.LoRA, LoRAID: -1}
	e.Tokens, e.Extra = p.Tokens[a*w.size:b*w.size], w.extra(s, a, b)
	for i := a; i < b; i++ {
		e.Hashes = append(e.Hashes, w.hash(m, s, i, kind))
	}
	if a > 0 {
		e.HasParent, e.Parent = true, w.hash(m, s, a-1, kind)
		if _, ok := w.o.members[m].hashes[e.Parent]; !ok && e.Parent == 0 {
			return // means the root then; this case has its own test
		}
	} else {
		e.HasSalt, e.Salt = true, p.Salt
	}
	if w.capped {
		// Hashes keep their meaning, as an engine's do: a parent that was evicted
		// and comes back as something else, or under another salt, would take its
		// parked children along.
		odd = 255
	}
	switch {
	case odd < 10: // the engine uses a hash for something else now
		e.Hashes[odd%len(e.Hashes)] = w.hash(m, odd, odd, 0)
	case odd < 14 && e.HasParent:
		e.LoRA = "c"
	case odd < 18:
		e.HasSalt, e.Salt = true, "s"
	case odd < 60 && odd >= 34: // stated again, which engines do on the first block only
		e.HasSalt, e.Salt = true, p.Salt
	case odd < 24: // the second half of the event repeats the hashes of the first
		copy(e.Hashes[len(e.Hashes)/2:], e.Hashes)
	case odd < 34 && len(e.Hashes) > 1:
		slices.Reverse(e.Hashes)
	}
	w.apply(m, e)
}

func (w *world) remove(m pod.Member, s int) {
	a, b := w.span()
	e := &event.Event{Kind: event.Removed, Tier: w.tier()}
	for i := a; i < b; i++ {
		e.Hashes = append(e.Hashes, w.hash(m, s, i, 0))
	}
	switch x := w.byte(); {
	case x < 100:
		slices.Reverse(e.Hashes)
	case x < 130:
		for i := range e.Hashes {
			e.Hashes[i] = w.hash(m, s, a+i, uint64(1+x%worldKinds))
		}
	}
	w.apply(m, e)
}

// chunk stores chunks of four blocks on the host tier.
func (w *world) chunk(m pod.Member, s int) {
	if len(w.o.members[m].hashes) == 0 {
		return // a chunk must not teach the block size here
	}
	p := w.seqs[s]
	a := w.byte() % 9
	b := min(a+1+w.byte()%3, 10)
	e := &event.Event{Kind: event.Stored, Tier: event.TierHost, BlockSize: 4 * w.size, LoRA: p.LoRA, LoRAID: -1}
	e.Tokens = p.Tokens[a*4*w.size : b*4*w.size]
	for i := a; i < b; i++ {
		e.Hashes = append(e.Hashes, w.hash(m, s, i*4+3, 9))
	}
	if a > 0 {
		e.HasParent, e.Parent = true, w.hash(m, s, a*4-1, uint64(w.byte()%2*9))
		if _, ok := w.o.members[m].hashes[e.Parent]; !ok && e.Parent == 0 {
			return
		}
	} else {
		e.HasSalt, e.Salt = true, p.Salt
	}
	w.apply(m, e)
}

func (w *world) expect(m pod.Member, s int) {
	p := *w.seqs[s]
	p.Tokens = p.Tokens[:w.byte()%(len(p.Tokens)+1)]
	w.wants[w.next] = w.ix.Expect(m, &p)
	w.o.expect(w.next, m, &p)
	w.ids = append(w.ids, w.next)
	w.next++
}

func (w *world) release() {
	if len(w.ids) == 0 {
		return
	}
	i := w.byte() % len(w.ids)
	id := w.ids[i]
	w.ids = slices.Delete(w.ids, i, i+1)
	w.wants[id].Release()
	w.wants[id].Release()
	delete(w.o.live, id)
}

func (w *world) compare(s, blocks int) {
	p := *w.seqs[s]
	p.Tokens = p.Tokens[:min(len(p.Tokens), blocks*w.size+blocks%w.size)]
	w.ix.Lookup(&p, &w.out)
	got := slices.Clone(w.out.Matches)
	slices.SortFunc(got, func(a, b Match) int { return int(a.Member) - int(b.Member) })
	want := w.o.lookup(&p)
	if w.capped {
		w.atMost(got, want)
		return
	}
	if !slices.Equal(got, want) {
		w.t.Fatalf("sequence %d, %d blocks of %d:\n got %+v\nwant %+v", s, blocks, w.size, got, want)
	}
}

func (w *world) atMost(got, want []Match) {
	for _, x := range got {
		i := slices.IndexFunc(want, func(y Match) bool { return y.Member == x.Member })
		if i < 0 || x.Depth > want[i].Depth || x.Announced > want[i].Announced {
			w.t.Fatalf("more than there is:\n got %+v\nwant %+v", got, want)
		}
		var most, have int32 // blocks on this tier or a faster one
		for t := range x.Fastest {
			have, most = have+x.Fastest[t], most+want[i].Fastest[t]
			if have > most {
				w.t.Fatalf("faster than it is:\n got %+v\nwant %+v", got, want)
			}
		}
	}
}

// run returns the number of steps.
func (w *world) run() (steps int) {
	for len(w.data) > 0 {
		w.step()
		steps++
	}
	if !w.capped {
		w.check()
	}
	for _, m := range worldMembers {
		w.ix.Purge(m)
	}
	if s := w.ix.Stats(); s.Blocks != 0 || s.Runs != 0 || len(s.Sizes) != 0 {
		w.t.Fatalf("after all purges: %+v", s)
	}
	return steps
}

// check compares the reverse maps' own counts with the oracle's.
func (w *world) check() {
	for m, o := range w.o.members {
		s, _ := w.ix.Member(m)
		var blocks, copies [event.NumTiers]int
		for _, c := range o.hashes {
			for t, n := range c.count {
				copies[t] += n
				blocks[t] += min(n, 1)
			}
		}
		for _, x := range o.windows {
			for _, c := range x.copies {
				for t, n := range c {
					copies[t] += n
				}
			}
		}
		if s.Blocks != blocks || s.Copies != copies || s.Chunks != len(o.chunks) || s.OrphansNow != len(o.parked) {
			w.t.Fatalf("member %d: %+v, want %v blocks, %v copies, %d chunks, %d parked", m, s, blocks, copies, len(o.chunks), len(o.parked))
		}
	}
}

func TestOracle(t *testing.T) {
	seeds := uint64(40)
	if raceBuild { // one goroutine: nothing to find but time
		seeds = 4
	}
	t.Run("IX-80", func(t *testing.T) {
		for seed := range seeds {
			r := rand.New(rand.NewPCG(seed, 80))
			data := make([]byte, 14500)
			for i := range data {
				data[i] = byte(r.Uint32())
			}
			data[0] = byte(seed)
			if steps := newWorld(t, data).run(); steps < 1500 {
				t.Fatalf("seed %d: only %d steps", seed, steps)
			}
		}
	})
}

func FuzzOracle(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 81))
	for i := range 6 {
		data := make([]byte, 400)
		for j := range data {
			data[j] = byte(r.Uint32())
		}
		data[0] = byte(i)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		newWorld(t, data[:min(len(data), 2000)]).run()
	})
}
