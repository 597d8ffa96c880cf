package eval

import (
	"fmt"
	"math"
	"strings"

	"github.com/eppctl/eppctl/internal/inspect/replay/fleet"
)

// Row is one value beside what it is read against; Target says what is wanted.
type Row struct {
	Name, Unit, Target string
	Value, Reference   float64
}

// goal is the time to first token at p90 by which loads are compared.
const goal = 5 // s

// Rows are the results as a table of measured values. REFERENCE is named per row in
// its unit or target.
func (r Results) Rows() []Row {
	rows := []Row{
		{"conversation_load_at_p90_5s", "of the trace's load", ">= 2.3 x round robin", r.reach(own), r.reach("round-robin")},
		r.worst("worst_mean_ttft_vs_omniscient", omniscient, 1.05),
		r.worst("worst_mean_ttft_vs_published", nearest, 1.03),
	}
	rows = append(rows, r.replicas()...)
	rows = append(rows, r.shaken()...)
	rows = append(rows, r.slow(), r.hot())
	return append(rows, r.policies()...)
}

// mean is the mean TTFT over the seeds that were run; NaN when none was.
func (r Results) mean(c Cell) float64 {
	return r.over(c, func(x *fleet.Result) float64 { return x.Mean })
}

func (r Results) over(c Cell, value func(*fleet.Result) float64) float64 {
	sum, n := 0.0, 0.0
	for c.Seed = 1; r[c] != nil; c.Seed++ {
		sum += value(r[c])
		n++
	}
	return sum / n
}

// reach is the highest load of the sweep with a p90 within the goal, between two
// steps by the logarithm of p90: it grows by factors there.
func (r Results) reach(policy string) float64 {
	s, _ := scenario("conversation")
	best, before, at := math.NaN(), 0.0, 0.0
	for _, load := range sweepLoads {
		x := r[Cell{Scenario: s.Name, Load: load, Policy: policy, Seed: 1}]
		if x == nil {
			continue
		}
		if x.P90 > goal {
			if before > 0 {
				best = at + (load-at)*math.Log(goal/before)/math.Log(x.P90/before)
			}
			break
		}
		best, before, at = load, x.P90, load
	}
	return best * s.Speed
}

// bound is the best mean of several policies.
func (r Results) bound(scenario string, load float64, policies []string) float64 {
	best := math.Inf(1)
	for _, p := range policies {
		best = min(best, r.mean(Cell{Scenario: scenario, Load: load, Policy: p}))
	}
	return best
}

// worst is the product's worst ratio to the best of others, over scenarios and loads.
func (r Results) worst(name string, policies []string, limit float64) Row {
	at, ratio := "", 0.0
	for _, s := range Scenarios {
		for _, load := range loads {
			x := r.mean(Cell{Scenario: s.Name, Load: load, Policy: own}) / r.bound(s.Name, load, policies)
			if x > ratio {
				at, ratio = fmt.Sprintf("%s at load %g", s.Name, load), x
			}
		}
	}
	return Row{name, "times, on " + at, fmt.Sprintf("<= %g", limit), ratio, 1}
}

func seconds(name string, value, reference float64, target string) Row {
	return Row{name, "s", target, value, reference}
}

// replicas hold the product against its own fixed weights.
func (r Results) replicas() (rows []Row) {
	for _, s := range replicated {
		for _, n := range []string{"2", "4"} {
			v := "replicas-" + n
			rows = append(rows, seconds(s+"_replicas_"+n+"_ttft_mean",
				r.mean(Cell{Scenario: s, Load: 1, Policy: own, Variant: v}), r.mean(Cell{Scenario: s, Load: 1, Policy: fixed, Variant: v}),
				"<= 1.03 x preset fixed"))
		}
	}
	return rows
}

// shaken hold it against itself undisturbed.
func (r Results) shaken() (rows []Row) {
	plain := r.mean(Cell{Scenario: "conversation", Load: 1, Policy: own})
	for _, v := range shaken {
		target := "undisturbed"
		if strings.HasPrefix(v, "scrape") {
			target = "<= 1.1 x scrapes every 250 ms"
		}
		name := strings.NewReplacer("-", "_", "%", "pct").Replace(v)
		rows = append(rows, seconds("conversation_"+name+"_ttft_mean", r.mean(Cell{Scenario: "conversation", Load: 1, Policy: own, Variant: v}), plain, target))
	}
	return rows
}

// slow is what a pod that became three times slower still gets, five seconds later.
func (r Results) slow() Row {
	c := Cell{Scenario: "conversation", Load: 0.8, Policy: own, Variant: "slow"}
	v := r.over(c, func(x *fleet.Result) float64 { return slowShare(x.Outcomes, slowFrom+5) })
	return Row{"slow_pod_share_after_5s", "of another pod's requests", "about 1/3, its speed", v, 1.0 / slowFactor}
}

// slowShare is how many requests the slow pod got from a time on, by the mean of the
// others.
func slowShare(list []fleet.Outcome, from float64) float64 {
	pods, slow, rest := map[int]bool{}, 0.0, 0.0
	for i := range list {
		o := &list[i]
		switch pods[o.Pod] = true; {
		case o.Placed < from:
		case o.Pod == slowPod:
			slow++
		default:
			rest++
		}
	}
	return slow / (rest / float64(len(pods)-1))
}

// hot is a prefix that most requests begin with, beside the policy that does not
// look at prefixes.
func (r Results) hot() Row {
	return seconds("hot_prefix_ttft_mean", r.mean(Cell{Scenario: "hot", Load: 1, Policy: own}),
		r.mean(Cell{Scenario: "hot", Load: 1, Policy: "least-in-flight"}), "<= least in flight")
}

// policies are all means, beside the better omniscient one.
func (r Results) policies() (rows []Row) {
	for _, s := range Scenarios {
		for _, load := range loads {
			bound := r.bound(s.Name, load, omniscient)
			for _, p := range append(append([]string{own, fixed}, nearest...), omniscient...) {
				rows = append(rows, r.policy(s.Name, load, p, bound))
			}
			if load == 1 {
				for _, p := range far() {
					rows = append(rows, r.policy(s.Name, load, p, bound))
				}
			}
		}
	}
	return rows
}

func (r Results) policy(scenario string, load float64, policy string, bound float64) Row {
	name := fmt.Sprintf("%s_load_%g_%s_ttft_mean", scenario, load, strings.ReplaceAll(policy, "-", "_"))
	return seconds(name, r.mean(Cell{Scenario: scenario, Load: load, Policy: policy}), bound, "")
}
