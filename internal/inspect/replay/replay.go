package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"sync"

	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/inspect/replay/fleet"
	"github.com/eppctl/eppctl/internal/inspect/replay/page"
	"github.com/eppctl/eppctl/internal/inspect/replay/workload"
)

// Run plays every policy at every speed and prints what came of it.
func Run(ctx context.Context, o *Options, s *out.Streams) error {
	if err := o.check(); err != nil {
		return unusable(err)
	}
	if err := writable(o.HTML); err != nil {
		return err
	}
	w, past, err := o.load(s.In)
	if err != nil {
		return unusable(err)
	}
	runs, err := o.play(ctx, w, s)
	if err != nil {
		return err
	}
	r := &page.Report{Workload: w.Name, Stats: w.Stats(), Fleet: summary(o), Runs: runs}
	if past != nil {
		past.report(r)
	}
	if o.HTML != "" {
		if err := write(o.HTML, r); err != nil {
			return err
		}
	}
	if o.Format == "json" {
		return printJSON(s.Out, r)
	}
	return printTable(s, r)
}

// unusable is a mistake in what was asked for.
func unusable(err error) error {
	e := &inspect.Error{Kind: inspect.Usage, Code: "E_USAGE", What: err.Error(), Hint: "see: eppctl replay --help", Err: err}
	var line *workload.LineError
	if errors.As(err, &line) {
		e.Code, e.Hint = "E_TRACE", "the trace is read as its publisher writes it; --requests N reads the first N rows only"
	}
	var bad *recording.FormatError
	if errors.As(err, &bad) {
		e.Code, e.Hint = "E_RECORDING", "serve --record-decisions FILE makes one"
	}
	return e
}

// load reads or makes the workload.
func (o *Options) load(stdin io.Reader) (w *workload.Workload, p *past, err error) {
	switch {
	case len(o.Decisions) > 0:
		return o.decided(stdin)
	case o.Workload != "":
		w, err = workload.Generate(o.Workload, o.Fleet.Seed, o.Parameters)
	case o.Trace == "-":
		w, err = workload.Read("stdin", stdin, o.Requests)
	default:
		w, err = readFile(o.Trace, o.Requests)
	}
	if err != nil {
		return nil, nil, err
	}
	w = w.Head(o.Requests)
	if o.Adapters > 0 {
		w = w.WithAdapters(o.Adapters, adapterZipf, o.Fleet.Seed)
	}
	return w, nil, nil
}

func readFile(path string, limit int) (*workload.Workload, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	defer f.Close()
	return workload.Read(path, f, limit)
}

// play runs all of them, as many at a time as there are processors. Each is alone in
// its own virtual time, so that the order in which they end changes nothing.
func (o *Options) play(ctx context.Context, w *workload.Workload, s *out.Streams) ([]page.Run, error) {
	runs := make([]page.Run, 0, len(o.Policies)*len(o.Speeds))
	for _, name := range o.Policies {
		for _, speed := range o.Speeds {
			runs = append(runs, page.Run{Policy: name, Speed: speed})
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	p := newProgress(s, len(runs)*len(w.Requests))
	defer p.end()
	todo := make(chan *page.Run)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(runs)) {
		workers.Go(func() {
			for x := range todo {
				if err := o.one(ctx, w, x, p); err != nil {
					stop(err)
				}
			}
		})
	}
	for i := range runs {
		if ctx.Err() == nil {
			todo <- &runs[i]
		}
	}
	close(todo)
	workers.Wait()
	return runs, context.Cause(ctx)
}

func (o *Options) one(ctx context.Context, w *workload.Workload, x *page.Run, p *progress) error {
	policy, err := o.policy(x.Policy)
	if err != nil {
		return unusable(err)
	}
	c := o.Fleet
	c.Speed = x.Speed
	last := 0
	x.Result, err = fleet.Run(ctx, w, policy, c, func(done, _ int) {
		if done-last >= 512 {
			p.add(done - last)
			last = done
		}
	})
	var bad *fleet.ConfigError
	if errors.As(err, &bad) {
		return unusable(err)
	}
	p.add(len(w.Requests) - last)
	return err
}

// summary is the fleet as reports name it.
func summary(o *Options) page.Fleet {
	c := &o.Fleet
	f := page.Fleet{
		Profile: c.Profile.Name, Pods: c.Pods, Replicas: c.Replicas, Seed: c.Seed, Scrape: c.Scrape, EventDelay: c.EventDelay,
		Loss: c.Loss, PoolTokens: c.Profile.PoolTokens, HostTokens: c.Profile.HostTokens, Adapters: o.Adapters,
	}
	for _, s := range c.Slow {
		f.Events = append(f.Events, fmt.Sprintf("pod-%d %gx slower from %g s", s.Pod, s.Factor, s.From))
	}
	for _, r := range c.Restarts {
		f.Events = append(f.Events, fmt.Sprintf("pod-%d restarts at %g s, away for %g s", r.Pod, r.At, r.Down))
	}
	for _, x := range c.Settings {
		f.Events = append(f.Events, "weights "+x.Key+"="+x.Value)
	}
	for _, x := range o.Weights {
		f.Events = append(f.Events, fmt.Sprintf("%s with %s=%g", WhatIf, x.Key, x.Value))
	}
	return f
}

func printJSON(w io.Writer, r *page.Report) error {
	b, err := json.Marshal(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		*page.Report
	}{"eppctl/v1", "Replay", r})
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s\n", out.JSON(b))
	return err
}

// writable fails where the report could not be written once all is played. What is
// there stays as it is, and nothing new is left; a pipe is not opened for a look.
func writable(path string) error {
	if path == "" {
		return nil
	}
	was, err := os.Stat(path)
	if err == nil && !was.Mode().IsRegular() && !was.IsDir() {
		return nil
	}
	f, open := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
	if open != nil {
		return fmt.Errorf("report: %w", open)
	}
	f.Close()
	if errors.Is(err, fs.ErrNotExist) {
		return os.Remove(path)
	}
	return nil
}

// write makes the report's file.
func write(path string, r *page.Report) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := page.Write(f, r); err != nil {
		f.Close()
		return fmt.Errorf("report %s: %w", path, err)
	}
	return f.Close()
}
