package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/serve"
	"github.com/eppctl/eppctl/internal/sim"
	"github.com/eppctl/eppctl/internal/testdata"
)

// eppctlRun runs the command line in this process.
func eppctlRun(args ...string) (code int, stdout, stderr string) {
	var o, e bytes.Buffer
	code = run(append([]string{}, args...), strings.NewReader(""), &o, &e, func(string) string { return "" })
	return code, o.String(), e.String()
}

// recordedFleet is a serve over simulated engines, and a tap that records it.
type recordedFleet struct {
	t      *testing.T
	engine *sim.Fleet
	admin  string
	config string
	file   string
	stop   func()
	tap    *exec.Cmd
	said   testdata.Buffer // by tap
}

func startRecorded(t *testing.T) *recordedFleet {
	t.Helper()
	fleet, err := sim.StartFleet(sim.FleetOptions{Engines: 3, Mixed: true})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r := &recordedFleet{t: t, engine: fleet, config: filepath.Join(dir, "eppctl.yaml"), file: filepath.Join(dir, "a.eptap")}
	const any = "127.0.0.1:0"
	text := fleet.Config(sim.Listen{ExtProc: any, Health: any, Admin: any, Metrics: any, EndpointsFile: filepath.Join(dir, "hosts.json")})
	text += "limits: {pick_deadline: 20s, render_timeout: 10s, tokenize_timeout: 10s}\n" // past the usual ones ids are guessed
	if err := os.WriteFile(r.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := serve.LoadConfig(r.config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan serve.Addresses, 1), make(chan error, 1)
	go func() {
		ended <- serve.Run(ctx, c, serve.Options{Ready: func(a serve.Addresses) { ready <- a }})
	}()
	select {
	case a := <-ready:
		r.admin = a.Admin
	case err := <-ended:
		t.Fatalf("serve: %v", err)
	}
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
		if err := fleet.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(r.stop)
	// The recording is asked for its begin too: serve has streams by then.
	eventuallyOK(t, "serve follows its pods", func() error {
		x, err := card(t, "--addr", r.admin, "--token-ids", "1,2,3")
		if err != nil {
			return err
		}
		for _, p := range x.Pods {
			if p.IndexState != "live" {
				return fmt.Errorf("%s is %s", p.Name, p.IndexState)
			}
		}
		return nil
	})
	r.tap = &exec.Cmd{Path: os.Args[0], Env: os.Environ(), Args: []string{"eppctl", "tap", "-q", "--from", "serve", "--addr", r.admin, "--write", r.file}, Stderr: &r.said}
	if err := r.tap.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.tap.Process.Kill() })
	return r
}

// eventuallyOK waits for what another process brings about.
func eventuallyOK(t *testing.T, what string, ok func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = ok(); err == nil {
			return
		}
	}
	t.Fatalf("never: %s: %v", what, err)
}

// send gives an engine a prompt; it returns when the answer begins.
func (r *recordedFleet) send(ctx context.Context, engine int, ids string, answer int) {
	r.t.Helper()
	body := fmt.Sprintf(`{"model":"sim","prompt":[%s],"max_tokens":%d,"stream":true}`, ids, answer)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.engine.Engines[engine].URL()+"/v1/completions", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		r.t.Fatalf("engine %d answers %s", engine, resp.Status)
	}
}

// idList is n token ids from first on.
func idList(first, n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprint(first+i))
	}
	return strings.Join(list, ",")
}

// card asks explain.
func card(t *testing.T, args ...string) (*pick.Explanation, error) {
	t.Helper()
	code, stdout, stderr := eppctlRun(append([]string{"explain", "-o", "json", "--header", "x-request-id=same"}, args...)...)
	if code != 0 {
		return nil, fmt.Errorf("exit code %d: %s", code, stderr)
	}
	testdata.Valid(t, "explain.json", []byte(stdout))
	var x pick.Explanation
	if err := json.Unmarshal([]byte(stdout), &x); err != nil {
		t.Fatal(err)
	}
	return &x, nil
}

// A recording of a running serve, asked as of the time at which that serve was
// asked, gives the card that it gave: every match, term, age and state.
func TestExplainReadEqualsLive(t *testing.T) {
	r := startRecorded(t)
	eventuallyOK(t, "the recording begins", func() error { _, err := os.Stat(r.file); return err })
	// In the recording too: it knows no page that came before it began.
	for what, source := range map[string][]string{"live": {"--addr", r.admin}, "recorded": {"--read", r.file, "--config", r.config}} {
		eventuallyOK(t, "all streams are live, "+what, func() error {
			x, err := card(t, append(source, "--token-ids", "1,2,3")...)
			if err != nil {
				return err
			}
			for _, p := range x.Pods {
				if p.IndexState != "live" || p.Telemetry != "fresh" {
					return fmt.Errorf("%s is %s and %s", p.Name, p.IndexState, p.Telemetry)
				}
			}
			if len(x.Pods) != 3 {
				return fmt.Errorf("%d pods", len(x.Pods))
			}
			return nil
		})
	}
	empty := time.Now().UTC().Format(time.RFC3339Nano)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// The first holds the whole prompt and computes on; the second holds half; the
	// third something else.
	shared := idList(1, 800)
	r.send(ctx, 0, shared, 100_000)
	r.send(ctx, 1, idList(1, 400), 1)
	r.send(ctx, 2, idList(5000, 400), 1)
	ask := []string{"--token-ids", shared + ",9,9,9"}
	var live *pick.Explanation
	eventuallyOK(t, "a card between two scrapes", func() error {
		x, err := card(t, append(ask, "--addr", r.admin)...)
		if err != nil {
			return err
		}
		depth := 0
		for _, p := range x.Pods {
			depth += p.Match.Tokens
			// The next page is asked for 200 ms after the last at the earliest:
			// none is on its way.
			if p.Age.Metrics == nil || *p.Age.Metrics < 10 || *p.Age.Metrics > 190 {
				return fmt.Errorf("page of %s, age %v", p.Name, p.Age.Metrics)
			}
		}
		if depth < 1150 {
			return fmt.Errorf("%d tokens are held in all", depth)
		}
		live = x
		return nil
	})
	read := append(ask, "--read", r.file, "--config", r.config, "--at", live.At)
	eventuallyOK(t, "the recording goes beyond that time", func() error { _, err := card(t, read...); return err })
	// Text is tokenized by the engines of the configuration, as long as there are some.
	text, err := card(t, "--prompt", strings.Repeat("word ", 50), "--read", r.file, "--config", r.config)
	if err != nil || !text.TokensExact || text.Tokens == 0 {
		t.Errorf("%+v, %v", text, err)
	}
	cancel()
	if err := r.tap.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := r.tap.Wait(); err != nil {
		t.Errorf("tap: %v: %s", err, r.said.String())
	}
	r.stop() // nobody is left to ask
	played, err := card(t, read...)
	if err != nil {
		t.Fatal(err)
	}
	if played.Source != "recording" || played.At != live.At {
		t.Errorf("source %q at %s, asked for %s", played.Source, played.At, live.At)
	}
	for _, x := range []*pick.Explanation{live, played} {
		x.Source, x.Epoch, x.ReadUs, x.DecideUs = "", 0, nil, nil
	}
	if !reflect.DeepEqual(live, played) {
		a, _ := json.MarshalIndent(live, "", " ")
		b, _ := json.MarshalIndent(played, "", " ")
		t.Errorf("live\n%s\nplayed\n%s", a, b)
	}
	// What if: the same pods, the first one full, at that time in the recording.
	if first := *played.Pick.Pod; first != "" {
		then, err := card(t, append(read, "--set", first+".queue=200")...)
		if err != nil {
			t.Fatal(err)
		}
		if *then.Pick.Pod != first || then.WhatIf == nil || *then.WhatIf.Pick.Pod == first {
			t.Errorf("picked %s; with a queue of 200 there: %+v", *then.Pick.Pod, then.WhatIf)
		}
	}
	// Before the prompts nothing was held, and the scores say so.
	before, err := card(t, append(ask, "--read", r.file, "--config", r.config, "--at", empty)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range before.Pods {
		if p.Match.Tokens != 0 {
			t.Errorf("%s holds %d tokens before it was sent any", p.Name, p.Match.Tokens)
		}
	}
	r.refusals(ask)
}

// refusals: what cannot be answered from a recording is an error that says why.
func (r *recordedFleet) refusals(ask []string) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--model", "sim", "--prompt", "hello there", "--read", r.file}, exitUnreachable, "--token-ids 1,2,3"},
		{[]string{"--prompt", "hello there", "--read", r.file, "--config", r.config}, exitUnreachable, "E_TOKENIZE"}, // its engines are gone
		{append(ask, "--read", r.file, "--at", "2001-01-01T00:00:00Z"), exitUsage, "it goes from"},
		{append(ask, "--read", r.file, "--at", "soon"), exitUsage, "expected a time"},
		{append(ask, "--at", "11:42"), exitUsage, "without --read"},
		{[]string{"--request-id", "x", "--read", r.file}, exitUsage, "no picks"},
		{append(ask, "--read", r.file+".not"), exitUsage, "cannot read the recording"},
	} {
		code, stdout, stderr := eppctlRun(append([]string{"explain", "-o", "json"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.want) || stdout != "" {
			r.t.Errorf("%v: exit code %d, %q on stdout, %s", c.args[len(c.args)-2:], code, stdout, stderr)
		}
	}
}

// tap records metrics pages when it is told to, and then the recording has what
// explain needs of them.
func TestTapWithMetrics(t *testing.T) {
	fleet, err := sim.StartFleet(sim.FleetOptions{Engines: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fleet.Close() })
	dir := t.TempDir()
	config := filepath.Join(dir, "eppctl.yaml")
	if err := os.WriteFile(config, []byte(fleet.Config(sim.Listen{ExtProc: ":1", Health: ":2", Admin: "127.0.0.1:3", Metrics: ":4"})), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, with := range []bool{false, true} {
		file := filepath.Join(dir, fmt.Sprint(with))
		args := []string{"tap", "-q", "--config", config, "--write", file, "--duration", "2s"}
		if with {
			args = append(args, "--with-metrics")
		}
		if code, _, stderr := eppctlRun(args...); code != 0 {
			t.Fatal(stderr)
		}
		x, err := card(t, "--token-ids", "1,2,3", "--read", file, "--config", config)
		if err != nil {
			t.Fatal(err)
		}
		if p := x.Pods[0]; len(x.Pods) != 1 || p.Name != "sim-0" || (p.Age.Metrics != nil) != with {
			t.Errorf("with metrics %v: %+v", with, p)
		}
	}
	for _, c := range [][]string{
		{"--with-metrics"}, {"--with-metrics", "--write", "x", "--connect", "127.0.0.1:1"}, {"--with-metrics", "--write", "x", "--read", "y"},
		{"-e"}, {"--replay", "5"},
	} {
		if code, _, stderr := eppctlRun(append([]string{"tap", "--config", config}, c...)...); code != exitUsage {
			t.Errorf("%v: exit code %d, %s", c, code, stderr)
		}
	}
}

// A recording of decisions is no stream: each command that reads one says which does.
func TestDecisionsAreNoStream(t *testing.T) {
	file := filepath.Join(t.TempDir(), "d.eptap")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w, err := recording.NewWriter(f, recording.Header{Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	fleet := &recording.Record{Type: recording.TypeFleet, At: 1, Body: []byte(`{"run":"r"}`)}
	if err := errors.Join(w.Write(fleet), w.Close([]byte("{}")), f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"tap"}, {"tap", "--check"}, {"tap", "--stats"}, {"explain", "--token-ids", "1,2"}, {"top", "--once"}} {
		code, text, errs := try(nil, nil, append(args, "--read", file)...)
		if code != exitUsage || strings.Contains(text, "{") || !strings.Contains(errs, "holds decisions, and nothing that engines sent") || !strings.Contains(errs, "\n  try: eppctl replay --decisions "+file+"\n") {
			t.Errorf("%v: code %d, stdout %q, stderr %q", args, code, text, errs)
		}
	}
}
