package feed

import (
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// Several engines behind one address, as a Service or a load balancer has them, look
// like one that restarts all the time: its blocks are dropped again and again, and a
// request lands on any of them. Their processes began at different times.

// inTurn notices that start times go back, which those of one engine do not: a new
// process begins after the old one. Once may be a clock that was set.
type inTurn struct {
	latest float64
	back   int
}

// sees takes the start time of the next page, and reports that this proves it.
func (t *inTurn) sees(start telemetry.Value) (proof bool) {
	if !start.Known {
		return false
	}
	if start.V < t.latest {
		t.back++
		proof = t.back == 2
	}
	t.latest = start.V
	return proof
}

// hintSeveral says what to do about it.
const hintSeveral = "processes that began at different times answer there in turn, as behind a Service or load balancer: each pod takes one engine's own address"

// pagesAlike is how many pages have to be of one process: of two engines that chance
// picks from, all are by one in 1 of 16 cases.
const pagesAlike = 5

// several reads the page again, over connections of their own.
func (r *probe) several(spec pod.Spec, first *telemetry.Sample) {
	if !first.ProcessStart.Known {
		return
	}
	for range pagesAlike - 1 {
		r.Client.CloseIdleConnections()
		s, err := r.page(spec)
		if err != nil || !s.ProcessStart.Known {
			return
		}
		if s.ProcessStart.V != first.ProcessStart.V {
			r.findings = append(r.findings, Finding{Severity: SeverityWarning, Code: "several-engines", Pod: r.name, Field: "address", Value: spec.Address, Hint: hintSeveral})
			return
		}
	}
}
