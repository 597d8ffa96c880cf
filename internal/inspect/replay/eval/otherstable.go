package eval

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/eppctl/eppctl/internal/inspect/replay/fleet"
	"github.com/eppctl/eppctl/internal/inspect/replay/route"
)

// otherLoads are the loads at which the other workloads are played.
var otherLoads = []float64{1, 1.5}

// OtherMatrix is every cell of the other workloads, for seeds 1 to n: under all policies,
// since it is not known beforehand which comes nearest.
func OtherMatrix(n int) []Cell {
	var m matrix
	for i := range Others {
		for _, load := range otherLoads {
			for _, x := range route.Policies() {
				m.add(Cell{Scenario: Others[i].Name, Load: load, Policy: x.Name}, uint64(n))
			}
		}
	}
	return m.cells
}

// nearestTo is the policy of others with the least mean, but for those that know what no
// router can.
func (r Results) nearestTo(c Cell) (who string, mean float64) {
	mean = math.Inf(1)
	for _, x := range route.Policies() {
		if x.Kind != route.Published && x.Kind != route.Baseline {
			continue
		}
		c.Policy = x.Name
		if v := r.mean(c); v < mean {
			who, mean = x.Name, v
		}
	}
	return who, mean
}

// OtherMarkdown writes the table of the other workloads: the product beside the best of
// all other policies at each, chosen after the fact.
func (r Results) OtherMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "| | pods | load | %s | p99 | %s | omniscient | best other | | p99 | ÷ best other | by seed |\n|---|---|---|%s\n", own, fixed, strings.Repeat("---|", 9))
	var ratios []float64
	for i := range Others {
		for _, load := range otherLoads {
			c := Cell{Scenario: Others[i].Name, Load: load, Policy: own}
			who, theirs := r.nearestTo(c)
			ratio := r.mean(c) / theirs
			ratios = append(ratios, ratio)
			fmt.Fprintf(&b, "| %s | %d | %g | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", Others[i].Name, Others[i].Pods, load,
				digits(r.mean(c)), digits(r.p99(c)), digits(r.mean(c.under(fixed))), digits(r.bound(c.Scenario, load, omniscient)),
				who, digits(theirs), digits(r.p99(c.under(who))), emphasis(ratio), r.bySeed(c, who))
		}
	}
	slices.Sort(ratios)
	ahead, _ := slices.BinarySearch(ratios, 0.97)
	level, _ := slices.BinarySearch(ratios, 1.03)
	fmt.Fprintf(&b, "\nOf %d rows `%s` is ahead of all others by more than 3 %% in %d, level in %d and behind in %d.\n",
		len(ratios), own, ahead, level-ahead, len(ratios)-level)
	_, err := io.WriteString(w, b.String())
	return err
}

func (c Cell) under(policy string) Cell {
	c.Policy = policy
	return c
}

// emphasis marks what is behind by more than seeds differ.
func emphasis(ratio float64) string {
	if ratio > 1.03 {
		return fmt.Sprintf("**%.2f**", ratio)
	}
	return fmt.Sprintf("%.2f", ratio)
}

// bySeed is the least and the greatest ratio to another policy over seeds.
func (r Results) bySeed(c Cell, other string) string {
	lo, hi := math.Inf(1), 0.0
	for c.Seed = 1; r[c] != nil; c.Seed++ {
		x := r[c].Mean / r[c.under(other)].Mean
		lo, hi = min(lo, x), max(hi, x)
	}
	return fmt.Sprintf("%.2f to %.2f", lo, hi)
}

func (r Results) p99(c Cell) float64 {
	return r.over(c, func(x *fleet.Result) float64 { return x.P99 })
}
