package index

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
)

// A chain that grows block by block, as decoding does, ends as the same chain in
// one event; and most of its blocks take the short way.
func TestGrow(t *testing.T) {
	const blocks = 200
	p, h := tokens(1, 16*blocks), hashes(1, blocks)
	whole, grown := newRig(t, Options{}), newRig(t, Options{})
	whole.store(r1, gpu, top, h, p)
	grown.store(r1, gpu, top, h[:1], p[:16])
	for i := 1; i < blocks; i++ {
		e := grown.event(gpu, h[i-1], h[i:i+1], p[16*i:16*i+16])
		if i%3 == 0 { // stored twice: a second copy
			grown.apply(r1, e, Applied)
		}
		if m := grown.ix.member(r1); !grown.ix.grow(m, e, 0) {
			t.Fatalf("block %d took the long way", i)
		}
	}
	grown.depth(r1, p, blocks)
	for i := 3; i < blocks; i += 3 {
		grown.remove(r1, gpu, h[i])
	}
	a, b := whole.stats(r1), grown.stats(r1)
	if a.Blocks != b.Blocks || a.Copies != b.Copies {
		t.Errorf("%v blocks, %v copies; want %v, %v", b.Blocks, b.Copies, a.Blocks, a.Copies)
	}
	if x, y := whole.ix.Stats(), grown.ix.Stats(); x.Blocks != y.Blocks || x.Runs != y.Runs {
		t.Errorf("%+v, want %+v", y, x)
	}
}

// What is out of the ordinary is left to applyStore, and untouched.
func TestGrowDeclines(t *testing.T) {
	p, h := tokens(1, 16*8), hashes(1, 8)
	r := newRig(t, Options{})
	r.store(r1, gpu, top, h[:4], p[:64])
	r.store(r1, gpu, 2, hashes(21, 22), tokens(2, 32)) // another way on from block 2
	usual := func() *event.Event { return r.event(gpu, 4, h[4:5], p[64:80]) }
	for name, change := range map[string]func(*event.Event){
		"two blocks":        func(e *event.Event) { e.Hashes, e.Tokens = h[4:6], p[64:96] },
		"no parent":         func(e *event.Event) { e.HasParent = false },
		"unknown parent":    func(e *event.Event) { e.Parent = 99 },
		"salt":              func(e *event.Event) { e.HasSalt, e.Salt = true, "s" },
		"host":              func(e *event.Event) { e.Tier = host },
		"image":             func(e *event.Event) { e.Extra = []uint64{5} },
		"another size":      func(e *event.Event) { e.BlockSize = 32 },
		"half a block":      func(e *event.Event) { e.Tokens = e.Tokens[:8] },
		"adapter":           func(e *event.Event) { e.LoRA = "x" },
		"adapter by number": func(e *event.Event) { e.LoRAID = 3 },
		"below a child":     func(e *event.Event) { e.Parent, e.Tokens = 2, tokens(2, 16) },
		"where paths part":  func(e *event.Event) { e.Parent, e.Tokens = 3, tokens(3, 16) },
	} {
		e := usual()
		change(e)
		before, stats := r.stats(r1), r.ix.Stats()
		if r.ix.grow(r.ix.member(r1), e, 0) {
			t.Errorf("%s: taken", name)
		}
		if a, s := r.stats(r1), r.ix.Stats(); a.Blocks != before.Blocks || s.Blocks != stats.Blocks || s.Runs != stats.Runs {
			t.Errorf("%s: something changed", name)
		}
	}
	if !r.ix.grow(r.ix.member(r1), usual(), 0) {
		t.Error("the usual is not taken")
	}
	r.depth(r1, p, 5)
}

// Blocks one by one in batches, from any number of chains, end as they would in
// events of many.
func TestGrowInBatches(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 84))
	one, many := newRig(t, Options{}), newRig(t, Options{})
	const chains, blocks = 20, 60
	head := tokens(1, 160)
	chain := func(i int) []uint32 { return append(slices.Clone(head), tokens(uint64(i)+2, 16*blocks)...) }
	name := func(i, j int) uint64 {
		if j < 10 {
			return uint64(j + 1)
		}
		return uint64(1000*(i+1) + j)
	}
	var lengths [chains]int
	for i := range chains {
		var all []uint64
		for j := range 10 + blocks {
			all = append(all, name(i, j))
		}
		many.store(r1, gpu, top, all, chain(i))
	}
	one.store(r1, gpu, top, hashes(1, 10), head)
	for left := chains * blocks; left > 0; {
		var batch []event.Event
		for len(batch) < 1+r.IntN(50) && left > 0 {
			i := r.IntN(chains)
			if j := 10 + lengths[i]; lengths[i] < blocks {
				batch = append(batch, *one.event(gpu, name(i, j-1), []uint64{name(i, j)}, chain(i)[16*j:16*j+16]))
				lengths[i]++
				left--
			}
		}
		one.ix.ApplyBatch(r1, batch, one.now)
	}
	for i := range chains {
		one.depth(r1, chain(i), 10+blocks)
	}
	if a, b := one.stats(r1), many.stats(r1); a.Blocks != b.Blocks || a.Verdicts[Applied] != uint64(1+chains*blocks) {
		t.Errorf("%v blocks, want %v; verdicts %v", a.Blocks, b.Blocks, a.Verdicts)
	}
}
