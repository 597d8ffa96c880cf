package main

import (
	"fmt"
	"slices"

	"github.com/eppctl/eppctl/internal/report"
)

// rows are the table. Names are stable. The reference of a row is the same of
// libzmq's subscriber; feed is the whole path from the socket to the index,
// receive ends with the frames, which is where libzmq's ends.
func (b *bench) rows() (rows []report.Row) {
	for _, w := range b.workloads {
		for _, n := range publishers {
			of := func(measure string) []float64 { return b.values[key(w.name, n, measure)] }
			target := ""
			if w.name == "2kB" {
				target = "<= 1.3 x libzmq"
			}
			for _, r := range []struct{ name, measure string }{{"receive", "frames"}, {"feed", "index"}} {
				name := fmt.Sprintf("%s_%s_%dpub", r.name, w.name, n)
				rows = append(rows,
					report.Row{Name: name + "_vs_libzmq", Value: median(of(r.measure)), Unit: "us CPU/message", Target: target}.Against(median(of("libzmq"))),
					report.Row{Name: name + "_best", Value: slices.Min(of(r.measure)), Unit: "us CPU/message"}.Against(slices.Min(of("libzmq"))),
					report.Row{Name: name + "_rate", Value: median(of(r.measure + "_rate")), Unit: "messages/s"}.Against(median(of("libzmq_rate"))))
			}
			if w.name != accounted {
				continue
			}
			name := fmt.Sprintf("feed_%s_%dpub", w.name, n)
			rows = append(rows,
				report.Row{Name: name + "_overrun_applied", Value: median(of("applied_rate")), Unit: "messages/s"},
				report.Row{Name: name + "_overrun_lost", Value: median(of("lost")), Unit: "of messages"},
				report.Row{Name: name + "_unaccounted", Value: slices.Max(of("unaccounted")), Unit: "messages", Target: "0"})
		}
	}
	return rows
}
