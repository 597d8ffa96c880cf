package check

import (
	"slices"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
)

// heard fills the report with what came of listening.
func (r *Report) heard(h *hearing) {
	r.Listened = h.listened()
	for _, s := range h.streams {
		w := h.witness(s)
		r.Facts = append(r.Facts, s.Fact(w))
		r.Findings = append(r.Findings, s.Findings(w)...)
	}
	r.silence(h)
}

// silence is what there should have been and was not: nothing heard is no good news.
func (r *Report) silence(h *hearing) {
	add := func(pod, hint string) {
		r.Findings = append(r.Findings, feed.Finding{Severity: feed.SeverityWarning, Code: string(reason.NotHeard), Pod: pod, Hint: hint})
	}
	live, replayed := h.messages()
	switch {
	case h.Past && live+replayed == 0:
		add("", "there is no message in "+h.Source+": nothing in it can be judged")
	case len(h.streams) == 0 && len(h.config.Pods) == 0:
		add("", "there is no event stream: nobody has dialled in, or no pod is followed")
	}
	for i, p := range h.specs {
		if i < len(h.probed) && bad(h.probed[i].Facts) || !h.expects(p) {
			continue // it is said why
		}
		if !slices.ContainsFunc(h.streams, func(s *stream) bool { return s.Pod.Name == p.Name }) {
			add(p.Name, "it is in the configuration, and no stream of it in what came of "+h.Source)
		}
	}
}

// expects reports that there should be a stream of a configured pod. Events that have
// to be fetched are fetched by serve alone, and what a recording should hold is not
// known but for the name.
func (h *hearing) expects(p pod.Spec) bool {
	if h.first == nil { // nothing was probed
		return true
	}
	return len(p.Events) > 0 || p.Bind != ""
}

// faulty reports that a probe has found an event port to be of no use: what
// follows from that is no news.
func faulty(found []feed.Finding, endpoint string) bool {
	return slices.ContainsFunc(found, func(f feed.Finding) bool {
		return f.Field == "events" && f.Value == endpoint && (f.Code == string(reason.WrongPort) || f.Code == string(reason.Disconnected))
	})
}
