package eval

import (
	"github.com/eppctl/eppctl/internal/inspect/replay/engine"
	"github.com/eppctl/eppctl/internal/inspect/replay/fleet"
	"github.com/eppctl/eppctl/internal/inspect/replay/workload"
)

// p are parameters of a generator beside its defaults.
type p = workload.Parameters

// Others are what the constants of the decision were not read off: what people send
// to fleets, as the generators can say it, on small and large fleets, short and long
// prefixes, uneven pods. Load 1 is near the point at which a fleet under llm-d's blend
// begins to queue (a mean of 1.6 times that of an idle fleet); 1.5 is past what most
// can do.
var Others = []Scenario{
	chats("chats, 2 pods", 2, 1.4, p{"num_groups": 8, "num_prompts_per_group": 24, "num_turns": 6, "rate": 1}),
	chats("chats, 4 pods", 4, 1.4, p{"num_groups": 16, "num_prompts_per_group": 32, "num_turns": 8, "question_len": 800, "rate": 1}),
	chats("short chats, 4 pods", 4, 4, p{"num_groups": 24, "num_prompts_per_group": 20, "num_turns": 6, "system_prompt_len": 0, "question_len": 300, "output_len": 200, "rate": 0.5}),
	chats("chats, one system prompt", 8, 3.5, p{"num_groups": 1, "num_prompts_per_group": 500, "num_turns": 6, "system_prompt_len": 2048, "question_len": 200, "output_len": 300, "rate": 2, "think_time": 20}),
	chats("chats, small pools", 8, 0.36, p{"num_groups": 32, "num_prompts_per_group": 12, "num_turns": 8, "question_len": 1000, "rate": 2}).with(pools(0.2)),
	chats("chats, turns a second apart", 16, 1.9, p{"num_groups": 50, "num_prompts_per_group": 6, "num_turns": 15, "question_len": 1200, "output_len": 100, "rate": 1, "think_time": 1}),
	chats("100 long chats, 10 prompts", 16, 0.9, p{"num_groups": 10, "num_prompts_per_group": 10, "num_turns": 20, "question_len": 2500, "output_len": 250, "rate": 1}),
	chats("100 long chats, 100 prompts", 16, 0.9, p{"num_groups": 100, "num_prompts_per_group": 1, "num_turns": 20, "question_len": 2500, "output_len": 250, "rate": 1}),
	shared("32 prefixes of 40k", 16, 1.4, p{"num_prompts_per_group": 64, "system_prompt_len": 40_000}),
	shared("64 prefixes of 40k", 16, 1.2, p{"num_groups": 64, "num_prompts_per_group": 32, "system_prompt_len": 40_000, "question_len": 1000}),
	shared("8 prefixes of 40k", 16, 1.2, p{"num_groups": 8, "num_prompts_per_group": 256, "system_prompt_len": 40_000, "question_len": 1000}),
	shared("500 documents of 16k", 16, 3.8, p{"num_groups": 500, "num_prompts_per_group": 6, "system_prompt_len": 16_000, "question_len": 300, "output_len": 150, "rate": 5}),
	shared("one prefix of 8k", 8, 1.6, p{"num_groups": 1, "num_prompts_per_group": 4000, "system_prompt_len": 8192, "question_len": 256, "output_len": 400, "rate": 20}),
	shared("400 prefixes, 64 pods", 64, 21, p{"num_groups": 400, "num_prompts_per_group": 20, "system_prompt_len": 6000, "question_len": 1000}),
	shared("short prompts", 8, 4, p{"num_groups": 200, "num_prompts_per_group": 25, "system_prompt_len": 1024, "output_len": 200, "rate": 20}),
	shared("long answers", 16, 1.8, p{"num_groups": 64, "num_prompts_per_group": 50, "output_len": 1500}),
	shared("nothing shared", 16, 3, p{"num_groups": 4000, "num_prompts_per_group": 1, "system_prompt_len": 2000, "question_len": 2000, "output_len": 200, "rate": 20}),
	drawn("b2b", "burst, 40 groups", 8, 2.3, p{"groups": 40, "questions": 20, "rate_from": 1, "rate_to": 12, "output_tokens": 300}).with(pools(0.4)),
	drawn("b2b", "burst, 400 groups", 8, 2, p{"groups": 400, "questions": 2, "prefix_tokens": 3072, "prompt_tokens": 4000, "output_tokens": 400, "rate_from": 4, "rate_to": 14, "seconds": 400}).with(pools(0.6)),
	drawn("tool", "1,000 tools, even", 16, 4.7, p{"prompts": 1000, "zipf": 0.4, "requests": 6000}),
	drawn("tool", "100 tools, chunks of 2k", 16, 5.3, p{"prompts": 100, "zipf": 1.2, "requests": 6000}).with(func(c *fleet.Config) { c.Profile.StepTokens = 2048 }),
	drawn("tool", "300 tools, 8B", 8, 4.2, p{"prompts": 300, "requests": 6000}).with(profile("8b-h100")),
	drawn("agent", "agents, 20 prompts, 70B", 12, 3.3, p{"system_prompts": 20, "system_prompt_len": 10_240, "requests": 3000, "rate": 0.5}).with(profile("70b-tp4-h100")),
	drawn("agent", "agents, 200 prompts", 16, 4, p{"system_prompts": 200, "system_prompt_len": 6144, "requests": 4000, "rate": 0.6, "turn_more_tokens": 2000}),
	drawn("agent", "agents, 10 to 40 turns", 16, 1.4, p{"system_prompts": 4, "system_prompt_len": 30_720, "requests": 4000, "rate": 0.5, "turns_min": 10, "turns_max": 40, "turn_more_tokens": 1500}),
	chats("8 adapters, 4 slots", 8, 0.9, p{"num_groups": 16, "num_prompts_per_group": 24, "num_turns": 6, "rate": 1}).adapted(8, 4),
	shared("32 adapters, 8 slots", 8, 1, p{"num_groups": 64, "num_prompts_per_group": 40}).adapted(32, 8),
	chats("uneven pods", 8, 3.2, p{"num_prompts_per_group": 16, "num_turns": 6, "rate": 1}).with(func(c *fleet.Config) {
		c.Slow = []fleet.Slow{{Pod: 0, Factor: 2}, {Pod: 1, Factor: 2}, {Pod: 2, Factor: 1.5}, {Pod: 3, Factor: 0.7}}
	}),
	chats("restarts", 8, 3.5, p{"num_prompts_per_group": 16, "num_turns": 6, "rate": 1}).with(func(c *fleet.Config) {
		for i := range c.Pods { // the last at two thirds of the run
			c.Restarts = append(c.Restarts, fleet.Restart{Pod: i, At: 20 + 12*float64(i), Down: 10})
		}
	}),
}

// drawn is a generator with parameters, on a fleet.
func drawn(generator, name string, pods int, speed float64, set p) Scenario {
	return Scenario{Name: name, Pods: pods, Pool: 1, Speed: speed, make: generated(generator, set, 0)}
}

func chats(name string, pods int, speed float64, set p) Scenario {
	return drawn("multi_turn", name, pods, speed, set)
}

func shared(name string, pods int, speed float64, set p) Scenario {
	return drawn("shared_prefix", name, pods, speed, set)
}

// with changes the fleet too.
func (s Scenario) with(change func(*fleet.Config)) Scenario {
	s.change = change
	return s
}

// pools gives each pod a share of the profile's KV pool.
func pools(share float64) func(*fleet.Config) {
	return func(c *fleet.Config) { c.Profile.PoolTokens = int(share * float64(c.Profile.PoolTokens)) }
}

func profile(name string) func(*fleet.Config) {
	return func(c *fleet.Config) {
		var err error
		if c.Profile, err = engine.ProfileByName(name); err != nil {
			panic(err) // TestMatrix makes every fleet
		}
	}
}

// adapted spreads the requests over adapters of uneven popularity, of which an engine
// holds only some at a time.
func (s Scenario) adapted(adapters, slots int) Scenario {
	plain := s.make
	s.make = func(traces string, seed uint64) (*workload.Workload, error) {
		w, err := plain(traces, seed)
		if err != nil {
			return nil, err
		}
		return w.WithAdapters(adapters, 1, seed), nil
	}
	return s.with(func(c *fleet.Config) { c.Profile.AdapterSlots = slots })
}
