package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// WithAdapters gives every request one of n LoRA adapters, the i-th with weight
// 1/i^zipf. Prompts of different adapters share no block, as in an engine.
func (w *Workload) WithAdapters(n int, zipf float64, seed uint64) *Workload {
	rnd := rand.New(rand.NewPCG(seed, 0x6c6f7261))
	weight, sum := make([]float64, n), 0.0
	for i := range weight {
		weight[i] = 1 / math.Pow(float64(i+1), zipf)
		sum += weight[i]
	}
	type block struct{ adapter, id uint32 }
	numbers := map[block]uint32{}
	c := *w
	c.Requests = make([]Request, len(w.Requests))
	for i, r := range w.Requests {
		a := draw(weight, sum*rnd.Float64())
		r.Adapter = fmt.Sprintf("adapter-%d", a)
		own := make([]uint32, len(r.Blocks))
		for k, id := range r.Blocks {
			b := block{uint32(a), id}
			x, ok := numbers[b]
			if !ok {
				x = uint32(len(numbers))
				numbers[b] = x
			}
			own[k] = x
		}
		r.Blocks = own
		c.Requests[i] = r
	}
	c.Distinct = len(numbers)
	return &c
}

// draw is the index that x falls on when weights lie side by side.
func draw(weight []float64, x float64) int {
	for i, v := range weight[:len(weight)-1] {
		if x <= v {
			return i
		}
		x -= v
	}
	return len(weight) - 1
}
