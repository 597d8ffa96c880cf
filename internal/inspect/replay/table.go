package replay

import (
	"fmt"

	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/inspect/replay/page"
	"github.com/eppctl/eppctl/internal/inspect/replay/recorded"
)

// printTable is one row per run; what was played goes to stderr, above it.
func printTable(s *out.Streams, r *page.Report) error {
	fmt.Fprintf(s.Err, "%s: %s\n%s\n", out.Clean(r.Workload), r.Describe(), r.Fleet.Describe())
	for _, note := range r.Notes {
		fmt.Fprintf(s.Err, "note: %s\n", out.Clean(note))
	}
	t := &out.Table{Columns: []out.Column{{Name: "POLICY"}}}
	for _, name := range []string{"SPEED", "TTFT", "P50", "P90", "P99", "<2S", "HIT", "BUSY", "SKEW", "PREEMPT", "RESENT"} {
		t.Columns = append(t.Columns, out.Column{Name: name, Right: true})
	}
	if r.Observed != nil {
		t.Columns = append(t.Columns, out.Column{Name: "CHANGED", Right: true})
		t.Add(observedRow(r.Observed)...)
	}
	for i := range r.Runs {
		x := &r.Runs[i]
		cells := []string{x.Policy, fmt.Sprintf("%g", x.Speed), sec(x.Mean), sec(x.P50), sec(x.P90), sec(x.P99), share(x.Under), share(x.Hit), share(x.Busy),
			fmt.Sprintf("%.2f", x.MaxMean), fmt.Sprint(x.Preempt), fmt.Sprint(x.Resent)}
		if r.Observed != nil {
			cells = append(cells, changed(x.Changed))
		}
		t.Add(cells...)
	}
	return t.Write(s.Out, s)
}

// sec is seconds with three digits that mean something.
func sec(v float64) string {
	switch {
	case v < 1:
		return fmt.Sprintf("%.0fms", 1000*v)
	case v < 10:
		return fmt.Sprintf("%.2fs", v)
	case v < 100:
		return fmt.Sprintf("%.1fs", v)
	}
	return fmt.Sprintf("%.0fs", v)
}

func share(v float64) string { return fmt.Sprintf("%.1f%%", 100*v) }

// observedRow is what was recorded, in the columns of the runs.
func observedRow(o *recorded.Observed) []string {
	times := []string{"-", "-", "-", "-", "-"}
	if o.Streamed > 0 {
		times = []string{sec(o.Mean), sec(o.P50), sec(o.P90), sec(o.P99), share(o.Under)}
	}
	row := append([]string{"(observed)", "1"}, times...)
	return append(row, share(o.Hit), "-", fmt.Sprintf("%.2f", o.MaxMean), "-", "-", "-")
}

func changed(c *page.Changed) string {
	if c == nil || c.Of == 0 {
		return "-"
	}
	return share(c.Share())
}
