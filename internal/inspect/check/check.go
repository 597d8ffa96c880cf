// Package check looks at a fleet from outside, pod by pod and port by port, and
// says what it met: one line per fact.
package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// Config is the part of the configuration that check compares with the world.
type Config struct {
	Path          string
	Pods          []pod.Spec // those to probe
	Whole         bool       // they are all of the file's
	Models        []Model
	EndpointsFile string // "" = none
}

// Command is one run of check.
type Command struct {
	Prober     Prober
	Timeout    time.Duration // of one pod
	Format     string
	FailOn     string // "error" or "warning": the mildest severity that makes the answer no
	ConfigOnly bool   // the file alone: nothing is dialled, nothing is written
}

// Report is what check prints with -o json: kind Check.
type Report struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Config     string         `json:"config"`
	Pods       int            `json:"pods"`
	Models     int            `json:"models"`
	Facts      []feed.Fact    `json:"facts"`
	Findings   []feed.Finding `json:"findings"`
}

// atOnce bounds the pods probed in parallel: enough to hide a few that hang,
// few enough to spare file descriptors.
const atOnce = 32

// Run probes the pods and prints the report. It ends with a Negative error when
// something is wrong.
func (c *Command) Run(ctx context.Context, config Config, s *out.Streams) error {
	r := Report{
		APIVersion: "eppctl/v1", Kind: "Check", Config: config.Path, Pods: len(config.Pods), Models: len(config.Models),
		Facts: []feed.Fact{}, Findings: []feed.Finding{},
	}
	if !c.ConfigOnly {
		r.folder(config.EndpointsFile)
		r.probe(ctx, c, config, s)
	}
	if ctx.Err() != nil {
		return &inspect.Error{Kind: inspect.Interrupted, Code: "E_INTERRUPTED", What: "interrupted", Err: ctx.Err()}
	}
	if err := c.print(s, &r); err != nil {
		return err
	}
	switch n := r.against(c.FailOn); n {
	case 0:
		return nil
	case 1:
		return &inspect.Error{Kind: inspect.Negative, Code: "E_FINDINGS", What: "1 thing to look at", Hint: r.next()}
	default:
		return &inspect.Error{Kind: inspect.Negative, Code: "E_FINDINGS", What: fmt.Sprintf("%d things to look at", n), Hint: r.next()}
	}
}

// next is what to do about the first failure.
func (r *Report) next() string {
	for _, f := range r.Facts {
		switch {
		case f.OK || f.Skipped:
		case f.What == "http":
			return "try: start the engine, or correct the address of " + f.Pod
		case f.What == endpointsFile:
			return "try: mkdir -p the folder, and run check as the user of serve"
		case f.Detail != "":
			return fmt.Sprintf("try: look at %s of %s first", f.What, f.Pod)
		}
	}
	for _, f := range r.Findings {
		if f.Severity == feed.SeverityError {
			return "try: correct the errors first"
		}
	}
	return "try: --fail-on error, if the warnings are meant so"
}

const endpointsFile = "endpoints_file"

// folder finds out whether serve, as the user that runs check, could replace the
// hosts file: it writes a file beside it and renames that.
func (r *Report) folder(path string) {
	if path == "" {
		return
	}
	fact := feed.Fact{What: endpointsFile, OK: true, Detail: path + " can be written"}
	f, err := os.CreateTemp(filepath.Dir(path), ".eppctl-check-*")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		fact.OK, fact.Detail = false, "the folder cannot be written to: "+err.Error()
	}
	r.Facts = append(r.Facts, fact)
}

// probe fills the report; facts stand in the order of the pods.
func (r *Report) probe(ctx context.Context, c *Command, config Config, s *out.Streams) {
	pods := config.Pods
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
	r.Findings = append(r.Findings, told(slices.Concat(findings...), config.Models)...)
	lists := listed(r.Facts)
	r.Findings = append(r.Findings, models(config.Models, lists, config.Whole && len(lists) == len(pods))...)
	if asked, sources := sourced(facts); asked > 0 && sources == 0 {
		r.Findings = append(r.Findings, feed.Finding{
			Severity: feed.SeverityWarning, Code: "no-event-sources",
			Hint: fmt.Sprintf("of %d pods that answer none has an event source: nothing is known of their caches", asked),
		})
	}
	slices.SortStableFunc(r.Findings, func(a, b feed.Finding) int { return cmp.Compare(weight(b.Severity), weight(a.Severity)) })
}

// sourced counts the pods that could be asked for their events, and those of them
// whose events can be had.
func sourced(facts [][]feed.Fact) (asked, have int) {
	for _, list := range facts {
		if slices.ContainsFunc(list, func(f feed.Fact) bool { return f.What == "events" && !f.Skipped }) {
			asked++
		}
		if slices.ContainsFunc(list, func(f feed.Fact) bool { return f.What == "events" && f.OK }) {
			have++
		}
	}
	return asked, have
}

func weight(s feed.Severity) int {
	return slices.Index([]feed.Severity{feed.SeverityInfo, feed.SeverityWarning, feed.SeverityError}, s)
}

// against counts failed facts and the findings that are at least as grave.
func (r *Report) against(failOn string) int {
	n := 0
	for _, f := range r.Facts {
		if !f.OK && !f.Skipped {
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
