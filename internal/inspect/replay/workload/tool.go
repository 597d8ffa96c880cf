package workload

import (
	"math"
	"math/rand"
)

// toolLike has the shape of Mooncake's toolagent trace without being it: long tool
// prompts of uneven popularity, each followed by a tail of its own, and no turns.
var toolLike = generator{
	name:     "tool",
	about:    "popular tool prompts, each with a tail of its own",
	defaults: Parameters{"prompts": 200, "zipf": 1, "requests": 23_608, "rate": 23_608.0 / 3600},
	make:     makeTool,
}

// hotPrompt is toolLike with one prompt far above the others.
var hotPrompt = generator{
	name:     "hot",
	about:    "as tool, with one prompt that more than half of the requests begin with",
	defaults: Parameters{"prompts": 200, "zipf": 1.8, "requests": 23_608, "rate": 23_608.0 / 3600},
	make:     makeTool,
}

func makeTool(p Parameters, rnd *rand.Rand) *Workload {
	n := max(1, p.int("prompts"))
	weight, sum := make([]float64, n), 0.0
	for i := range weight {
		weight[i] = 1 / math.Pow(float64(i+1), p["zipf"])
		sum += weight[i]
	}
	var names numbers
	prompts := make([][]uint32, n)
	for i := range prompts {
		length := lognormal(rnd, 4600, 0.5)
		prompts[i] = names.fresh(nil, max(1, length/generatedBlock))
	}
	w := &Workload{}
	now := 0.0
	for range p.int("requests") {
		now += rnd.ExpFloat64() / p["rate"]
		head := prompts[draw(weight, sum*rnd.Float64())]
		tokens := len(head)*generatedBlock + min(lognormal(rnd, 2300, 0.9), 60_000)
		blocks := names.fresh(append([]uint32(nil), head...), blocksOf(tokens, generatedBlock)-len(head))
		out := min(max(lognormal(rnd, 90, 1.1), 1), 2000)
		w.Requests = append(w.Requests, Request{At: now, Prompt: tokens, Output: out, Blocks: blocks})
	}
	w.Distinct = names.count
	return w
}
