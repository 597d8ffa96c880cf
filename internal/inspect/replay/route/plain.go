package route

import "math/bits"

// The rules that look at no cache.

// roundRobin takes one pod after the other.
type roundRobin struct{ next int }

func (x *roundRobin) costs(p *peer, _ *Request, _ int64) {
	n := len(p.pods)
	for i := range p.cost {
		p.cost[(x.next+i)%n] = float64(i)
	}
	for range n { // a pod that is down passes its turn on
		i := x.next
		if x.next = (x.next + 1) % n; !p.pods[i].down {
			return
		}
	}
}

// random takes any pod.
type random struct{}

func (random) costs(*peer, *Request, int64) {}

// leastInFlight takes the pod with the fewest of our requests.
type leastInFlight struct{}

func (leastInFlight) costs(p *peer, _ *Request, _ int64) {
	for i := range p.cost {
		p.cost[i] = float64(p.pods[i].inFlight)
	}
}

// prefixHash sends equal beginnings to one pod, by rendezvous hashing over the first
// two blocks, whatever is there.
type prefixHash struct{}

func (prefixHash) costs(p *peer, r *Request, _ int64) {
	key := uint64(r.Blocks[min(1, len(r.Blocks)-1)]) + 1 // a block stands for all before it
	for i := range p.cost {
		p.cost[i] = -float64(mix(key, uint64(i)+1) >> 11)
	}
}

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, b*0xc2b2ae3d27d4eb4f)
	x := hi ^ lo
	x ^= x >> 29
	x *= 0xbf58476d1ce4e5b9
	return x ^ x>>32
}
