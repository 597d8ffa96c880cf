package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/inspect/replay/fleet"
	"github.com/eppctl/eppctl/internal/inspect/replay/workload"
)

func options() *Options {
	o := &Options{
		Workload: "shared_prefix", Parameters: workload.Parameters{"num_groups": 3, "num_prompts_per_group": 8},
		Policies: []string{"pool", "round-robin"}, Speeds: []float64{1, 3}, Fleet: fleet.Default(), Format: "table",
	}
	o.Fleet.Pods = 2
	return o
}

func run(o *Options, in string) (stdout, stderr string, err error) {
	var a, b bytes.Buffer
	s := out.NewStreams(strings.NewReader(in), &a, &b, nil)
	err = Run(context.Background(), o, s)
	return a.String(), b.String(), err
}

// Table and JSON say the same, in the order asked for.
func TestTableAndJSON(t *testing.T) {
	table, about, err := run(options(), "")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(table), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[1], "pool ") || !strings.Contains(about, "24 requests") {
		t.Errorf("%s\n%s", about, table)
	}
	o := options()
	o.Format = "json"
	text, about, err := run(o, "")
	if err != nil || about != "" {
		t.Fatal(err, about)
	}
	var doc struct {
		Kind string
		Runs []struct {
			Policy string
			Speed  float64
			Mean   float64 `json:"ttft_mean_s"`
		}
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		policy string
		speed  float64
	}{{"pool", 1}, {"pool", 3}, {"round-robin", 1}, {"round-robin", 3}} {
		if x := doc.Runs[i]; x.Policy != want.policy || x.Speed != want.speed || !strings.Contains(lines[i+1], sec(x.Mean)) {
			t.Errorf("run %d: %+v beside %q", i, x, lines[i+1])
		}
	}
	if doc.Kind != "Replay" || strings.Contains(text, "outcomes") {
		t.Errorf("document %.200s", text)
	}
}

// A wrong trace, policy or fleet is the caller's mistake and says so; a report that
// cannot be written is not.
func TestKinds(t *testing.T) {
	for _, c := range []struct {
		change func(*Options)
		in     string
		code   string
	}{
		{func(o *Options) { o.Policies = []string{"x"} }, "", "E_USAGE"},
		{func(o *Options) { o.Policies = nil }, "", "E_USAGE"},
		{func(o *Options) { o.Requests = -1 }, "", "E_USAGE"},
		{func(o *Options) { o.Policies = []string{Recorded} }, "", "E_USAGE"},
		{func(o *Options) { o.Policies = []string{WhatIf} }, "", "E_USAGE"},
		{func(o *Options) { o.Workload, o.Decisions = "", []string{"-"} }, "{}", "E_RECORDING"},
		{func(o *Options) { o.Workload, o.Decisions = "", []string{filepath.Join(t.TempDir(), "*.eptap")} }, "", "E_USAGE"},
		{func(o *Options) { o.Workload, o.Trace = "", "-" }, "{}", "E_TRACE"},
		{func(o *Options) { o.Fleet.Pods = 0 }, "", "E_USAGE"},
		{func(o *Options) { o.Workload, o.Trace = "", filepath.Join(t.TempDir(), "absent") }, "", "E_USAGE"},
	} {
		o := options()
		c.change(o)
		_, _, err := run(o, c.in)
		var own *inspect.Error
		if !errors.As(err, &own) || own.Kind != inspect.Usage || own.Code != c.code {
			t.Errorf("%v, want %s", err, c.code)
		}
	}
}

// A report that cannot be written is told before anything is read or played, and a run
// that ends early leaves files as they were.
func TestReportFile(t *testing.T) {
	dir := t.TempDir()
	bad := options()
	bad.Workload, bad.Trace = "", "-" // of which there is no first row
	for path, want := range map[string]error{filepath.Join(dir, "no", "such", "folder.html"): os.ErrNotExist, dir: syscall.EISDIR} {
		bad.HTML = path
		var own *inspect.Error
		if _, _, err := run(bad, ""); !errors.Is(err, want) || errors.As(err, &own) {
			t.Errorf("%s: %v", path, err)
		}
	}
	kept := filepath.Join(dir, "kept.html")
	if err := os.WriteFile(kept, []byte("of yesterday"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "new.html"), kept} {
		bad.HTML = path
		if _, _, err := run(bad, ""); err == nil {
			t.Error("a trace without a row is played")
		}
	}
	if b, err := os.ReadFile(kept); err != nil || string(b) != "of yesterday" {
		t.Errorf("%q, %v", b, err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("%v, %v: want kept.html alone", list, err)
	}
}

func TestFlagValues(t *testing.T) {
	for text, want := range map[string]fleet.Slow{
		"pod-3=3x": {Pod: 3, Factor: 3}, "3=2.5": {Pod: 3, Factor: 2.5}, "pod-0=3x@1m30s": {Factor: 3, From: 90},
	} {
		if got, err := ParseSlow(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	if got, err := ParseRestart("pod-2@5m+30s"); err != nil || got != (fleet.Restart{Pod: 2, At: 300, Down: 30}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{"", "pod", "pod-x=3", "pod-1=x", "pod-1=3x@", "pod-1=3x@5"} {
		if got, err := ParseSlow(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
	for _, text := range []string{"", "pod-1@5m", "pod-1@5+3s", "x@5m+3s", "pod-1@5m+"} {
		if got, err := ParseRestart(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
	if k, v, err := ParseParameter("zipf=1.5"); err != nil || k != "zipf" || v != 1.5 {
		t.Error(k, v, err)
	}
	for _, text := range []string{"", "zipf", "=1", "zipf=x"} {
		if _, _, err := ParseParameter(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

// What a terminal's user sees meanwhile is wiped at the end, and nothing of it
// reaches a pipe.
func TestProgress(t *testing.T) {
	for _, tty := range []bool{true, false} {
		var b bytes.Buffer
		p := newProgress(&out.Streams{Err: &b, ErrTTY: tty}, 100)
		p.add(10)
		if b.Len() != 0 {
			t.Errorf("before anybody would wonder: %q", &b)
		}
		p.next = p.next.Add(-patience - refresh)
		p.add(15)
		p.end()
		want := ""
		if tty {
			want = "\rreplayed 25 of 100 requests (25%)\r\x1b[K"
		}
		if b.String() != want {
			t.Errorf("terminal %v: %q", tty, &b)
		}
	}
}

// The numbers of a run do not depend on how many run beside it.
func TestParallelRunsAreAlone(t *testing.T) {
	o := options()
	o.Policies, o.Speeds = []string{"pool", "fixed", "lmetric", "omniscient"}, []float64{1, 2, 3}
	a, _, err := run(o, "")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, p := range o.Policies {
		for _, s := range o.Speeds {
			one := options()
			one.Policies, one.Speeds = []string{p}, []float64{s}
			text, _, err := run(one, "")
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, strings.Fields(strings.Split(text, "\n")[1])...)
		}
	}
	if got := strings.Fields(a[strings.Index(a, "\n"):]); !reflect.DeepEqual(got, lines) {
		t.Errorf("together\n%v\nalone\n%v", got, lines)
	}
}
