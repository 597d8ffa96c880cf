package pick

import (
	"fmt"
	"strings"
)

// String draws the card as plain text: one stable form for tests and logs of
// tests, not the one for people. Every number has a fixed width and sign.
func (c *Card) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "request %s model %s tokens %d", c.RequestID, orDash(c.Model), c.Tokens)
	if !c.Exact {
		fmt.Fprintf(&s, " estimated %s", orDash(string(c.Unmatched)))
	}
	fmt.Fprintf(&s, "\nepoch %d cold %.4f s\n", c.Epoch, c.basis.cold)
	fmt.Fprintf(&s, "%-12s %-9s %6s %4s", "pod", "verdict", "cached", "d")
	for _, t := range terms {
		fmt.Fprintf(&s, " %11s", t.name)
	}
	fmt.Fprintf(&s, " %9s  %s\n", "total", "reason")
	order := c.Order(nil)
	for _, i := range order {
		c.drawRow(&s, &c.Rows[i], i == c.Winner)
	}
	for i := range c.Rows {
		if r := &c.Rows[i]; !r.Candidate {
			fmt.Fprintf(&s, " %-11s %-9s %g/%g\n", r.Pod.Spec.Name, r.Verdict, r.Value, r.Limit)
		}
	}
	c.drawPick(&s)
	return s.String()
}

func (c *Card) drawRow(s *strings.Builder, r *Row, won bool) {
	mark := " "
	if won {
		mark = ">"
	}
	fmt.Fprintf(s, "%s%-11s %-9s %6d %4d", mark, r.Pod.Spec.Name, r.Verdict, r.Cached, r.Depth)
	for _, x := range r.Terms {
		fmt.Fprintf(s, " %+11.4f", x)
	}
	fmt.Fprintf(s, " %+9.4f  %s %s %s\n", r.Total, orDash(string(r.Reason)), r.Sync, r.Telemetry)
}

func (c *Card) drawPick(s *strings.Builder) {
	fmt.Fprintf(s, "%s", c.Outcome)
	if c.Why != "" {
		fmt.Fprintf(s, " (%s)", c.Why)
	}
	if r := c.WinnerRow(); r != nil {
		fmt.Fprintf(s, " %s %s", r.Pod.Spec.Name, r.Pod.Target)
	}
	if c.RunnerUp >= 0 {
		fmt.Fprintf(s, " margin %+.4f over %s", c.Margin, c.Rows[c.RunnerUp].Pod.Spec.Name)
	}
	if c.Tie.Used {
		fmt.Fprintf(s, " tie of %d:", c.Tie.Size)
		for _, r := range c.tied() {
			fmt.Fprintf(s, " %s %016x", r.Pod.Spec.Name, r.Weight)
		}
	}
	s.WriteByte('\n')
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
