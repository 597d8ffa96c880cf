package feed

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

// faulty stands before an engine like a sidecar and spoils the answers of some
// paths for as long as it is told to.
type faulty struct {
	engine http.Handler

	mu      sync.Mutex
	spoil   map[string]http.HandlerFunc // by path, "" = every path
	spoiled int
}

func (f *faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	h := f.spoil[r.URL.Path]
	if h == nil {
		h = f.spoil[""]
	}
	if h != nil && r.URL.Path != "/metrics" {
		f.spoiled++
	}
	f.mu.Unlock()
	if h == nil {
		h = f.engine.ServeHTTP
	}
	h(w, r)
}

func (f *faulty) set(spoil map[string]http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spoil, f.spoiled = spoil, 0
}

func (f *faulty) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.spoiled
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not now", code) }
}

// The ways in which a question fails that may be answered later.
var failures = map[string]http.HandlerFunc{
	"503": status(503),
	"500": status(500),
	"429": status(429),
	"no answer in time": func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done() // which is when the asker gave up
	},
	"connection cut": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	"answer cut": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, `{"0":{"enable_kv_`)
	},
}

// behindSidecar starts an engine that publishes, and before it a sidecar that can
// be made to fail.
func behindSidecar(t *testing.T) (e *engine, pub *zmtp.Publisher, sidecar *faulty, address string) {
	t.Helper()
	e = newEngine(t, "m")
	pub = publisher(t, "127.0.0.1:0", zmtp.Options{})
	e.tells(pub.Addr(), "")
	sidecar = &faulty{engine: e}
	address, _ = serve(t, sidecar)
	return e, pub, sidecar, address
}

// A pod that fails its questions at first becomes what it is when it answers.
func TestFeedAsksUntilTold(t *testing.T) {
	for name, h := range failures {
		for _, path := range []string{"", "/v1/models", "/kv_event_sources"} {
			t.Run(name+" at "+path, func(t *testing.T) {
				t.Parallel()
				_, pub, sidecar, address := behindSidecar(t)
				sidecar.set(map[string]http.HandlerFunc{path: h})
				f, fleet := startFeed(t, Options{})
				f.Apply([]pod.Spec{{Name: "p", Address: address}})
				eventually(t, "asked in vain", func() bool { return sidecar.count() >= 2 }, nil)
				sidecar.set(nil)
				p := waitPod(t, fleet, "p", func(p *pod.Pod) bool {
					return p.Spec.Engine == pod.EngineVLLM && p.Spec.Model == "m" && len(p.Spec.Events) == 1
				})
				subscribed(t, pub)
				pub.Send("", 0, stored(1))
				waitHeld(t, fleet, p.Members[0], prompt("m", 1), 2)
				if got := codesOf(f.Findings()); !slices.Equal(got, []string{"no-replay"}) {
					t.Errorf("findings %q", got)
				}
			})
		}
	}
}

// A pod that restarts and fails questions for a moment loses nothing it has
// told, and is asked until it tells again.
func TestFeedKeepsWhatWasTold(t *testing.T) {
	spoils := map[string]http.HandlerFunc{"404": status(404), "HTML": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }}
	for name, h := range failures {
		spoils[name] = h
	}
	for name, h := range spoils {
		for _, path := range []string{"/v1/models", "/kv_event_sources"} {
			t.Run(name+" at "+path, func(t *testing.T) {
				t.Parallel()
				e, pub, sidecar, address := behindSidecar(t)
				f, fleet := startFeed(t, Options{})
				f.Apply([]pod.Spec{{Name: "p", Address: address}})
				subscribed(t, pub)
				p := waitPod(t, fleet, "p", func(p *pod.Pod) bool { return p.Spec.Model == "m" })
				eventually(t, "scraped", func() bool { return fleet.Telemetry.Get(p.ID).Sample != nil }, nil)

				sidecar.set(map[string]http.HandlerFunc{path: h})
				e.started.Store(2000)
				eventually(t, "asked again in vain", func() bool { return sidecar.count() >= 1 }, nil)
				e.started.Store(3000) // a second round begins when the first was heard
				eventually(t, "and again", func() bool { return sidecar.count() >= 2 }, nil)
				// The purges for the restarts may still be under way.
				for i := uint64(0); held(fleet, p.Members[0], prompt("m", 1)) != 2 && i < 10_000; i++ {
					pub.Send("", i, stored(1))
					time.Sleep(time.Millisecond)
				}
				waitHeld(t, fleet, p.Members[0], prompt("m", 1), 2)
				q := fleet.Pods.Snapshot().ByName("p")
				if q == nil || q.Epoch != p.Epoch || q.Spec.Model != "m" || len(q.Spec.Events) != 1 || q.Spec.Engine != pod.EngineVLLM {
					t.Errorf("after a question in vain: %+v", q)
				}
				if s := fleet.Sync.Get(p.Members[0]); s.State == view.NoEvents || s.State == view.Connecting {
					t.Errorf("%+v", s)
				}
			})
		}
	}
}

// After a restart that was asked about in vain, a new model is still heard of;
// and after that another one: what was told is never taken for configured.
func TestFeedModelChangesTwice(t *testing.T) {
	e, pub, sidecar, address := behindSidecar(t)
	f, fleet := startFeed(t, Options{})
	f.Apply([]pod.Spec{{Name: "p", Address: address}})
	subscribed(t, pub)
	for i, model := range []string{"n", "o", "p"} {
		p := fleet.Pods.Snapshot().ByName("p")
		eventually(t, "scraped", func() bool { return fleet.Telemetry.Get(p.ID).Sample != nil }, nil)
		sidecar.set(map[string]http.HandlerFunc{"/v1/models": status(500)})
		e.model.Store(&model)
		e.started.Store(2000 + int64(i))
		eventually(t, "asked in vain", func() bool { return sidecar.count() >= 1 }, nil)
		sidecar.set(nil)
		waitPod(t, fleet, "p", func(p *pod.Pod) bool { return p.Spec.Model == model })
	}
}

// The scraper follows when the engine turns out to have its metrics elsewhere.
func TestFeedMovesScraper(t *testing.T) {
	sidecar := &faulty{engine: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/models":
			io.WriteString(w, `{"data":[{"id":"m","owned_by":"tensorrt_llm"}]}`)
		case "/prometheus/metrics":
			io.WriteString(w, "trtllm_num_requests_running 1\ntrtllm_num_requests_waiting 0\n")
		default:
			http.NotFound(w, r)
		}
	})}
	address, _ := serve(t, sidecar)
	sidecar.set(map[string]http.HandlerFunc{"": status(503)})
	f, fleet := startFeed(t, Options{})
	f.Apply([]pod.Spec{{Name: "p", Address: address}})
	eventually(t, "scraped in vain", func() bool { return fleet.Telemetry.Get(0).Err != "" }, nil)
	sidecar.set(nil)
	eventually(t, "a sample", func() bool { return fleet.Telemetry.Get(0).Sample != nil }, func() string { return fleet.Telemetry.Get(0).Err })
}

func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want outcome
	}{
		{nil, given}, {io.ErrUnexpectedEOF, failed}, {fmt.Errorf("x: %w", errNotJSON), notOffered},
		{&httpError{code: 404}, notOffered}, {&httpError{code: 405}, notOffered}, {&httpError{code: 501}, notOffered},
		{&httpError{code: 401}, notOffered}, {&httpError{code: 403}, notOffered},
		{&httpError{code: 500}, failed}, {&httpError{code: 502}, failed}, {&httpError{code: 503}, failed}, {&httpError{code: 504}, failed},
		{&httpError{code: 408}, failed}, {&httpError{code: 425}, failed}, {&httpError{code: 429}, failed},
	} {
		if got := outcomeOf(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

func TestLearn(t *testing.T) {
	yes, no, not := question{given, nil}, question{failed, errors.New("HTTP 500")}, question{notOffered, errNotJSON}
	model := []servedModel{{ID: "m"}}
	source := []eventSource{{on: true, endpoint: "tcp://*:1"}}
	full := told{engine: pod.EngineVLLM, version: "1", models: model, events: source, aboutModels: yes, aboutEvents: yes}
	known := full
	for _, q := range []question{no, not} {
		known.learn(told{aboutModels: q, aboutEvents: q})
		if known.engine != full.engine || known.version != "1" || len(known.models) != 1 || len(known.events) != 1 ||
			known.aboutModels != yes || known.aboutEvents != yes {
			t.Errorf("after %+v: %+v", q, known)
		}
	}
	known.learn(told{engine: pod.EngineVLLM, aboutModels: no, aboutEvents: yes})
	if len(known.events) != 0 || len(known.models) != 1 {
		t.Errorf("told that there are no event sources: %+v", known)
	}
	known = full
	known.learn(told{engine: pod.EngineTriton, aboutModels: not, aboutEvents: not})
	if known.engine != pod.EngineTriton || known.models != nil || known.events != nil || known.aboutModels != not {
		t.Errorf("another engine: %+v", known)
	}
	if !full.final(0) || !known.final(0) || (&told{aboutModels: yes, aboutEvents: not}).final(0) ||
		!(&told{aboutModels: yes, aboutEvents: not}).final(pod.EngineTRTLLM) || (&told{engine: pod.EngineVLLM, aboutModels: yes, aboutEvents: no}).final(0) {
		t.Error("final")
	}
}

// What an engine told is nothing about the one at the pod's next address.
func TestMovedForgets(t *testing.T) {
	f, fleet := startFeed(t, Options{})
	k := &keeper{feed: f, base: pod.Spec{Name: "p", Address: "engine-0.test:1", Ranks: 1}, log: f.opts.Log, addr: netip.MustParseAddrPort("127.0.0.9:1")}
	k.known = told{engine: pod.EngineVLLM, models: []servedModel{{ID: "m"}}, aboutModels: question{given, nil}, aboutEvents: question{notOffered, errNoSource}}
	k.complete()
	if err := k.register(); err != nil || k.spec.Model != "m" {
		t.Fatalf("%v, %+v", err, k.spec)
	}
	if k.moved(netip.MustParseAddrPort("127.0.0.9:1"), &work{}) || k.spec.Model != "m" {
		t.Errorf("the same address: %+v", k.spec)
	}
	if !k.moved(netip.MustParseAddrPort("127.0.0.10:1"), &work{}) || k.spec.Model != "" || k.spec.Engine != pod.EngineUnknown {
		t.Errorf("another address: %+v", k.spec)
	}
	fleet.Pods.Remove(k.pod.ID)
}
