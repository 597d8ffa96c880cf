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
func TestFewPrefixes(t *testing.T) {
	for _, c := range []struct {
		name, generator string
		params          map[string]float64
		speed           float64
		rival           string
		within          float64
	}{
		{"one prefix", "shared_prefix", map[string]float64{"num_groups": 1, "num_prompts_per_group": 3000, "rate": 20}, 3, "least-in-flight", 1.05},
		{"long answers", "shared_prefix", map[string]float64{"num_groups": 32, "num_prompts_per_group": 100, "output_len": 2000, "rate": 12}, 1.2, "llmd-blend", 1.05},
		{"eight agents", "multi_turn", map[string]float64{"num_groups": 8, "num_prompts_per_group": 64, "num_turns": 10, "rate": 3}, 3, "lmetric", 1.05},
		{"long prefixes", "shared_prefix", map[string]float64{"num_groups": 32, "num_prompts_per_group": 64, "system_prompt_len": 40_000, "rate": 20}, 1, "llmd-sticky", 1.25},
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
					f.Speed, f.Seed = c.speed, seed
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
