// Testengine runs a real engine behind Envoy and serve through a list of
// scenarios, and holds the cached tokens that serve predicts for each request
// against those that the engine reports. docs/test-engine.md says how to get an
// engine that runs on a CPU.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/report"
	"github.com/eppctl/eppctl/internal/sim"
)

// options are the flags.
type options struct {
	env           string // a Python environment, or "sim"
	models        string // folder of the models
	eppctl, envoy string
	out           string
	quiet         time.Duration
	listen        time.Duration // at most, for tap --check
	hasty         bool
}

func main() {
	o := options{}
	flag.StringVar(&o.env, "engine-env", os.Getenv("EPPCTL_ENGINE_ENV"), "Python environment that holds vLLM or SGLang, or sim")
	flag.StringVar(&o.models, "models", "testdata/engines/models", "folder of the models")
	flag.StringVar(&o.eppctl, "eppctl", "bin/eppctl", "the binary under test")
	flag.StringVar(&o.envoy, "envoy", os.Getenv("ENVOY"), "the Envoy in front of it")
	flag.StringVar(&o.out, "out", "out/test-engine.json", "file of the result")
	flag.DurationVar(&o.quiet, "quiet", 500*time.Millisecond, "without a new batch, the events of a request are in")
	flag.DurationVar(&o.listen, "listen", 30*time.Second, "how long tap --check waits for 20 events")
	flag.BoolVar(&o.hasty, "hasty", false, "do not wait, 2 s a request, until a prediction rests on events alone")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	switch {
	case errors.Is(err, errNegative):
		fmt.Fprintln(os.Stderr, "testengine:", err)
		os.Exit(3)
	case err != nil:
		fmt.Fprintln(os.Stderr, "testengine:", err)
		os.Exit(1)
	}
}

// errNegative: everything ran, and the answer is no.
var errNegative = errors.New("the engine and serve do not agree")

func run(ctx context.Context, o options, stdout io.Writer) error {
	dir, err := os.MkdirTemp("", "eppctl-test-engine-")
	if err != nil {
		return err
	}
	for _, p := range []*string{&o.env, &o.models, &o.eppctl} {
		if *p != "sim" {
			if *p, err = filepath.Abs(*p); err != nil {
				return err
			}
		}
	}
	e, err := find(o.env, o.models, dir)
	if err != nil {
		return err
	}
	return through(ctx, o, e, dir, stdout)
}

// through drives one engine. dir takes configurations and logs.
func through(ctx context.Context, o options, e engine, dir string, stdout io.Writer) (err error) {
	say := func(format string, a ...any) { fmt.Fprintf(stdout, format, a...) }
	say("engine: %s, logs in %s\n", e.about(), dir)
	defer e.kill()
	begun := time.Now()
	if err := e.start(ctx); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	say("ready after %.0f s\n", time.Since(begun).Seconds())
	stack, err := sim.StartStack(nil, sim.StackOptions{
		Eppctl: o.eppctl, Envoy: o.envoy, Dir: dir, Config: func(l sim.Listen) string { return config(e, l) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stack.Close()) }()
	d := &drive{shared: &shared{engine: e, stack: stack, dir: dir, quiet: o.quiet, hasty: o.hasty, blockSize: 32, random: random(), say: say}}
	if e.kind() == pod.EngineSGLang {
		d.blockSize = 16
	}
	return d.all(ctx, o)
}

// config is that of a fleet of this one engine.
func config(e engine, l sim.Listen) string {
	return fmt.Sprintf(`listen: {ext_proc: %q, health: %q, admin: %q, metrics: %q}
envoy: {endpoints_file: %q}
limits: {pick_deadline: 4s, tokenize_timeout: 3s} # an engine without a GPU tokenizes beside its steps
pods:
- %s
models:
- {name: %q, default: true, adapters: [%q]}
`, l.ExtProc, l.Health, l.Admin, l.Metrics, l.EndpointsFile, e.entry(), modelName, adapter)
}

// all runs the scenarios, then the checks.
func (d *drive) all(ctx context.Context, o options) error {
	if err := d.about(ctx); err != nil {
		return err
	}
	for _, s := range scenarios {
		d.scenario = s.name
		d.say("\n"+header, s.name, "PROMPT", "PREDICTED", "REPORTED")
		if err := s.run(ctx, d); err != nil {
			return fmt.Errorf("%s: %w\nthe end of the engine's log:\n%s", s.name, err, d.engine.log())
		}
	}
	sum := summarise(d.rows)
	d.say("\n%d requests, %d of them to be predicted: %d exact. Cached tokens: %d predicted, %d reported.\n",
		sum.requests, sum.comparable, sum.exact, sum.predicted, sum.reported)
	ids, err := d.compare(ctx, o)
	if err != nil {
		return err
	}
	if err := report.Write(o.out, append(sum.report(), compareReport(ids)...)); err != nil {
		return err
	}
	clean, err := d.checks(ctx, o)
	switch {
	case err != nil:
		return err
	case sum.exact != sum.comparable:
		return fmt.Errorf("%w: %d of %d requests", errNegative, sum.comparable-sum.exact, sum.comparable)
	case slices.ContainsFunc(ids, compared.wrong):
		return fmt.Errorf("%w: explain --compare-engine", errNegative)
	case !clean:
		return fmt.Errorf("%w: a check has findings", errNegative)
	}
	return nil
}

// checks runs eppctl's own over the engine, under requests: an idle engine
// publishes nothing that could be judged.
func (d *drive) checks(ctx context.Context, o options) (clean bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var busy sync.WaitGroup
	busy.Go(func() { d.load(ctx) })
	defer busy.Wait()
	defer cancel()
	clean = true
	for _, args := range [][]string{{"check"}, {"tap", "--check", "--replay", "--count", "20", "--for", o.listen.String(), "--expect", "events>0", "--expect", "gaps=0"}} {
		cmd := exec.CommandContext(ctx, o.eppctl, append(args, "--config", d.stack.Config)...)
		out, err := cmd.CombinedOutput()
		d.say("\neppctl %s\n%s", strings.Join(args, " "), out)
		var exit *exec.ExitError
		switch {
		case err == nil:
		case errors.As(err, &exit) && exit.ExitCode() == 3:
			clean = false
		default:
			return false, fmt.Errorf("eppctl %s: %w", args[0], err)
		}
	}
	return clean, nil
}

// load sends prompts that no row is about, until ctx ends.
func (d *drive) load(ctx context.Context) {
	for ctx.Err() == nil {
		text, err := json.Marshal(body{"model": modelName, "prompt": d.ids(3 * d.blockSize), "max_tokens": 2})
		if err != nil {
			return // plain numbers always marshal
		}
		// An error of a request that nobody waits for is the checks' to find.
		_ = d.call(ctx, http.MethodPost, d.stack.Proxy+"/v1/completions", text, "", nil)
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}
