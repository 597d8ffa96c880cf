package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// engine starts a simulated engine that speaks the real interfaces.
func engine(t *testing.T, o sim.EngineOptions) *sim.Engine {
	t.Helper()
	e, err := sim.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func run(t *testing.T, c *Command, pods ...pod.Spec) (string, *inspect.Error) {
	t.Helper()
	var b bytes.Buffer
	c.Prober, c.Timeout = &feed.Prober{}, 10*time.Second
	err := c.Run(t.Context(), "eppctl.yaml", pods, &out.Streams{Out: &b, Err: &bytes.Buffer{}})
	var e *inspect.Error
	if err != nil && !errors.As(err, &e) {
		t.Fatal(err)
	}
	return b.String(), e
}

func TestHealthyFleet(t *testing.T) {
	e := engine(t, sim.EngineOptions{Name: "a"})
	text, err := run(t, &Command{Format: "table"}, pod.Spec{Name: "a", Address: e.Addr(), Ranks: 1})
	if err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	for _, want := range []string{"http", "engine", "model", "metrics", "events", "replay", "tokenize"} {
		if !strings.Contains(text, "  a    "+want) {
			t.Errorf("no line about %s:\n%s", want, text)
		}
	}
}

func TestFindings(t *testing.T) {
	good, wrong := engine(t, sim.EngineOptions{Name: "good"}), engine(t, sim.EngineOptions{Name: "wrong"})
	pods := []pod.Spec{
		{Name: "good", Address: good.Addr(), Ranks: 1},
		{Name: "down", Address: closedPort(t), Ranks: 1},
		{Name: "wrong", Address: wrong.Addr(), Engine: pod.EngineSGLang, Model: "another", Ranks: 1},
	}
	text, err := run(t, &Command{Format: "json"}, pods...)
	if err == nil || err.Kind != inspect.Negative {
		t.Fatalf("err = %v", err)
	}
	var r Report
	if jsonErr := json.Unmarshal([]byte(text), &r); jsonErr != nil || r.Kind != "Check" || r.Pods != 3 {
		t.Fatalf("%v in %s", jsonErr, text)
	}
	failed := map[string]bool{}
	for _, f := range r.Facts {
		if !f.OK {
			failed[f.Pod] = true
		}
	}
	if failed["good"] || !failed["down"] {
		t.Errorf("failed pods %v:\n%s", failed, text)
	}
	about := map[string]bool{}
	for i, f := range r.Findings {
		about[f.Pod+" "+f.Field] = true
		if i > 0 && weight(f.Severity) > weight(r.Findings[i-1].Severity) {
			t.Errorf("finding %d is graver than the one before it", i)
		}
	}
	if !about["wrong engine"] {
		t.Errorf("nothing says that the engine differs: %s", text)
	}
}

// TestNoEventSources: O-125: nobody must find out from a hit rate of 0.
func TestNoEventSources(t *testing.T) {
	e := engine(t, sim.EngineOptions{Name: "mute", NoEvents: true})
	text, err := run(t, &Command{Format: "table"}, pod.Spec{Name: "mute", Address: e.Addr(), Ranks: 1})
	if err == nil || !strings.Contains(text, "0 of 1 pods have an event source") {
		t.Errorf("err = %v\n%s", err, text)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := Command{Prober: &feed.Prober{}, Timeout: time.Second}
	var e *inspect.Error
	err := c.Run(ctx, "f", []pod.Spec{{Name: "a", Address: closedPort(t)}}, &out.Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}})
	if !errors.As(err, &e) || e.Kind != inspect.Interrupted {
		t.Errorf("err = %v", err)
	}
}

func TestFailOn(t *testing.T) {
	r := Report{Findings: []feed.Finding{{Severity: feed.SeverityWarning}, {Severity: feed.SeverityInfo}, {Severity: feed.SeverityError}}}
	if n := r.against("warning"); n != 2 {
		t.Errorf("warning counts %d", n)
	}
	if n := r.against("error"); n != 1 {
		t.Errorf("error counts %d", n)
	}
	r.Facts = []feed.Fact{{OK: false}, {OK: true}}
	if n := r.against("error"); n != 2 {
		t.Errorf("with a failed fact %d", n)
	}
}
