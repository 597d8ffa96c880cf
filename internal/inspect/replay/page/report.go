package page

import (
	"fmt"
	"strings"

	"github.com/eppctl/eppctl/internal/inspect/replay/fleet"
	"github.com/eppctl/eppctl/internal/inspect/replay/recorded"
	"github.com/eppctl/eppctl/internal/inspect/replay/workload"
)

// Report is a replay: what was played on what, and what came of it.
type Report struct {
	Workload string         `json:"workload"`
	Stats    workload.Stats `json:"stats"`
	Fleet    Fleet          `json:"fleet"`
	Runs     []Run          `json:"runs"`
	// Observed is what the requests met when they were recorded; nil = they are of no
	// recording. Notes say what the recording cannot tell.
	Observed *recorded.Observed `json:"observed,omitempty"`
	Notes    []string           `json:"notes,omitempty"`
}

// Run is one policy at one speed. The speed divides the workload's arrival times.
type Run struct {
	Policy string  `json:"-"` // in the result too
	Speed  float64 `json:"speed"`
	*fleet.Result
	// Changed is how many of the recorded decisions the policy would have given to
	// another pod, all else as it was; nil = the recording does not tell.
	Changed *Changed `json:"changed,omitempty"`
}

// Changed is so many decisions of those that can be told. Ties count by how likely
// they end elsewhere.
type Changed struct {
	Decisions float64 `json:"decisions"`
	Of        int     `json:"of"`
}

// Share is the part of them, 0 to 1.
func (c *Changed) Share() float64 { return c.Decisions / float64(max(c.Of, 1)) }

// Fleet is what served.
type Fleet struct {
	Profile    string   `json:"profile"`
	Pods       int      `json:"pods"`
	Replicas   int      `json:"replicas"`
	Seed       uint64   `json:"seed"`
	Scrape     float64  `json:"scrape_interval_s"`
	EventDelay float64  `json:"event_delay_s"`
	Loss       float64  `json:"event_loss"`
	PoolTokens int      `json:"kv_pool_tokens"`
	HostTokens int      `json:"host_tokens"`
	Adapters   int      `json:"adapters"`
	Events     []string `json:"events,omitempty"` // what happens to it, and settings
}

// Describe is the workload in words.
func (r *Report) Describe() string {
	s := &r.Stats
	return fmt.Sprintf("%d requests in %.0f s at speed 1; prompts of %.0f tokens, answers of %.0f; an unlimited shared cache would hold %.1f%% of the blocks",
		s.Requests, s.Seconds, s.Prompt, s.Output, 100*s.IdealHit)
}

// Describe is the fleet in words.
func (f *Fleet) Describe() string {
	parts := []string{fmt.Sprintf("simulated: %d pods (%s, %d KV tokens), %d router(s), scrapes every %gs, events after %gs, seed %d",
		f.Pods, f.Profile, f.PoolTokens, f.Replicas, f.Scrape, f.EventDelay, f.Seed)}
	if f.HostTokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens of host memory", f.HostTokens))
	}
	if f.Adapters > 0 {
		parts = append(parts, fmt.Sprintf("%d adapters", f.Adapters))
	}
	if f.Loss > 0 {
		parts = append(parts, fmt.Sprintf("%.1f%% of event batches lost", 100*f.Loss))
	}
	return strings.Join(append(parts, f.Events...), "; ")
}

// policies lists the policies in order of appearance.
func (r *Report) policies() (names []string) {
	seen := map[string]bool{}
	for i := range r.Runs {
		if n := r.Runs[i].Policy; !seen[n] {
			seen[n] = true
			names = append(names, n)
		}
	}
	return names
}
