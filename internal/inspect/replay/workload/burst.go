package workload

import "math/rand"

// burst is the shared-prefix workload of llm-d's 2025 publication: groups with a
// long prefix and a few questions each, at a rate that rises past what the fleet
// can do. Its prefixes fill most of the fleet's cache.
var burst = generator{
	name:  "b2b",
	about: "groups with a long shared prefix and few questions, at a rising rate",
	defaults: Parameters{
		"groups": 150, "questions": 5, "prefix_tokens": 11 * generatedBlock, "prompt_tokens": 7200, "output_tokens": 1000,
		"rate_from": 3, "rate_to": 9, "seconds": 600,
	},
	make: makeBurst,
}

func makeBurst(p Parameters, rnd *rand.Rand) *Workload {
	groups, questions := max(1, p.int("groups")), max(1, p.int("questions"))
	prompt := max(1, p.int("prompt_tokens"))
	all := blocksOf(prompt, generatedBlock)
	shared := min(p.int("prefix_tokens")/generatedBlock, all)
	var names numbers
	heads, tails := make([][]uint32, groups), make([][]uint32, groups*questions)
	w := &Workload{}
	now, total := 0.0, p["seconds"]
	for now < total {
		now += rnd.ExpFloat64() / (p["rate_from"] + (p["rate_to"]-p["rate_from"])*now/total)
		g, q := rnd.Intn(groups), rnd.Intn(questions)
		if heads[g] == nil {
			heads[g] = names.fresh(nil, shared)
		}
		tail := &tails[g*questions+q]
		if *tail == nil {
			*tail = names.fresh(nil, all-shared)
		}
		blocks := append(append([]uint32(nil), heads[g]...), *tail...)
		w.Requests = append(w.Requests, Request{At: now, Prompt: prompt, Output: max(1, p.int("output_tokens")), Blocks: blocks})
	}
	w.Distinct = names.count
	return w
}
