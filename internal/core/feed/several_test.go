package feed

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// An engine that restarts, once with a clock that was set back, is one engine; start
// times that go to and fro are of several.
func TestInTurn(t *testing.T) {
	for want, starts := range map[string][]float64{
		"":       {1, 1, 2, 2, 3, 1, 2, 3},
		"6":      {1, 2, 1, 2, 2, 2, 1, 2, 1},
		"2":      {3, 2, 1},
		"nobody": nil,
	} {
		var turn inTurn
		got := ""
		for i, v := range starts {
			if turn.sees(telemetry.Value{V: v, Known: true}) {
				got += fmt.Sprint(i)
			}
		}
		if turn.sees(telemetry.Value{}) || got != want && starts != nil {
			t.Errorf("%v: proved at %q, want %q", starts, got, want)
		}
	}
}

// check finds an address that leads to several engines, and leaves a single one alone.
func TestSeveralEngines(t *testing.T) {
	for engines, want := range map[int64]bool{1: false, 2: true, 3: true} {
		var asked atomic.Int64
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "process_start_time_seconds %d\nvllm:num_requests_running 1\n", 1_700_000_000+asked.Add(1)%engines)
		}))
		r := (&Prober{Client: srv.Client()}).probe(t.Context(), "p")
		r.metrics(pod.Spec{Address: strings.TrimPrefix(srv.URL, "http://"), Engine: pod.EngineVLLM, Metrics: srv.URL})
		srv.Close()
		found := slices.ContainsFunc(r.findings, func(f Finding) bool { return f.Code == "several-engines" && f.Pod == "p" && f.Hint != "" })
		if found != want || !r.facts[0].OK {
			t.Errorf("%d engines: %v, %v", engines, r.facts, r.findings)
		}
	}
}
