package sim

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/eppctl/eppctl/internal/report"
)

// DemoOptions are those of `eppctl sim demo`.
type DemoOptions struct {
	Eppctl  string // this binary
	Envoy   string // "" = $ENVOY, or envoy on PATH
	Keep    bool   // leave everything running until ctx ends
	Out     string // file of the measured rows
	Systems int    // system prompts that the conversations share, 0 = DemoSystems
}

// DemoSystems are more system prompts than one engine's cache holds.
const DemoSystems = 16

// demoFleet and demoWork are sized so that the fleet together holds every
// conversation but one engine does not: where a request goes decides whether
// its prefix is there.
var (
	demoFleet = FleetOptions{Engines: 4, Engine: EngineOptions{Model: "sim", Blocks: 1500, Speedup: 2, Profile: H100x2}}
	demoWork  = WorkloadOptions{Seed: 1, Conversations: 40, Turns: 6, Systems: DemoSystems, SystemWords: 4000, UserWords: 120,
		Output: 24, Gap: 150 * time.Millisecond, Think: 300 * time.Millisecond, Model: "sim"}
)

// Demo runs one workload twice over the same engines and the same Envoy, with
// the picker and with round robin, and prints what each made of it.
func Demo(ctx context.Context, o DemoOptions, stdout, stderr io.Writer) error {
	envoy, err := findEnvoy(o.Envoy)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "eppctl-demo-")
	if err != nil {
		return err
	}
	f, err := StartFleet(demoFleet)
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Fprintf(stderr, "%d simulated engines, eppctl serve and Envoy start (files: %s)\n", len(f.Engines), dir)
	s, err := StartStack(f, StackOptions{Eppctl: o.Eppctl, Envoy: envoy, Dir: dir, Baseline: true})
	if err != nil {
		return err
	}
	defer s.Close()
	load := demoWork
	load.Systems = cmp.Or(o.Systems, load.Systems)
	d := demo{stack: s, load: load, work: load.Draw(), stderr: stderr}
	if err := d.run(ctx); err != nil {
		return err
	}
	if err := d.print(stdout, o.Out); err != nil {
		return err
	}
	if o.Keep {
		d.hint(stdout)
		<-ctx.Done()
		return nil
	}
	if err := s.Close(); err != nil {
		return err
	}
	fmt.Fprint(stdout, ended)
	return os.RemoveAll(dir)
}

// ended stands below a card whose last line says what to try.
const ended = "All of it has ended by now. To try that and more: make demo KEEP=1, which is eppctl sim demo --keep.\n"

// demo collects what a run of it measures.
type demo struct {
	stack   *Stack
	load    WorkloadOptions
	work    []Conversation
	stderr  io.Writer
	picked  []Outcome
	robin   []Outcome
	metrics []byte // the picker's page after its run
	explain []byte // the table for one more turn
}

func (d *demo) run(ctx context.Context) error {
	d.picked = d.drive(ctx, "eppctl", d.stack.Proxy)
	var err error
	if d.metrics, err = fetch("http://" + d.stack.Listen.Metrics + "/metrics"); err != nil {
		return fmt.Errorf("picker's metrics: %w", err)
	}
	if d.explain, err = d.explainNext(); err != nil {
		return err
	}
	// Cold caches for the second run, as for the first. The picker would hear of
	// that only with the next events; from here on nobody asks it.
	for _, e := range d.stack.Fleet.Engines {
		if err := e.resetCache(ctx); err != nil {
			return err
		}
	}
	d.robin = d.drive(ctx, "round robin", d.stack.Baseline)
	return ctx.Err()
}

func (d *demo) drive(ctx context.Context, name, url string) []Outcome {
	total := 0
	for _, c := range d.work {
		total += len(c.Turns)
	}
	bar := newProgress(d.stderr, name, total)
	defer bar.end()
	tr := &http.Transport{MaxIdleConnsPerHost: 64}
	defer tr.CloseIdleConnections()
	driver := Driver{URL: url, Client: &http.Client{Transport: tr}, MaxInFlight: 64, Done: func(Outcome) { bar.step() }}
	return driver.Run(ctx, d.work)
}

// nextTurn is a request that continues the first conversation's history.
func (d *demo) nextTurn() []byte {
	c := d.work[0]
	b, err := json.Marshal(map[string]any{"model": c.Model, "max_tokens": 8, "messages": []chatMessage{
		{"system", c.System}, {"user", c.Turns[0]}}})
	if err != nil {
		panic(err) // plain strings always marshal
	}
	return b
}

func (d *demo) explainNext() ([]byte, error) {
	file := filepath.Join(d.stack.opt.Dir, "request.json")
	if err := os.WriteFile(file, d.nextTurn(), 0o644); err != nil {
		return nil, err
	}
	cmd := exec.Command(d.stack.opt.Eppctl, d.explainArgs(file)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("eppctl explain: %w: %s", err, errs.Bytes())
	}
	return out, nil
}

func (d *demo) explainArgs(file string) []string {
	return []string{"explain", "--addr", d.stack.Listen.Admin, "-f", file}
}

func (d *demo) rows() ([]report.Row, error) {
	p, r := summarise(d.picked), summarise(d.robin)
	met := func(yes bool) string {
		if yes {
			return ": met"
		}
		return ": missed"
	}
	rows := []report.Row{
		report.Row{Name: "requests", Value: float64(p.requests), Unit: "requests"}.Against(float64(r.requests)),
		report.Row{Name: "failed_requests", Value: float64(p.failed), Unit: "requests", Target: "0" + met(p.failed == 0)}.Against(float64(r.failed)),
		report.Row{Name: "prefix_hit_share", Value: p.hitShare, Unit: "of prompt tokens", Target: "> round robin" + met(p.hitShare > r.hitShare)}.Against(r.hitShare),
		report.Row{Name: "ttft_mean_ms", Value: ms(p.ttftMean), Unit: "ms", Target: "< round robin" + met(p.ttftMean < r.ttftMean)}.Against(ms(r.ttftMean)),
		report.Row{Name: "ttft_p90_ms", Value: ms(p.ttftP90), Unit: "ms", Target: "< round robin" + met(p.ttftP90 < r.ttftP90)}.Against(ms(r.ttftP90)),
	}
	for _, q := range []struct {
		name string
		q    float64
	}{{"picker_p50_ms", 0.5}, {"picker_p99_ms", 0.99}} {
		v, err := histogramQuantile(d.metrics, "eppctl_pick_duration_seconds", q.q)
		if err != nil {
			return nil, err
		}
		rows = append(rows, report.Row{Name: q.name, Value: v * 1e3, Unit: "ms"})
	}
	return rows, nil
}

// busyPicker is ms. A pick waits for nothing but processors: the run of the README has a
// p99 of 9.78 on two that were shared, and ten times that says that they were not there.
const busyPicker = 100

// busy says when a run is of the machine rather than of the policies.
func busy(rows []report.Row) string {
	for _, r := range rows {
		if r.Name == "picker_p99_ms" && r.Value > busyPicker {
			return fmt.Sprintf("\npicker p99 %.0f ms: the machine is too busy to compare\n", r.Value)
		}
	}
	return ""
}

func (d *demo) print(w io.Writer, out string) error {
	rows, err := d.rows()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\nOne workload twice through Envoy: %d conversations of %d turns with %d system prompts over %d engines.\n"+
		"VALUE is with eppctl, REFERENCE with round robin, both from cold caches; RATIO is VALUE / REFERENCE.\n\n",
		len(d.work), d.load.Turns, d.load.Systems, len(d.stack.Fleet.Engines))
	if err := report.Print(w, rows); err != nil {
		return err
	}
	fmt.Fprint(w, busy(rows))
	fmt.Fprintf(w, "\nWhy a request goes where it goes: eppctl explain, for a request that repeats the first turn of one conversation\n\n%s\n", d.explain)
	if err := report.Write(out, rows); err != nil {
		return err
	}
	for _, o := range append(d.picked, d.robin...) {
		if o.Failed() {
			return fmt.Errorf("conversation %d, turn %d failed: %w", o.Conversation, o.Turn+1, o.Err)
		}
	}
	return nil
}

func (d *demo) hint(w io.Writer) {
	file := filepath.Join(d.stack.opt.Dir, "request.json")
	fmt.Fprintf(w, "It keeps running; end it with Ctrl-C. The engines' caches are those of the round-robin run by now, so that\n"+
		"explain shows other pods than above. Try:\n\n"+
		"  curl -si %s/v1/chat/completions -H 'content-type: application/json' -d @%s\n"+
		"  %s explain --addr %s -f %s\n"+
		"  %s top --addr %s\n"+
		"  curl -s http://%s/metrics | grep -E '^eppctl_(%s)'\n\n"+
		"Configs and logs are in %s; they stay there after Ctrl-C.\n\n",
		d.stack.Proxy, file, d.stack.opt.Eppctl, d.stack.Listen.Admin, file, d.stack.opt.Eppctl, d.stack.Listen.Admin, d.stack.Listen.Metrics, hintMetrics, d.stack.opt.Dir)
}

// hintMetrics are three that tell most: the answers by code, what the prompts could
// share and did, and how long a pick takes.
const hintMetrics = "requests_total|prefix_tokens_total|pick_duration_seconds_(sum|count)"

type summary struct {
	requests, failed  int
	hitShare          float64
	ttftMean, ttftP90 time.Duration
}

func summarise(list []Outcome) summary {
	var s summary
	var prompt, cached int
	var ttft []time.Duration
	for _, o := range list {
		s.requests++
		if o.Failed() {
			s.failed++
			continue
		}
		prompt += o.Prompt
		cached += o.Cached
		ttft = append(ttft, o.TTFT)
	}
	if prompt > 0 {
		s.hitShare = float64(cached) / float64(prompt)
	}
	s.ttftMean, s.ttftP90 = mean(ttft), quantile(ttft, 0.9)
	return s
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// resetCache empties the engine's cache once it is idle.
func (e *Engine) resetCache(ctx context.Context) error {
	for ctx.Err() == nil {
		e.mu.Lock()
		ok := e.sched.reset()
		e.mu.Unlock()
		if ok {
			return nil
		}
		wait(ctx, 10*time.Millisecond)
	}
	return fmt.Errorf("engine %s never got idle: %w", e.Name(), ctx.Err())
}

var errNoEnvoy = errors.New("no Envoy found: set ENVOY=/path/to/envoy, or run `make demo`, which fetches one")

func findEnvoy(path string) (string, error) {
	if path == "" {
		path = os.Getenv("ENVOY")
	}
	if path == "" {
		path = "envoy"
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return "", fmt.Errorf("%w (%w)", errNoEnvoy, err)
	}
	return found, nil
}
