package eval

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// Markdown writes the tables of docs/eval.md.
func (r Results) Markdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| | load | " + strings.Join(headline(), " | ") + " | ÷ omniscient | ÷ published |\n")
	b.WriteString("|---|---|" + strings.Repeat("---|", len(headline())+2) + "\n")
	for _, s := range Scenarios {
		for _, load := range loads {
			fmt.Fprintf(&b, "| %s | %g |", s.Name, load)
			for _, p := range headline() {
				fmt.Fprintf(&b, " %s |", digits(r.mean(Cell{Scenario: s.Name, Load: load, Policy: p})))
			}
			mine := r.mean(Cell{Scenario: s.Name, Load: load, Policy: own})
			fmt.Fprintf(&b, " %.2f | %.2f |\n", mine/r.bound(s.Name, load, omniscient), mine/r.bound(s.Name, load, nearest))
		}
	}
	b.WriteString("\nThe others, at load 1 with one seed:\n\n| | " + strings.Join(far(), " | ") + " |\n|---|" + strings.Repeat("---|", len(far())) + "\n")
	for _, s := range Scenarios {
		fmt.Fprintf(&b, "| %s |", s.Name)
		for _, p := range far() {
			fmt.Fprintf(&b, " %s |", digits(r.mean(Cell{Scenario: s.Name, Load: 1, Policy: p})))
		}
		b.WriteString("\n")
	}
	r.sweepTable(&b)
	r.replicaTable(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// headline are the policies that are run everywhere.
func headline() []string {
	return append(append([]string{own, fixed}, nearest...), omniscient...)
}

func (r Results) sweepTable(b *strings.Builder) {
	s, _ := scenario("conversation")
	b.WriteString("\nLoad sweep on the conversation trace, mean / p90 TTFT in seconds, one seed:\n\n| speed |")
	for _, load := range sweepLoads {
		fmt.Fprintf(b, " %.1f |", load*s.Speed)
	}
	b.WriteString(" p90 of 5 s at |\n|---|" + strings.Repeat("---|", len(sweepLoads)+1) + "\n")
	for _, p := range sweepPolicies {
		fmt.Fprintf(b, "| %s |", p)
		for _, load := range sweepLoads {
			x := r[Cell{Scenario: s.Name, Load: load, Policy: p, Seed: 1}]
			if x == nil {
				b.WriteString(" - |")
				continue
			}
			fmt.Fprintf(b, " %s / %s |", digits(x.Mean), digits(x.P90))
		}
		fmt.Fprintf(b, " %.2f |\n", r.reach(p))
	}
}

func (r Results) replicaTable(b *strings.Builder) {
	fmt.Fprintf(b, "\nRouters that share nothing, load 1, %s / %s:\n\n| routers | %s |\n|---|%s\n", own, fixed, strings.Join(replicated, " | "), strings.Repeat("---|", len(replicated)))
	for _, n := range []string{"2", "4"} {
		fmt.Fprintf(b, "| %s |", n)
		for _, s := range replicated {
			c := Cell{Scenario: s, Load: 1, Policy: own, Variant: "replicas-" + n}
			mine := r.mean(c)
			c.Policy = fixed
			fmt.Fprintf(b, " %s / %s |", digits(mine), digits(r.mean(c)))
		}
		b.WriteString("\n")
	}
}

// digits prints seconds with as many digits as mean something.
func digits(v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case v < 1:
		return fmt.Sprintf("%.3f", v)
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.1f", v)
}
