// Package check looks at a fleet from outside, pod by pod and port by port, and
// says what it met: one line per fact.
package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// Formats are the values of -o.
func Formats() []string { return []string{"table", "json", "yaml"} }

// Prober looks at one pod.
type Prober interface {
	Probe(ctx context.Context, spec pod.Spec) ([]feed.Fact, []feed.Finding)
}

// Command is one run of check.
type Command struct {
	Prober  Prober
	Timeout time.Duration // of one pod
	Format  string
	FailOn  string // "error" or "warning": the mildest severity that makes the answer no
}

// Report is what check prints with -o json: kind Check.
type Report struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Config     string         `json:"config"`
	Pods       int            `json:"pods"`
	Facts      []feed.Fact    `json:"facts"`
	Findings   []feed.Finding `json:"findings"`
}

// atOnce bounds the pods probed in parallel: enough to hide a few that hang,
// few enough to spare file descriptors.
const atOnce = 32

// Run probes the pods and prints the report. It ends with a Negative error when
// something is wrong.
func (c *Command) Run(ctx context.Context, config string, pods []pod.Spec, s *out.Streams) error {
	r := Report{APIVersion: "eppctl/v1", Kind: "Check", Config: config, Pods: len(pods), Facts: []feed.Fact{}, Findings: []feed.Finding{}}
	r.probe(ctx, c, pods, s)
	if ctx.Err() != nil {
		return &inspect.Error{Kind: inspect.Interrupted, Code: "E_INTERRUPTED", What: "interrupted", Err: ctx.Err()}
	}
	if err := c.print(s, &r); err != nil {
		return err
	}
	if n := r.against(c.FailOn); n > 0 {
		return &inspect.Error{Kind: inspect.Negative, Code: "E_FINDINGS", What: fmt.Sprintf("%d things to look at", n)}
	}
	return nil
}

// probe fills the report; facts stand in the order of the pods.
func (r *Report) probe(ctx context.Context, c *Command, pods []pod.Spec, s *out.Streams) {
	facts, findings := make([][]feed.Fact, len(pods)), make([][]feed.Finding, len(pods))
	bar := newProgress(s, len(pods))
	defer bar.end()
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i, spec := range pods {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, c.Timeout)
			defer cancel()
			facts[i], findings[i] = c.Prober.Probe(ctx, spec)
			bar.step()
			return nil
		})
	}
	_ = g.Wait() // no function of it fails
	r.Facts = append(r.Facts, slices.Concat(facts...)...)
	r.Findings = append(r.Findings, slices.Concat(findings...)...)
	if sources := sourced(pods, facts); len(pods) > 0 && sources == 0 {
		r.Findings = append(r.Findings, feed.Finding{
			Severity: feed.SeverityWarning, Code: "no-event-sources",
			Hint: fmt.Sprintf("0 of %d pods have an event source: nothing is known of their caches", len(pods)),
		})
	}
	slices.SortStableFunc(r.Findings, func(a, b feed.Finding) int { return cmp.Compare(weight(b.Severity), weight(a.Severity)) })
}

// sourced counts the pods whose events can be had.
func sourced(pods []pod.Spec, facts [][]feed.Fact) int {
	n := 0
	for i := range pods {
		if slices.ContainsFunc(facts[i], func(f feed.Fact) bool { return f.What == "events" && f.OK }) {
			n++
		}
	}
	return n
}

func weight(s feed.Severity) int {
	return slices.Index([]feed.Severity{feed.SeverityInfo, feed.SeverityWarning, feed.SeverityError}, s)
}

// against counts failed facts and the findings that are at least as grave.
func (r *Report) against(failOn string) int {
	n := 0
	for _, f := range r.Facts {
		if !f.OK {
			n++
		}
	}
	least := feed.SeverityWarning
	if failOn == string(feed.SeverityError) {
		least = feed.SeverityError
	}
	for _, f := range r.Findings {
		if weight(f.Severity) >= weight(least) {
			n++
		}
	}
	return n
}
