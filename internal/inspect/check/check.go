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
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/modelsource"
)

// Formats are the values of -o.
func Formats() []string { return []string{"table", "json", "yaml"} }

// Prober looks at one pod.
type Prober interface {
	Probe(ctx context.Context, spec pod.Spec) feed.Probed
	Sample(ctx context.Context, spec pod.Spec) (*telemetry.Sample, error)
}

// Config is the part of the configuration that check compares with the world.
type Config struct {
	Path          string     // "" = there is none
	Pods          []pod.Spec // those to probe
	Fleet         []pod.Spec // all of the file's; nil = Pods
	Whole         bool       // Pods are all of the file's
	Models        []Model
	Tokenizers    []Tokenizer // those that serve loads
	EndpointsFile string      // "" = none
}

// Command is one run of check.
type Command struct {
	Prober     Prober
	Hub        func() (*modelsource.Settings, error) // where Config.Tokenizers are looked for
	Timeout    time.Duration                         // of one pod
	Format     string
	FailOn     string // "error" or "warning": the mildest severity that makes the answer no
	ConfigOnly bool   // nothing is dialled, nothing is written; files that are here are read
	Listen     *Listening
}

// Report is what check prints with -o json: kind Check.
type Report struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Config     string         `json:"config"`
	Pods       int            `json:"pods"`
	Models     int            `json:"models"`
	Listened   *Listened      `json:"listened"` // null: nobody listened
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
	var probed []feed.Probed
	r.Facts = append(r.Facts, c.tokenizers(ctx, config.Tokenizers)...)
	if !c.ConfigOnly {
		r.folder(config.EndpointsFile)
		probed = c.probe(ctx, config.Pods, s)
	}
	if ctx.Err() != nil {
		return &inspect.Error{Kind: inspect.Interrupted, Code: "E_INTERRUPTED", What: "interrupted", Err: ctx.Err()}
	}
	var h *hearing
	var heard error // the report stands all the same
	if c.Listen != nil {
		if h, heard = c.listen(ctx, config, probed); vain(heard, h) {
			return heard
		}
		probed = h.probed
	}
	r.probed(probed, config)
	if h != nil {
		r.heard(h)
	}
	r.sort()
	if err := c.print(s, &r); err != nil {
		return err
	}
	return errors.Join(heard, r.verdict(c.FailOn))
}

// vain reports an error of listening that leaves nothing to report.
func vain(err error, h *hearing) bool {
	var own *inspect.Error
	switch {
	case err == nil:
		return false
	case errors.As(err, &own) && own.Kind == inspect.Usage:
		return true
	case errors.As(err, &own) && own.Kind == inspect.Negative: // --expect
		return false
	}
	return h.first == nil && len(h.streams) == 0
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

// probe asks all pods at once; what came of them stands in their order.
func (c *Command) probe(ctx context.Context, pods []pod.Spec, s *out.Streams) []feed.Probed {
	probed := make([]feed.Probed, len(pods))
	bar := newProgress(s, len(pods))
	defer bar.end()
	c.each(ctx, len(pods), func(ctx context.Context, i int) {
		probed[i] = c.Prober.Probe(ctx, pods[i])
		bar.step()
	})
	return probed
}

// each calls do for each of n pods, some at once, with the time that one has.
func (c *Command) each(ctx context.Context, n int, do func(ctx context.Context, i int)) {
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i := range n {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, c.Timeout)
			defer cancel()
			do(ctx, i)
			return nil
		})
	}
	_ = g.Wait() // no function of it fails
}

// probed fills the report with what the pods answered.
func (r *Report) probed(probed []feed.Probed, config Config) {
	var findings []feed.Finding
	for _, p := range probed {
		r.Facts = append(r.Facts, p.Facts...)
		findings = append(findings, p.Findings...)
	}
	r.Findings = append(r.Findings, told(findings, config.Models)...)
	if probed == nil {
		return
	}
	lists := listed(r.Facts)
	r.Findings = append(r.Findings, models(config.Models, lists, config.Whole && len(lists) == len(config.Pods))...)
	if asked, sources := sourced(probed); asked > 0 && sources == 0 {
		r.Findings = append(r.Findings, feed.Finding{
			Severity: feed.SeverityWarning, Code: "no-event-sources",
			Hint: fmt.Sprintf("of %d pods that answer none has an event source: nothing is known of their caches", asked),
		})
	}
}

// sort puts the gravest findings first.
func (r *Report) sort() {
	slices.SortStableFunc(r.Findings, func(a, b feed.Finding) int { return cmp.Compare(weight(b.Severity), weight(a.Severity)) })
}

// sourced counts the pods that could be asked for their events, and those of them
// whose events can be had.
func sourced(probed []feed.Probed) (asked, have int) {
	for _, p := range probed {
		list := p.Facts
		if slices.ContainsFunc(list, func(f feed.Fact) bool { return f.What == "events" && !f.Skipped && f.Code == "" }) {
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
