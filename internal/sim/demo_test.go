package sim

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

const pickerPage = `# HELP eppctl_pick_duration_seconds From the whole body to the answer.
# TYPE eppctl_pick_duration_seconds histogram
eppctl_pick_duration_seconds_bucket{le="0.001"} 50
eppctl_pick_duration_seconds_bucket{le="0.002"} 90
eppctl_pick_duration_seconds_bucket{le="0.01"} 98
eppctl_pick_duration_seconds_bucket{le="+Inf"} 100
eppctl_pick_duration_seconds_sum 0.2
eppctl_pick_duration_seconds_count 100
`

func TestHistogramQuantile(t *testing.T) {
	for _, tt := range []struct{ q, want float64 }{
		{0.25, 0.0005}, // half way through the first bucket
		{0.5, 0.001},
		{0.7, 0.0015},
		{0.94, 0.006},
		{0.99, 0.01}, // beyond the last bound: the bound
	} {
		got, err := histogramQuantile([]byte(pickerPage), "eppctl_pick_duration_seconds", tt.q)
		if err != nil || got < tt.want-1e-9 || got > tt.want+1e-9 {
			t.Errorf("q %v: %v, %v, want %v", tt.q, got, err, tt.want)
		}
	}
	if _, err := histogramQuantile([]byte(pickerPage), "gone", 0.5); err == nil {
		t.Error("a missing histogram gives no error")
	}
}

func TestDemoRows(t *testing.T) {
	ok := func(prompt, cached int, ttft time.Duration) Outcome {
		return Outcome{Status: 200, Prompt: prompt, Cached: cached, TTFT: ttft}
	}
	d := demo{metrics: []byte(pickerPage),
		picked: []Outcome{ok(100, 80, 10*time.Millisecond), ok(300, 280, 30*time.Millisecond)},
		robin:  []Outcome{ok(100, 20, 40*time.Millisecond), {Status: 503, Err: errors.New("no host")}}}
	rows, err := d.rows()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct{ value, reference float64 }{
		"requests": {2, 2}, "failed_requests": {0, 1}, "prefix_hit_share": {0.9, 0.2},
		"ttft_mean_ms": {20, 40}, "ttft_p90_ms": {10, 40},
	}
	for _, r := range rows {
		if w, ok := want[r.Name]; ok {
			delete(want, r.Name)
			if r.Value != w.value || r.Reference == nil || *r.Reference != w.reference {
				t.Errorf("%+v, want %v", r, w)
			}
		}
	}
	if got := rows[1].Target + ", " + rows[3].Target; got != "0: met, < round robin: met" {
		t.Errorf("targets %s", got)
	}
	if text := busy(rows); text != "" {
		t.Errorf("a p99 of 10 ms: %q", text)
	}
	slow := demo{metrics: []byte(strings.ReplaceAll(pickerPage, `le="0.01"`, `le="0.25"`)), picked: d.robin, robin: d.picked}
	if rows, err := slow.rows(); err != nil || busy(rows) != "\npicker p99 250 ms: the machine is too busy to compare\n" || rows[1].Target != "0: missed" || rows[2].Target != "> round robin: missed" {
		t.Errorf("%v, %q, %+v", err, busy(rows), rows)
	}
	if len(want) > 0 || rows[len(rows)-1].Name != "picker_p99_ms" {
		t.Errorf("rows lack %v", want)
	}
}

// TestDemoHint: who leaves the demo running is told what has changed since the
// table, what to look at, and what is left behind.
func TestDemoHint(t *testing.T) {
	var b bytes.Buffer
	d := demo{stack: &Stack{Proxy: "http://h:1", Listen: Listen{Admin: "h:2", Metrics: "h:3"}, opt: StackOptions{Dir: "/d", Eppctl: "eppctl"}}}
	d.hint(&b)
	for _, want := range []string{"caches are those of the round-robin run", "/d; they stay there", "eppctl top --addr h:2", "h:3/metrics | grep -E '^eppctl_(" + hintMetrics + ")'"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the hint does not say %q:\n%s", want, b.String())
		}
	}
}

func TestProgressWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, "x", 8)
	for range 8 {
		p.step()
	}
	p.end()
	if got := strings.Count(out.String(), "\n"); got != 4 {
		t.Errorf("%d lines, want one per quarter:\n%s", got, out.String())
	}
}

// A killed engine gives an error for what it was answering, never a short
// answer that looks whole.
func TestDriverSeesCutStreams(t *testing.T) {
	e := start(t, EngineOptions{})
	w := WorkloadOptions{Seed: 1, Conversations: 1, Turns: 1, SystemWords: 10, UserWords: 10, Output: 5000, Model: "sim"}
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		for running := 0; running == 0 && t.Context().Err() == nil; running, _ = e.Load() {
			time.Sleep(time.Millisecond)
		}
		e.Kill()
	}()
	out := (&Driver{URL: e.URL()}).Run(t.Context(), w.Draw())
	<-killed
	if len(out) != 1 || !out[0].Failed() || out[0].Status != 200 {
		t.Errorf("outcome %+v", out)
	}
}

func TestFleetConfigNamesEveryEngine(t *testing.T) {
	f, err := StartFleet(FleetOptions{Engines: 3, IPv6: true, Engine: EngineOptions{Adapters: []string{"sql"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := f.Config(Listen{ExtProc: "127.0.0.1:1"})
	for _, e := range f.Engines {
		if !strings.Contains(text, e.Addr()) {
			t.Errorf("the config lacks %s:\n%s", e.Addr(), text)
		}
	}
	if !strings.Contains(text, "adapters: [sql]") {
		t.Error("the config lacks the adapter")
	}
}
