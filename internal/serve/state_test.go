package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

// state asks the admin API for a frame.
func (r *rig) state(query string) (s view.Snapshot) {
	r.t.Helper()
	if err := json.Unmarshal(r.admin("GET", "/v1/state?"+query, "").Body.Bytes(), &s); err != nil {
		r.t.Fatal(err)
	}
	return s
}

func podNamed(t testing.TB, s view.Snapshot, name string) view.PodState {
	t.Helper()
	i := slices.IndexFunc(s.Pods, func(p view.PodState) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("no pod %q in %d pods", name, len(s.Pods))
	}
	return s.Pods[i]
}

// What is sent to a pod counts for it: requests, tokens that were counted on, and
// what the engine reports of them.
func TestStateCountsWhatPodsServe(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.cache("b", 0, ids(7, 64))
	both := protocol(modeFullDuplex, modeFullDuplex)
	for range 3 {
		c := r.talk()
		c.send(reqHeaders(both, false, completionsPath), reqBody(completion("m", ids(7, 80)), true))
		if to := destination(t, c.recv()); to != "10.0.0.2:8000" {
			t.Fatalf("picked %s, not the pod that holds the prompt", to)
		}
		c.send(respHeaders(false, ":status", "200"),
			respBody([]byte(`{"usage":{"prompt_tokens":80,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":48}}}`), true))
		c.rest()
	}
	s := r.state("")
	want := view.PodServed{Picks: 3, Queried: 240, Cached: 192, EngineQueried: 240, EngineCached: 144}
	want.Depths[8] = 3 // 64 of 80 tokens
	if got := podNamed(t, s, "b").Served; got != want {
		t.Errorf("b served %+v, want %+v", got, want)
	}
	if got := podNamed(t, s, "a").Served; got != (view.PodServed{}) {
		t.Errorf("a served %+v, but nothing was sent there", got)
	}
	hits := view.Hits{Queried: 240, BestAvailable: 192, Selected: 192, EngineQueried: 240, EngineCached: 144}
	if s.Hits != hits {
		t.Errorf("hits %+v, want %+v", s.Hits, hits)
	}
	// A pod that comes again under its name begins at zero, in a later epoch.
	before := podNamed(t, s, "b")
	old := r.pod("b")
	r.fleet.Pods.Remove(old.ID)
	r.fleet.Index.Purge(old.Members[0])
	r.fleet.Pods.Free(old)
	r.add(old.Spec)
	after := podNamed(t, r.state(""), "b")
	if after.Served != (view.PodServed{}) || after.Epoch <= before.Epoch {
		t.Errorf("after a new begin: %+v in epoch %d, before in %d", after.Served, after.Epoch, before.Epoch)
	}
}

// What is placed on a pod of several ranks stands at the rank that it counts on.
func TestStateTellsLoadOfRanks(t *testing.T) {
	r := newRig(t, rigOptions{})
	p := r.add(pod.Spec{Name: "ranks", Address: "10.0.0.9:8000", Ranks: 2, Model: "m"})
	now := r.picker.now()
	for _, rank := range []int{1, 1, 0} {
		r.fleet.Load.Place(p, view.Work{Rank: rank, Prefill: time.Second}, now)
	}
	ranks := podNamed(t, r.state(""), "ranks").Ranks
	if len(ranks) != 2 {
		t.Fatalf("%d ranks", len(ranks))
	}
	for i, want := range []int{1, 2} {
		if got := ranks[i].Load; got.InFlight != want || got.Waiting != want || got.QueueMs <= 0 {
			t.Errorf("rank %d: %+v, want %d in flight", i, got, want)
		}
	}
}

// A breaker says which it is, and when a failing pod is tried again.
func TestStateTellsBreakers(t *testing.T) {
	limit := 32
	for name, tc := range map[string]struct {
		load view.Load
		want view.PodBreak
	}{
		"closed":         {view.Load{Waiting: 31}, view.PodBreak{State: "closed", Waiting: 31, Limit: 32}},
		"queue":          {view.Load{Waiting: 32}, view.PodBreak{State: "closed", Open: true, Why: "queue", Waiting: 32, Limit: 32}},
		"some errors":    {view.Load{Circuit: view.Circuit{Errors: 4}}, view.PodBreak{State: "closed", Limit: 32, Errors: 4}},
		"failing":        {view.Load{Waiting: 40, Circuit: view.Circuit{State: view.Open, Errors: 6, Out: true, ProbeIn: 600 * time.Millisecond}}, view.PodBreak{State: "open", Open: true, Why: "errors", Waiting: 40, Limit: 32, Errors: 6, ProbeInMs: new(600.0)}},
		"being probed":   {view.Load{Circuit: view.Circuit{State: view.HalfOpen, Errors: 5, Out: true, Probing: 1}}, view.PodBreak{State: "half-open", Probes: 1, Open: true, Why: "errors", Limit: 32, Errors: 5, ProbeInMs: new(0.0)}},
		"drowned":        {view.Load{Circuit: view.Circuit{State: view.Open, Lost: 5, Out: true, ProbeIn: time.Second}}, view.PodBreak{State: "open", Open: true, Why: "unanswered", Limit: 32, Lost: 5, ProbeInMs: new(1000.0)}},
		"a probe is due": {view.Load{Circuit: view.Circuit{State: view.HalfOpen, Errors: 5}}, view.PodBreak{State: "half-open", Limit: 32, Errors: 5}},
	} {
		got, want := breakState(&tc.load, limit), tc.want
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if string(a) != string(b) {
			t.Errorf("%s: %s, want %s", name, a, b)
		}
	}
}

// detail= leaves the pages of the other pods out; picks= adds recent decisions.
func TestStateShowsWhatIsAsked(t *testing.T) {
	r := newRig(t, rigOptions{})
	for i := range 5 {
		r.route(completion("m", ids(i+1, 64)), requestIDHeader, fmt.Sprintf("id-%d", i))
	}
	count := func(s view.Snapshot) (n int) {
		for _, p := range s.Pods {
			n += min(len(p.Telemetry.Signals), 1)
		}
		return n
	}
	for query, want := range map[string][2]int{"": {3, 0}, "detail=": {0, 0}, "detail=b&picks=2": {1, 2}, "picks=99999": {3, 5}, "picks=-1": {3, 0}, "picks=x": {3, 0}} {
		s := r.state(query)
		if got := [2]int{count(s), len(s.Picks)}; got != want {
			t.Errorf("%q: %d pods with a page and %d picks, want %v", query, got[0], got[1], want)
		}
	}
	if s := r.state("picks=1"); s.Picks[0].RequestID != "id-4" || s.Picks[0].Score == nil || s.Picks[0].RunnerUp == nil || s.Picks[0].Margin == nil {
		t.Errorf("the newest pick: %+v", s.Picks[0])
	}
}

// The counters of event streams stand at their ranks.
func TestStateCountsEvents(t *testing.T) {
	r := newRig(t, rigOptions{})
	m := r.pod("c").Members[0]
	r.picker.events = func() []feed.Counters {
		return []feed.Counters{{Member: m, Batches: 9, Stored: 7, WrongShape: map[string]uint64{"x": 2, "y": 1}, Undecodable: 1, Lag: 3 * time.Millisecond}}
	}
	s := r.state("")
	got := podNamed(t, s, "c").Ranks[0].Events
	if got == nil || *got != (view.RankEvents{Batches: 9, Stored: 7, Undecodable: 4, LagMs: 3}) {
		t.Errorf("events %+v", got)
	}
	if got := podNamed(t, s, "a").Ranks[0].Events; got != nil {
		t.Errorf("nobody counts a's events, yet there are %+v", got)
	}
}

// A prompt leaves nothing of itself in a frame.
func TestStateHoldsNoPrompt(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.route(completion("m", []uint32{918273645, 918273646, 918273647}))
	r.route([]byte(`{"model":"m","messages":[{"role":"user","content":"a secret sentence"}]}`))
	text := r.admin("GET", "/v1/state?picks=10", "").Body.String()
	for _, secret := range []string{"918273645", "secret"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q stands in %s", secret, text)
		}
	}
}

// BenchmarkState is what a top costs serve: one frame a second of a fleet of 256
// pods, with pages that name adapters and event streams that count.
func BenchmarkState(b *testing.B) {
	var pods []pod.Spec
	for i := range stateRows {
		pods = append(pods, pod.Spec{Name: fmt.Sprintf("vllm-%03d", i), Address: fmt.Sprintf("10.0.%d.%d:80", i/200, i%200+1), Model: "m", Engine: pod.EngineVLLM,
			Events: []string{"tcp://10.0.0.1:5557"}})
	}
	r := newRig(b, rigOptions{pods: pods})
	counters := make([]feed.Counters, 0, len(pods))
	for _, p := range r.fleet.Pods.Snapshot().Pods {
		now := time.Now().UnixNano()
		known := func(v float64) telemetry.Value { return telemetry.Value{V: v, Known: true, Metric: "vllm:some_metric"} }
		r.fleet.Telemetry.Put(p.ID, &telemetry.Sample{Engine: p.Spec.Engine, At: now, Waiting: known(1), Running: known(2), KVUsage: known(0.3),
			CacheQueried: known(1e6), CacheHit: known(5e5), LoRA: telemetry.LoRA{Known: true, Max: 4, Running: []string{"sql", "chat"}}})
		counters = append(counters, feed.Counters{Member: p.Members[0], Batches: 1e6, Stored: 1e6, Skips: map[string]uint64{"x": 1}})
	}
	r.picker.events = func() []feed.Counters { return counters }
	for range 64 {
		r.route(completion("m", ids(1, 64)))
	}
	api := newAdmin(r.picker, Version{}, quietLog())
	for _, query := range []string{"", "?detail=vllm-001&picks=64"} {
		b.Run("pods=256"+query, func(b *testing.B) {
			size := 0
			for b.Loop() {
				w := serveAdmin(api, http.MethodGet, "/v1/state"+query, "")
				size = w.Body.Len()
			}
			b.ReportMetric(float64(size)/1024, "KiB")
			b.ReportMetric(100*b.Elapsed().Seconds()/float64(b.N), "%core@1Hz")
		})
	}
}
