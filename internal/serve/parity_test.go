package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/parity"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/modelsource"
)

// tokenizingEngine is an engine's /tokenize by a real tokenizer, of which one id of
// one text can be made another.
type tokenizingEngine struct {
	addr   netip.AddrPort
	model  *modelsource.Model
	wrong  atomic.Pointer[string] // part of the prompt whose ids differ
	status atomic.Int32           // 0 = it answers
	asked  atomic.Int32
	now    atomic.Int32 // questions under way
	most   atomic.Int32

	generates atomic.Pointer[http.HandlerFunc] // of requests that it computes, nil = 404
	computed  atomic.Int32                     // of them
}

func newTokenizingEngine(t *testing.T) *tokenizingEngine {
	t.Helper()
	settings := &modelsource.Settings{}
	place, err := settings.Find(t.Context(), modelFolder(t, nil), "")
	if err != nil {
		t.Fatal(err)
	}
	model, err := place.Load(modelsource.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := &tokenizingEngine{model: model}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.most.Store(max(e.most.Load(), e.now.Add(1)))
		defer e.now.Add(-1)
		e.asked.Add(1)
		if g := e.generates.Load(); g != nil && slices.Contains([]string{completionPath, chatPath}, r.URL.Path) {
			e.computed.Add(1)
			(*g)(w, r)
			return
		}
		if code := int(e.status.Load()); code != 0 {
			http.Error(w, "no", code)
			return
		}
		if r.URL.Path != "/tokenize" {
			http.NotFound(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		text := tokenizer.Text{Shape: tokenizer.Completion, Body: body}
		if strings.Contains(string(body), `"messages"`) {
			text.Shape = tokenizer.Chat
		}
		res, err := model.Tokenize(r.Context(), text)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if part := e.wrong.Load(); part != nil && strings.Contains(string(body), *part) {
			res.IDs[4]++
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"tokens": res.IDs, "count": len(res.IDs)})
	}))
	t.Cleanup(s.Close)
	e.addr = netip.MustParseAddrPort(s.Listener.Addr().String())
	return e
}

// parityRig is a parityCheck over a real chain; time is what the test says.
type parityRig struct {
	*chainRig
	check *parityCheck
	fleet *view.Fleet
	clock atomic.Int64
}

func newParityRig(t *testing.T, engines ...*tokenizingEngine) *parityRig {
	t.Helper()
	f := newParityFleet(t)
	for i, e := range engines {
		if _, err := f.Pods.Add(pod.Spec{Name: fmt.Sprint("pod-", i), Address: e.addr.String(), Model: "base", Engine: pod.EngineVLLM}, e.addr); err != nil {
			t.Fatal(err)
		}
	}
	return parityRigOf(newChainRig(t, Model{Tokenizer: Tokenizer{Source: modelFolder(t, nil)}}, nil), f)
}

func newParityFleet(t *testing.T) *view.Fleet {
	t.Helper()
	c, err := LoadConfig("")
	if err != nil {
		t.Fatal(err)
	}
	return newFleet(c)
}

func parityRigOf(chain *chainRig, f *view.Fleet) *parityRig {
	r := &parityRig{chainRig: chain, fleet: f}
	r.clock.Store(time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC).UnixNano())
	r.check = newParityCheck(r.tokens, r.fleet, r.met, slog.New(slog.NewTextHandler(&r.log, nil)), r.clock.Load)
	r.check.pauses.question = 0
	r.tokens.parity = r.check.of
	return r
}

// turn asks whoever is to be asked now; false = nobody is.
func (r *parityRig) turn() bool {
	model, of, e := r.check.next()
	if of == nil {
		return false
	}
	r.check.record(model, of, e, r.check.round(r.t.Context(), of, model, e))
	return true
}

func (r *parityRig) all() (rounds int) {
	for r.turn() {
		rounds++
	}
	return rounds
}

func (r *parityRig) pass(d time.Duration) { r.clock.Add(int64(d)) }

func (r *parityRig) status() tokenizer.Status { return r.ask(completionPath, helloText).Status }

// TestParityPasses: an engine with the same ids lets the tokenizer claim exactness,
// for completions and chats.
func TestParityPasses(t *testing.T) {
	r := newParityRig(t, newTokenizingEngine(t))
	r.check.next()
	if p := r.check.of("base"); r.status() != tokenizer.Unverified || p.State != notRun || p.Why != string(reason.ParityPending) {
		t.Errorf("before: %v, %+v", r.status(), p)
	}
	if n := r.all(); n != 1 {
		t.Errorf("%d rounds with one engine", n)
	}
	p := r.check.of("base")
	if n := len(parity.Probes()); r.status() != tokenizer.Exact || p.String() != fmt.Sprintf("passed %d of %d", n, n) || p.Engine != "pod-0" {
		t.Errorf("%v, %+v", r.status(), p)
	}
	if got := r.ask(chatPath, hello).Status; got != tokenizer.Exact {
		t.Errorf("chat: %v", got)
	}
	if s := providerOf(t, r.snapshot(), "base", "native"); s.Parity == nil || s.Parity.State != passed {
		t.Errorf("%+v", s)
	}
}

// TestParityOfPodThatIsServer: the configuration may name a pod as the server of its
// model's tokens. It is asked once, and not over and over.
func TestParityOfPodThatIsServer(t *testing.T) {
	e := newTokenizingEngine(t)
	r := newParityRig(t, e)
	for _, end := range []string{"", "/"} {
		r.tokens.rules().models.Get("base").Tokenize.URLs = []string{"http://" + e.addr.String() + end}
		r.pass(24 * time.Hour)
		if first, again := r.turn(), r.turn(); !first || again {
			t.Errorf("%q: asked %v, and again %v", end, first, again)
		}
	}
}

// TestParityFails: TK-50. One other id in one probe takes the claim away, and it is
// told which and where; what is wrong may be shown, since the text is ours.
func TestParityFails(t *testing.T) {
	good, bad := newTokenizingEngine(t), newTokenizingEngine(t)
	part := "Donaudampfschiff"
	bad.wrong.Store(&part)
	r := newParityRig(t, good, bad)
	if n := r.all(); n != 2 {
		t.Fatalf("%d rounds with two engines", n)
	}
	p := r.check.of("base")
	if p.State != failed || p.Why != string(reason.ParityProbe) || p.String() != fmt.Sprintf("failed(1 of %d)", len(parity.Probes())) ||
		p.Engine != "pod-1" || !strings.Contains(p.Detail, `"long word" differs from id 4 on`) || p.Probe != "long word" || p.DiffersAt == nil || *p.DiffersAt != 4 {
		t.Errorf("%+v", p)
	}
	if got := r.status(); got != tokenizer.Unverified {
		t.Errorf("claims %v", got)
	}
	if n := strings.Count(r.log.String(), "level=WARN"); n != 1 || !strings.Contains(r.log.String(), "parity-probe-differs") {
		t.Errorf("logged %d times:\n%s", n, r.log.String())
	}
	// It was another release: its process is replaced by one that agrees.
	bad.wrong.Store(nil)
	if r.turn() {
		t.Error("asked again at once")
	}
	q := r.fleet.Pods.Snapshot().ByName("pod-1")
	r.fleet.Telemetry.Put(q.ID, &telemetry.Sample{At: r.clock.Load(), ProcessStart: telemetry.Value{V: 77, Known: true}})
	if n := r.all(); n != 1 || r.check.of("base").State != passed || r.status() != tokenizer.Exact {
		t.Errorf("after the restart: %d rounds, %+v", n, r.check.of("base"))
	}
}

// TestRefutedIsAskedLast: when an engine makes other ids of a probe, the others are asked
// before the native tokenizer, until an engine agrees again. When they cannot tell, its
// ids are better than none.
func TestRefutedIsAskedLast(t *testing.T) {
	e := newTokenizingEngine(t)
	part := "Donaudampfschiff"
	e.wrong.Store(&part)
	r := newParityRig(t, e)
	r.tokens.rules().models.Get("base").Tokenize.URLs = []string{"http://" + e.addr.String()}
	if a := r.ask(completionPath, helloText); a.Provider != byNative {
		t.Errorf("not compared: by %q", a.Provider)
	}
	r.all()
	if a := r.ask(completionPath, helloText); a.Provider != byTokenize || a.Status != tokenizer.Exact || !strings.HasPrefix(tried(a), "native tokenizer-refuted, render ") {
		t.Errorf("refuted: by %q, %v, tried %s", a.Provider, a.Status, tried(a))
	}
	s := providerOf(t, r.snapshot(), "base", "native")
	if s.State != "refuted" || s.Why != string(reason.Refuted) || s.Detail == "" || s.Files == nil || s.Failed[string(reason.Refuted)] != 1 {
		t.Errorf("%+v", s)
	}
	if !r.counted("native", reason.Refuted) {
		t.Error("not counted")
	}
	e.status.Store(http.StatusNotFound)
	if a := r.ask(completionPath, helloText); a.Provider != byNative || a.Status != tokenizer.Unverified || tried(a) != "native tokenizer-refuted, render tokenizer-missing, tokenize tokenizer-missing" {
		t.Errorf("nobody else: by %q, %v, tried %s", a.Provider, a.Status, tried(a))
	}
	asked := e.asked.Load()
	r.ask(completionPath, helloText)
	if n := e.asked.Load() - asked; n != 0 {
		t.Errorf("what is not offered was asked %d times", n)
	}
	e.status.Store(0)
	e.wrong.Store(nil)
	r.pass(2 * time.Hour)
	r.all()
	if a := r.ask(completionPath, helloText); a.Provider != byNative || a.Status != tokenizer.Exact || tried(a) != "" {
		t.Errorf("recovered: by %q, %v, tried %s", a.Provider, a.Status, tried(a))
	}
	if s := providerOf(t, r.snapshot(), "base", "native"); s.State != "ready" {
		t.Errorf("%+v", s)
	}
}

// TestRefutedOutlivesItsEngine: when the engine that makes other ids drains, is gone, or
// does not answer any more, nothing speaks for the ids, and the others are still asked
// before them. An engine that agrees ends it.
func TestRefutedOutlivesItsEngine(t *testing.T) {
	part := "Donaudampfschiff"
	drain := func(r *parityRig, name string, on bool) {
		p := r.fleet.Pods.Snapshot().ByName(name)
		r.fleet.Pods.Update(p.ID, func(p *pod.Pod) { p.Spec.Draining = on })
	}
	for name, leave := range map[string]func(*parityRig, *tokenizingEngine){
		"drains": func(r *parityRig, _ *tokenizingEngine) { drain(r, "pod-0", true) },
		"is gone": func(r *parityRig, _ *tokenizingEngine) {
			r.fleet.Pods.Remove(r.fleet.Pods.Snapshot().ByName("pod-0").ID)
		},
		"restarts": func(r *parityRig, e *tokenizingEngine) {
			e.status.Store(http.StatusServiceUnavailable)
			r.fleet.Telemetry.Put(r.fleet.Pods.Snapshot().ByName("pod-0").ID, &telemetry.Sample{At: r.clock.Load(), ProcessStart: telemetry.Value{V: 77, Known: true}})
		},
		"fails": func(r *parityRig, e *tokenizingEngine) { e.status.Store(http.StatusServiceUnavailable) },
	} {
		t.Run(name, func(t *testing.T) {
			bad, good := newTokenizingEngine(t), newTokenizingEngine(t)
			bad.wrong.Store(&part)
			r := newParityRig(t, bad, good)
			drain(r, "pod-1", true)
			r.all()
			leave(r, bad)
			r.pass(2 * time.Hour)
			r.all()
			want := fmt.Sprintf("failed(1 of %d)", len(parity.Probes()))
			if p := r.check.of("base"); p.String() != want || p.Engine != "pod-0" {
				t.Errorf("%s, %+v", p.String(), p)
			}
			if a := r.ask(completionPath, helloText); a.Provider != byNative || !strings.HasPrefix(tried(a), "native tokenizer-refuted, ") {
				t.Errorf("by %q, tried %s: native ids come first", a.Provider, tried(a))
			}
			drain(r, "pod-1", false)
			r.all()
			if p := r.check.of("base"); p.State != passed || r.status() != tokenizer.Exact {
				t.Errorf("another agrees: %+v", p)
			}
			drain(r, "pod-1", true)
			r.all()
			if p := r.check.of("base"); p.State != notRun || r.status() != tokenizer.Unverified || tried(r.ask(completionPath, helloText)) != "" {
				t.Errorf("refuted again by nobody: %+v", p)
			}
		})
	}
}

// TestParityOfUntoldModel: a pod that does not tell its model is not asked, since it may
// serve another, and the state says so instead of letting people wait.
func TestParityOfUntoldModel(t *testing.T) {
	e := newTokenizingEngine(t)
	r := newParityRig(t, e)
	p := r.fleet.Pods.Snapshot().ByName("pod-0")
	r.fleet.Pods.Update(p.ID, func(p *pod.Pod) { p.Spec.Model = "" })
	if n := r.all(); n != 0 || e.asked.Load() != 0 {
		t.Errorf("%d rounds, asked %d times", n, e.asked.Load())
	}
	if x := r.check.of("base"); x.State != notRun || x.Why != string(reason.ParityNobody) || !strings.Contains(x.Detail, "1 without a model, told or configured: set pods[].model") {
		t.Errorf("%+v", x)
	}
	r.fleet.Pods.Update(p.ID, func(p *pod.Pod) { p.Spec.Model = "other" })
	r.all()
	if x := r.check.of("base"); x.Why != string(reason.ParityNobody) || !strings.Contains(x.Detail, "no pod serves it") {
		t.Errorf("%+v", x)
	}
	r.fleet.Pods.Update(p.ID, func(p *pod.Pod) { p.Spec.Model = "base" })
	r.all()
	if x := r.check.of("base"); x.State != passed || x.Detail != "" || x.Why != "" {
		t.Errorf("%+v", x)
	}
}

// TestDoubtedIsOnProbation: when events alone speak against the ids, one request in so
// many is still routed by them, since only that can show that they are right again.
func TestDoubtedIsOnProbation(t *testing.T) {
	e := newTokenizingEngine(t)
	r := newParityRig(t, e)
	r.tokens.rules().models.Get("base").Tokenize.URLs = []string{"http://" + e.addr.String()}
	r.all()
	p := r.check.models["base"]
	for range 3 {
		p.tally.Add(parity.Judged{Verdict: parity.Differs, At: -1, Block: -1})
	}
	r.check.show("base", p)
	by := map[string]int{}
	for range 2 * probation {
		by[r.ask(completionPath, helloText).Provider]++
	}
	if by[byNative] != 2 || by[byTokenize] != 2*probation-2 {
		t.Errorf("by %v", by)
	}
	for range 256 {
		p.tally.Add(parity.Judged{Verdict: parity.Equal, At: -1, Block: -1})
	}
	r.check.show("base", p)
	if a := r.ask(completionPath, helloText); a.Provider != byNative || a.Status != tokenizer.Exact {
		t.Errorf("recovered: by %q, %v", a.Provider, a.Status)
	}
}

// TestParityOfNewFiles: what was proven of other files proves nothing.
func TestParityOfNewFiles(t *testing.T) {
	r := newParityRig(t, newTokenizingEngine(t))
	r.all()
	m := Model{Name: "base", Tokenizer: Tokenizer{Source: modelFolder(t, map[string]func(string) string{"config.json": func(s string) string { return s + " " }})}}
	r.rules = newRules(&Config{Models: Models{m}, Weights: r.rules.policy}, r.chain)
	r.settle(time.Minute)
	if got := r.status(); got != tokenizer.Unverified {
		t.Errorf("new files claim %v", got)
	}
	if n := r.all(); n != 1 || r.status() != tokenizer.Exact {
		t.Errorf("%d rounds, then %v", n, r.status())
	}
}

// TestParityIsPolite: an engine that fails is asked less and less often, one that
// offers nothing, or was asked, once an hour; never two questions at a time.
func TestParityIsPolite(t *testing.T) {
	e := newTokenizingEngine(t)
	e.status.Store(http.StatusServiceUnavailable)
	r := newParityRig(t, e)
	rounds := 0
	for range 24 * 3600 / 10 {
		rounds += r.all()
		r.pass(10 * time.Second)
	}
	// Waits of 10 s, doubled up to an hour, each half to one and a half: 9 until there, and one an hour after.
	if rounds < 15 || rounds > 24+9+24 {
		t.Errorf("%d rounds in a day with an engine that fails", rounds)
	}
	if n := e.asked.Load(); int(n) > 2*rounds {
		t.Errorf("%d questions in %d rounds: a round goes on after a failure", n, rounds)
	}
	if p := r.check.of("base"); p.State != notRun || p.Why != string(reason.ParityFailing) || !strings.Contains(p.Detail, "503") {
		t.Errorf("%+v", p)
	}
	e.status.Store(http.StatusNotFound)
	r.pass(2 * time.Hour)
	e.asked.Store(0)
	for r.all() == 0 {
		r.pass(time.Minute)
	}
	if p := r.check.of("base"); p.State != notRun || p.Why != string(reason.ParityNobody) {
		t.Errorf("%+v", p)
	}
	if n := e.asked.Load(); n > 8 { // two interfaces, two shapes
		t.Errorf("asked %d times what it does not offer", n)
	}
	if n := e.most.Load(); n != 1 {
		t.Errorf("%d questions at a time", n)
	}
}

// TestParityRuns: the goroutine does the same by itself and ends with its context.
func TestParityRuns(t *testing.T) {
	r := newParityRig(t, newTokenizingEngine(t))
	r.check.pauses.look = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.check.run(ctx) }()
	for r.status() != tokenizer.Exact {
		select {
		case <-t.Context().Done():
			t.Fatal("never exact")
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	<-done
}

// TestIDsForTheAskerAlone: ids are in the answer to the question they belong to, and
// in no other.
func TestIDsForTheAskerAlone(t *testing.T) {
	r := newRig(t, rigOptions{})
	api := newAdmin(r.picker, Version{}, slog.New(slog.DiscardHandler)).handler()
	ask := func(method, path string) map[string]json.RawMessage {
		req := httptest.NewRequest(method, path, strings.NewReader(`{"model":"m","prompt":[11,12,13,14]}`))
		req.Host = "localhost"
		w := httptest.NewRecorder()
		api.ServeHTTP(w, req)
		var x map[string]json.RawMessage
		if err := json.Unmarshal(w.Body.Bytes(), &x); err != nil {
			t.Fatalf("%s: %v\n%s", path, err, w.Body)
		}
		return x
	}
	if x := ask("POST", "/v1/explain?path=/v1/completions&tokens=1"); !strings.Contains(string(x["prompt"]), "[11,12,13,14]") {
		t.Errorf("asked for: %s", x["prompt"])
	}
	for _, path := range []string{"/v1/explain?path=/v1/completions", "/v1/explain?path=/v1/completions&tokens=0"} {
		if x := ask("POST", path); x["prompt"] != nil {
			t.Errorf("%s: %s", path, x["prompt"])
		}
	}
	if _, no := r.picker.Pick(t.Context(), pastAsk()); no != nil {
		t.Fatal(no)
	}
	for _, path := range []string{"/v1/explain/past?tokens=1", "/v1/picks", "/v1/state?picks=9"} {
		for k, v := range ask("GET", path) {
			if strings.Contains(string(v), "11,12,13") || k == "prompt" {
				t.Errorf("%s holds ids: %s %s", path, k, v)
			}
		}
	}
}

func pastAsk() *ask {
	return &ask{Head: head{RequestID: "past", Path: "/v1/completions"}, Body: []byte(`{"model":"m","prompt":[11,12,13,14]}`)}
}
