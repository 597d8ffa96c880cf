package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// naivePool is the pool as a list of blocks in order of their last release.
type naivePool struct {
	order []int32 // free blocks, oldest first
	hash  map[int32]digest
	refs  map[int32]int
}

func (p *naivePool) take(n int) (evicted []digest, ok bool) {
	if n > len(p.order) {
		return nil, false
	}
	for _, b := range p.order[:n] {
		if h, ok := p.hash[b]; ok {
			evicted = append(evicted, h)
			delete(p.hash, b)
		}
		p.refs[b] = 1
	}
	p.order = slices.Clone(p.order[n:])
	return evicted, true
}

func (p *naivePool) hold(b int32) {
	if p.refs[b] == 0 {
		p.order = slices.DeleteFunc(p.order, func(x int32) bool { return x == b })
	}
	p.refs[b]++
}

func (p *naivePool) release(blocks []int32) {
	for _, b := range slices.Backward(blocks) {
		if p.refs[b]--; p.refs[b] == 0 {
			p.order = append(p.order, b)
		}
	}
}

func TestPoolAgainstNaive(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		const size = 24
		p := newPool(size)
		n := &naivePool{hash: map[int32]digest{}, refs: map[int32]int{}}
		for i := range int32(size) {
			n.order = append(n.order, i)
		}
		var held [][]int32
		for range 2000 {
			if len(held) > 0 && rng.IntN(3) == 0 {
				i := rng.IntN(len(held))
				p.release(held[i])
				n.release(held[i])
				held = slices.Delete(held, i, i+1)
				continue
			}
			// One of 12 prompts of up to 8 blocks; prompts share first blocks.
			prompt := append(slices.Repeat([]uint32{uint32(rng.IntN(3))}, 4), slices.Repeat([]uint32{uint32(rng.IntN(4))}, 28)...)
			hashes := chainAll(nil, namespace{}, prompt, 4)[:1+rng.IntN(8)]
			k := p.match(hashes)
			for i, h := range hashes {
				var found bool
				for _, x := range n.hash {
					found = found || x == h
				}
				if found != (i < k) && i <= k {
					t.Fatalf("seed %d: match says %d, block %d present: %v", seed, k, i, found)
				}
			}
			if free := p.free - p.idle(hashes[:k]); free < len(hashes)-k {
				continue
			}
			blocks := p.hold(hashes[:k])
			for i, b := range blocks {
				if n.hash[b] != hashes[i] {
					t.Fatalf("seed %d: hold gave a block of other content", seed)
				}
				n.hold(b)
			}
			fresh, evicted, ok := p.take(len(hashes) - k)
			wantEvicted, wantOK := n.take(len(hashes) - k)
			if ok != wantOK || !slices.Equal(evicted, wantEvicted) {
				t.Fatalf("seed %d: take evicted %d ok %v, want %d %v", seed, len(evicted), ok, len(wantEvicted), wantOK)
			}
			for i, b := range fresh {
				p.store(b, hashes[k+i])
				n.hash[b] = hashes[k+i]
			}
			held = append(held, append(blocks, fresh...))
			if p.free != len(n.order) {
				t.Fatalf("seed %d: %d free, want %d", seed, p.free, len(n.order))
			}
		}
	}
}

func TestPoolResetWaitsForHolders(t *testing.T) {
	p := newPool(4)
	h := chainAll(nil, namespace{}, sequenceOf(4), 4)
	b, _, _ := p.take(1)
	p.store(b[0], h[0])
	if p.reset() {
		t.Fatal("reset of a pool in use")
	}
	p.release(b)
	if p.match(h) != 1 {
		t.Fatal("a released block lost its content")
	}
	if !p.reset() || p.match(h) != 0 || p.usage() != 0 {
		t.Fatal("reset left content")
	}
}
