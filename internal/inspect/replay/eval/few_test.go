//go:build !race

package eval

import (
	"context"
	"fmt"
	"testing"

	"github.com/eppctl/eppctl/internal/inspect/replay/fleet"
	"github.com/eppctl/eppctl/internal/inspect/replay/route"
	"github.com/eppctl/eppctl/internal/inspect/replay/workload"
)

// TestFewPrefixes: where few prefixes are shared by all, every pod soon holds them and
// what tells pods apart is how many they serve at a time. And where a prefix takes
// seconds to compute, a fleet that begins under load must not compute it all over
// again on whoever answers first: it does not come out of that. None of the six
// scenarios is like that. Means of three seeds.
//
// One prefix that all share takes no longer than under least in flight, 3 % apart, which
// seeds differ by; of 32,000 tokens up to 6 %, since least in flight computes its copies
// on every pod at once and eppctl one after a few requests.
func TestFewPrefixes(t *testing.T) {
	for _, c := range []struct {
		name, generator string
		params          map[string]float64
		pods            int
		speed           float64
		rival           string
		within          float64
	}{
		{"one prefix", "shared_prefix", map[string]float64{"num_groups": 1, "num_prompts_per_group": 3000, "rate": 20}, 16, 3, "least-in-flight", 1.05},
		{"one prefix of 2k, 2 pods", "shared_prefix", one(2048, 2), 2, 2.4, "least-in-flight", 1.03},
		{"one prefix of 8k, 4 pods", "shared_prefix", one(8192, 4), 4, 1.6, "least-in-flight", 1.03},
		{"one prefix of 8k, 8 pods", "shared_prefix", one(8192, 8), 8, 1, "least-in-flight", 1.03},
		{"one prefix of 8k, 8 pods, more", "shared_prefix", one(8192, 8), 8, 1.6, "least-in-flight", 1.03},
		{"one prefix of 8k, 8 pods, too much", "shared_prefix", one(8192, 8), 8, 2.4, "least-in-flight", 1.03},
		{"one prefix of 32k, 16 pods", "shared_prefix", one(32768, 16), 16, 1, "least-in-flight", 1.06},
		{"long answers", "shared_prefix", map[string]float64{"num_groups": 32, "num_prompts_per_group": 100, "output_len": 2000, "rate": 12}, 16, 1.2, "llmd-blend", 1.05},
		{"eight agents", "multi_turn", map[string]float64{"num_groups": 8, "num_prompts_per_group": 64, "num_turns": 10, "rate": 3}, 16, 3, "lmetric", 1.05},
		{"long prefixes", "shared_prefix", map[string]float64{"num_groups": 32, "num_prompts_per_group": 64, "system_prompt_len": 40_000, "rate": 20}, 16, 1, "llmd-sticky", 1.25},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			mean := func(policy string) (sum float64) {
				p, err := route.ByName(policy)
				if err != nil {
					t.Fatal(err)
				}
				for seed := uint64(1); seed <= 3; seed++ {
					w, err := workload.Generate(c.generator, seed, c.params)
					if err != nil {
						t.Fatal(err)
					}
					f := fleet.Default()
					f.Pods, f.Speed, f.Seed = c.pods, c.speed, seed
					x, err := fleet.Run(context.Background(), w, p, f, nil)
					if err != nil {
						t.Fatal(err)
					}
					sum += x.Mean / 3
				}
				return sum
			}
			ours, theirs := mean(own), mean(c.rival)
			told := fmt.Sprintf("%.3f s, %s %.3f s: %.2f times", ours, c.rival, theirs, ours/theirs)
			t.Log(told)
			if ours > c.within*theirs {
				t.Error(told)
			}
		})
	}
}

// one is a prefix of so many tokens that all requests to so many pods begin with.
func one(tokens, pods float64) map[string]float64 {
	return map[string]float64{
		"num_groups": 1, "num_prompts_per_group": 500 * pods, "system_prompt_len": tokens, "question_len": 256, "output_len": 400, "rate": 2.5 * pods,
	}
}
