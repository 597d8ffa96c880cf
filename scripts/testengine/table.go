package main

import (
	"fmt"

	"github.com/eppctl/eppctl/internal/report"
)

const header = "  %-40s %7s %10s %9s\n"

func (r row) line() string {
	mark := "ok"
	switch {
	case r.Unpredictable != "":
		mark = "not to be predicted: " + r.Unpredictable
	case r.wrong():
		mark = "MISMATCH"
	}
	return fmt.Sprintf("  %-40s %7d %10d %9d  %s\n", r.Name, r.Prompt, r.Predicted, r.Reported, mark)
}

// summary counts the rows that events can predict.
type summary struct {
	requests, comparable, exact, predicted, reported int
}

func summarise(rows []row) (s summary) {
	for _, r := range rows {
		s.requests++
		if r.Unpredictable != "" {
			continue
		}
		s.comparable++
		s.predicted += r.Predicted
		s.reported += r.Reported
		if !r.wrong() {
			s.exact++
		}
	}
	return s
}

func (s summary) report() []report.Row {
	return []report.Row{
		{Name: "requests", Value: float64(s.requests), Unit: "requests"},
		{Name: "comparable", Value: float64(s.comparable), Unit: "requests"},
		report.Row{Name: "exact", Value: float64(s.exact), Unit: "requests", Target: "= comparable"}.Against(float64(s.comparable)),
		report.Row{Name: "cached_tokens_predicted", Value: float64(s.predicted), Unit: "tokens", Target: "= reported"}.Against(float64(s.reported)),
	}
}

func compareReport(list []compared) []report.Row {
	right := 0
	for _, c := range list {
		if !c.wrong() {
			right++
		}
	}
	return []report.Row{
		{Name: "compared", Value: float64(len(list)), Unit: "requests"},
		report.Row{Name: "compared_as_expected", Value: float64(right), Unit: "requests", Target: "= compared"}.Against(float64(len(list))),
	}
}
