package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/sim"
	"github.com/eppctl/eppctl/internal/testdata"
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

func run(t *testing.T, c *Command, pods ...pod.Spec) (string, *inspect.Error) {
	t.Helper()
	return runConfig(t, c, Config{Path: "eppctl.yaml", Pods: pods, Whole: true})
}

func runConfig(t *testing.T, c *Command, config Config) (string, *inspect.Error) {
	t.Helper()
	var b bytes.Buffer
	c.Prober, c.Timeout = &feed.Prober{}, 10*time.Second
	err := c.Run(t.Context(), config, &out.Streams{Out: &b, Err: &bytes.Buffer{}})
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
		{Name: "down", Address: testdata.Deaf(t), Ranks: 1},
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
	if err == nil || !strings.Contains(text, "of 1 pods that answer none has an event source") {
		t.Errorf("err = %v\n%s", err, text)
	}
}

// TestUnreachablePod: what a dead pod could not be asked is one skipped line and no
// finding; nothing is concluded from its silence.
func TestUnreachablePod(t *testing.T) {
	text, err := run(t, &Command{Format: "table"}, pod.Spec{Name: "down", Address: testdata.Deaf(t), Ranks: 1})
	if err == nil || err.What != "1 thing to look at: 1 FAIL" || !strings.HasPrefix(err.Hint, "try: ") || !strings.Contains(err.Hint, "down") {
		t.Errorf("err = %+v", err)
	}
	if !strings.Contains(text, "skip    down  engine, model, metrics, events, tokenize  not asked") || strings.Count(text, "FAIL") != 1 {
		t.Errorf("text:\n%s", text)
	}
	if strings.Contains(text, "event source") {
		t.Errorf("a pod that was not asked counts as one without events:\n%s", text)
	}
}

// codes lists the findings as "code pod value".
func codes(t *testing.T, text string) []string {
	t.Helper()
	var r Report
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, f := range r.Findings {
		list = append(list, strings.Join(strings.Fields(f.Code+" "+f.Pod+" "+f.Value), " "))
	}
	return list
}

// TestModels: the table of models is held against what the engines list.
func TestModels(t *testing.T) {
	a := engine(t, sim.EngineOptions{Name: "a", Model: "llama", Adapters: []string{"sql", "chat"}})
	b := engine(t, sim.EngineOptions{Name: "b", Model: "qwen"})
	pods := []pod.Spec{{Name: "a", Address: a.Addr(), Ranks: 1}, {Name: "b", Address: b.Addr(), Ranks: 1}}
	table := []Model{
		{Name: "llama", Aliases: []string{"gpt"}, Adapters: []string{"sql", "gone"}},
		{Name: "nobody"},
	}
	text, err := runConfig(t, &Command{Format: "json"}, Config{Path: "f", Pods: pods, Whole: true, Models: table})
	want := []string{
		"model-not-configured b", "adapter-not-loaded a gone", "model-without-pods nobody",
		"alias-not-served gpt", "adapter-not-configured",
	}
	if got := codes(t, text); err == nil || !slices.Equal(got, want) {
		t.Errorf("err %v, findings %q, want %q", err, got, want)
	}
	t.Run("a part of the pods", func(t *testing.T) {
		text, _ := runConfig(t, &Command{Format: "json"}, Config{Path: "f", Pods: pods[1:], Models: table})
		if got := codes(t, text); !slices.Equal(got, []string{"model-not-configured b"}) {
			t.Errorf("findings %q", got)
		}
	})
	t.Run("all as listed", func(t *testing.T) {
		table := []Model{{Name: "llama", Adapters: []string{"sql", "chat"}}, {Name: "qwen"}}
		text, err := runConfig(t, &Command{Format: "json"}, Config{Path: "f", Pods: pods, Whole: true, Models: table})
		if got := codes(t, text); err != nil || len(got) > 0 {
			t.Errorf("err %v, findings %q", err, got)
		}
	})
	t.Run("one of them silent", func(t *testing.T) {
		pods := append([]pod.Spec{{Name: "down", Address: testdata.Deaf(t), Ranks: 1}}, pods...)
		text, _ := runConfig(t, &Command{Format: "json"}, Config{Path: "f", Pods: pods, Whole: true, Models: []Model{{Name: "llama", Adapters: []string{"sql", "chat"}}, {Name: "qwen"}, {Name: "nobody"}}})
		if got := codes(t, text); len(got) > 0 {
			t.Errorf("the silent pod may serve it, yet there is %q", got)
		}
	})
}

// TestFurtherNames: a name that the table has as an alias is no news.
func TestFurtherNames(t *testing.T) {
	found := []feed.Finding{{Code: "more-names", Expected: "llama, gpt"}, {Code: "events-off"}}
	if got := told(slices.Clone(found), []Model{{Name: "llama"}}); len(got) != 2 {
		t.Errorf("gpt is in no entry, yet %v", got)
	}
	if got := told(found, []Model{{Name: "llama", Aliases: []string{"gpt"}}}); len(got) != 1 || got[0].Code != "events-off" {
		t.Errorf("got %v", got)
	}
}

// TestEndpointsFolder: serve replaces the file by rename, so its folder counts.
func TestEndpointsFolder(t *testing.T) {
	dir := t.TempDir()
	text, err := runConfig(t, &Command{Format: "table"}, Config{Path: "f", EndpointsFile: filepath.Join(dir, "endpoints.json")})
	if err != nil || !strings.Contains(text, "endpoints_file  "+dir+"/endpoints.json can be written") {
		t.Errorf("err %v\n%s", err, text)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("check left %v behind", left)
	}
	text, err = runConfig(t, &Command{Format: "table"}, Config{Path: "f", EndpointsFile: filepath.Join(dir, "none", "endpoints.json")})
	if err == nil || !strings.Contains(text, "FAIL    -    endpoints_file  the folder cannot be written to") || !strings.Contains(err.Hint, "mkdir") {
		t.Errorf("err %v\n%s", err, text)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := Command{Prober: &feed.Prober{}, Timeout: time.Second}
	var e *inspect.Error
	err := c.Run(ctx, Config{Path: "f", Pods: []pod.Spec{{Name: "a", Address: testdata.Deaf(t)}}}, &out.Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}})
	if !errors.As(err, &e) || e.Kind != inspect.Interrupted {
		t.Errorf("err = %v", err)
	}
}

// TestVerdict: what FAILs counts whatever --fail-on says, and nobody is told to pass
// over it.
func TestVerdict(t *testing.T) {
	warn, info, grave := feed.Finding{Severity: feed.SeverityWarning}, feed.Finding{Severity: feed.SeverityInfo}, feed.Finding{Severity: feed.SeverityError}
	dead := feed.Finding{Severity: feed.SeverityWarning, Code: "disconnected", Pod: "a", Hint: "nothing listens there"}
	for _, c := range []struct {
		name     string
		facts    []feed.Fact
		findings []feed.Finding
		failOn   string
		what     string // "" = all is well
		hint     string
	}{
		{"warnings", nil, []feed.Finding{warn, info, grave}, "warning", "2 things to look at: 1 ERROR, 1 warn", "errors first"},
		{"errors only", nil, []feed.Finding{warn, info, grave}, "error", "1 thing to look at: 1 ERROR", "errors first"},
		{"only a warning", nil, []feed.Finding{warn}, "warning", "1 thing to look at: 1 warn", "--fail-on error"},
		{"a warning that is meant", nil, []feed.Finding{warn, info}, "error", "", ""},
		{"nothing heard", []feed.Fact{{What: "stream", Skipped: true}}, nil, "warning", "", ""},
		{"a fact with a finding", []feed.Fact{{Pod: "a", What: "events", Code: "disconnected"}, {OK: true}}, []feed.Finding{dead}, "warning",
			"2 things to look at: 1 FAIL, 1 warn", "look at events of a first: nothing listens there"},
		{"the same under --fail-on error", []feed.Fact{{Pod: "a", What: "events", Code: "disconnected"}}, []feed.Finding{dead}, "error",
			"1 thing to look at: 1 FAIL", "look at events of a first"},
		{"two engines and the folder", []feed.Fact{{What: endpointsFile}, {Pod: "a", What: "http"}, {Pod: "b", What: "http"}}, nil, "warning",
			"3 things to look at: 3 FAIL", "addresses of a, b\ntry: mkdir"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Report{Facts: c.facts, Findings: c.findings}
			var own *inspect.Error
			err := r.verdict(c.failOn)
			switch {
			case c.what == "" && err != nil:
				t.Error(err)
			case c.what == "":
			case !errors.As(err, &own) || own.Kind != inspect.Negative || own.What != c.what || !strings.Contains(own.Hint, c.hint):
				t.Errorf("%v; want %q and %q", err, c.what, c.hint)
			case strings.Contains(own.Hint, "--fail-on") && r.failed() > 0:
				t.Errorf("hint %q while something FAILs", own.Hint)
			}
		})
	}
}

// TestNarrow: on a terminal of 80 columns no word of a report is cut.
func TestNarrow(t *testing.T) {
	const hint = "no answer: a firewall or network policy drops the packets, or no machine has the address"
	r := Report{
		Facts:    []feed.Fact{{Pod: "10.0.0.7:5557", What: "events", Code: "disconnected", Detail: "rank 0 tcp://10.0.0.7:5557: dial: i/o timeout"}},
		Findings: []feed.Finding{{Severity: feed.SeverityWarning, Code: "disconnected", Pod: "10.0.0.7:5557", Field: "events", Value: "tcp://10.0.0.7:5557", Hint: hint}},
	}
	var b bytes.Buffer
	if err := r.table(&out.Streams{Out: &b, OutTTY: true, Width: 80}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if out.Cells(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("too long: %q", line)
		}
	}
	for _, word := range append(strings.Fields(hint), "timeout", "disconnected", `"tcp://10.0.0.7:5557":`) {
		if !strings.Contains(b.String(), word) {
			t.Errorf("%q is missing in\n%s", word, &b)
		}
	}
}

// What answers and is no engine: a web server, or a router in front of engines.
func TestAdviceAboutStrangers(t *testing.T) {
	for name, tc := range map[string]struct {
		models []string
		want   string
	}{
		"web server": {nil, "try: another address for a: something answers there that is no engine; "},
		"router":     {[]string{"llama"}, "try: the addresses behind a: it lists models and is no engine known here"},
	} {
		r := &Report{Facts: []feed.Fact{
			{Pod: "a", What: "http", OK: true}, {Pod: "a", What: "engine"}, {Pod: "a", What: "model", Models: tc.models, OK: tc.models != nil},
			{Pod: "a", What: "metrics"}, {Pod: "a", What: "tokenize"},
		}}
		if got := r.next(); len(got) != 1 || !strings.HasPrefix(got[0], tc.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
