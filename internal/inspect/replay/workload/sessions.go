package workload

import "math/rand"

// agentSessions are coding agents: sessions of many turns behind one of a few long
// system prompts, each turn with all that came before it.
var agentSessions = generator{
	name:  "agent",
	about: "coding sessions of many turns behind long system prompts",
	defaults: Parameters{
		"system_prompts": 8, "system_prompt_len": 40 * generatedBlock, "requests": 6000, "rate": 0.62,
		"turns_min": 2, "turns_max": 20, "turn_tokens": 500, "turn_more_tokens": 3500, "think_min": 5, "think_more": 25,
	},
	make: makeAgent,
}

func makeAgent(p Parameters, rnd *rand.Rand) *Workload {
	var names numbers
	systems := make([][]uint32, max(1, p.int("system_prompts")))
	for i := range systems {
		systems[i] = names.fresh(nil, p.int("system_prompt_len")/generatedBlock)
	}
	w := &Workload{}
	now := 0.0
	for len(w.Requests) < p.int("requests") {
		now += rnd.ExpFloat64() / p["rate"]
		system := systems[rnd.Intn(len(systems))]
		s := session{at: now, blocks: append([]uint32(nil), system...), tokens: p.int("system_prompt_len")}
		turns := p.int("turns_min") + rnd.Intn(max(1, p.int("turns_max")-p.int("turns_min")+1))
		for range max(1, turns) { // sessions of no turns would never make the requests
			s.say(&names, p.int("turn_tokens")+rnd.Intn(max(1, p.int("turn_more_tokens"))))
			if s.tokens > MaxTokens {
				break
			}
			out := min(50+int(250*rnd.ExpFloat64()), 2000)
			w.Requests = append(w.Requests, s.request(out))
			s.at += p["think_min"] + p["think_more"]*rnd.Float64()
		}
	}
	w.Requests = sorted(w.Requests)[:p.int("requests")]
	w.Distinct = names.count
	return w
}

// session is a conversation as its prompts grow.
type session struct {
	at     float64
	tokens int
	blocks []uint32 // full ones only, between two turns
}

// say adds tokens to the prompt. The block that a turn leaves partly filled is
// another one in the next.
func (s *session) say(names *numbers, tokens int) {
	s.tokens += max(1, tokens)
	s.blocks = names.fresh(s.blocks, blocksOf(s.tokens, generatedBlock)-len(s.blocks))
}

func (s *session) request(out int) Request {
	r := Request{At: s.at, Prompt: s.tokens, Output: max(1, out), Blocks: append([]uint32(nil), s.blocks...)}
	s.blocks = s.blocks[:s.tokens/generatedBlock]
	return r
}

// sharedPrefix has the parameters of inference-perf's data generator of this name:
// each group has a system prompt, and each of its prompts a question behind it.
// Requests come in random order.
var sharedPrefix = generator{
	name:  "shared_prefix",
	about: "groups with a system prompt and a question per prompt, with inference-perf's parameters",
	defaults: Parameters{
		"num_groups": 32, "num_prompts_per_group": 32, "system_prompt_len": 4096, "question_len": 512, "output_len": 256, "rate": 10,
	},
	make: makeShared,
}

func makeShared(p Parameters, rnd *rand.Rand) *Workload {
	groups, prompts := p.int("num_groups"), p.int("num_prompts_per_group")
	head, question := p.int("system_prompt_len"), p.int("question_len")
	total := max(1, head+question)
	var names numbers
	heads := make([][]uint32, groups)
	for g := range heads {
		heads[g] = names.fresh(nil, head/generatedBlock)
	}
	w := &Workload{}
	now := 0.0
	for _, i := range rnd.Perm(groups * prompts) {
		now += rnd.ExpFloat64() / p["rate"]
		h := heads[i%groups]
		blocks := names.fresh(append([]uint32(nil), h...), blocksOf(total, generatedBlock)-len(h))
		w.Requests = append(w.Requests, Request{At: now, Prompt: total, Output: max(1, p.int("output_len")), Blocks: blocks})
	}
	w.Distinct = names.count
	return w
}

// multiTurn is sharedPrefix whose prompts are sessions: each turn asks a question
// behind the turns before it.
var multiTurn = generator{
	name:  "multi_turn",
	about: "as shared_prefix, with num_turns questions per prompt, think_time seconds apart",
	defaults: Parameters{
		"num_groups": 32, "num_prompts_per_group": 8, "num_turns": 5, "system_prompt_len": 4096, "question_len": 512, "output_len": 256,
		"rate": 2, "think_time": 10,
	},
	make: makeTurns,
}

func makeTurns(p Parameters, rnd *rand.Rand) *Workload {
	groups, prompts := p.int("num_groups"), p.int("num_prompts_per_group")
	var names numbers
	heads := make([][]uint32, groups)
	for g := range heads {
		heads[g] = names.fresh(nil, p.int("system_prompt_len")/generatedBlock)
	}
	w := &Workload{}
	now := 0.0
	for _, i := range rnd.Perm(groups * prompts) {
		now += rnd.ExpFloat64() / p["rate"]
		h := heads[i%groups]
		s := session{at: now, blocks: append([]uint32(nil), h...), tokens: p.int("system_prompt_len")}
		for turn := range p.int("num_turns") {
			more := p.int("question_len")
			if turn > 0 {
				more += p.int("output_len") // what was answered is part of the next prompt
			}
			if s.say(&names, more); s.tokens > MaxTokens || len(w.Requests) >= 1e6 {
				break
			}
			w.Requests = append(w.Requests, s.request(p.int("output_len")))
			s.at += p["think_time"] * (0.5 + rnd.Float64())
		}
	}
	w.Distinct = names.count
	return w
}
