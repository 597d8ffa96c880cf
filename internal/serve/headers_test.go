package serve

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/eppctl/eppctl/internal/testdata"
)

// Every header that steers pickers and sidecars is removed before the engine sees
// it, in any case of letters; what looks alike is not.
func TestStripList(t *testing.T) {
	r := newRig(t, rigOptions{})
	body := completion("m", ids(1, 64))
	strip := []string{
		"x-llm-d-inference-objective", "x-gateway-inference-objective",
		"x-llm-d-inference-fairness-id", "x-gateway-inference-fairness-id",
		"x-llm-d-model-name-rewrite", "x-gateway-model-name-rewrite",
		"x-slo-ttft-ms", "x-slo-tpot-ms", "x-llm-d-slo-class", "x-llm-d-slo-ttft-ms",
		"x-prefiller-host-port", "x-encoder-hosts-ports", "x-data-parallel-host-port", "x-kv-cache-source-host-port",
		"x-gateway-destination-endpoint-served", "x-gateway-destination-endpoint-scores", "x-gateway-destination-endpoint-subset",
	}
	keep := []string{
		"traceparent", "tracestate", "authorization", "x-request-id", "x-custom", "x-llm-d-other", "x-gateway-other", "x-slo-other",
		"content-length", "accept", "prefer",
	}
	value := func(h string) string {
		switch {
		case strings.HasSuffix(h, "rewrite"):
			return "m"
		case h == "content-length":
			return "7"
		}
		return "1"
	}
	for _, h := range strip {
		for _, key := range []string{h, strings.ToUpper(h)} {
			t.Run("EP-23/"+key, func(t *testing.T) {
				got := r.ask(reqHeaders(fullDuplex, false, completionsPath, key, value(h)), reqBody(body, true))
				if removed := mutationOf(got[0]).GetRemoveHeaders(); !slices.Equal(removed, []string{h}) {
					t.Errorf("removed %v", removed)
				}
			})
		}
	}
	for _, h := range keep {
		t.Run("EP-23 EP-25/kept "+h, func(t *testing.T) {
			got := r.ask(reqHeaders(fullDuplex, false, completionsPath, h, value(h)), reqBody(body, true))
			if removed := mutationOf(got[0]).GetRemoveHeaders(); len(removed) > 0 {
				t.Errorf("removed %v", removed)
			}
			if v, set := headerOf(got[0], h); set {
				t.Errorf("set to %q", v)
			}
		})
	}
	// Without any of them nothing is set but the pick and the id.
	got := r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody(body, true))
	if n := len(mutationOf(got[0]).GetSetHeaders()); n != 2 {
		t.Errorf("%d headers are set: %v", n, mutationOf(got[0]))
	}
}

// The value of a control header that exists under two names, each way round.
func TestNewNameWins(t *testing.T) {
	for _, c := range []struct {
		suffix string
		get    func(head) string
	}{
		{"inference-objective", func(h head) string { return h.Objective }},
		{"inference-fairness-id", func(h head) string { return h.Fairness }},
		{"model-name-rewrite", func(h head) string { return h.Rewrite }},
	} {
		t.Run("EP-23/"+c.suffix, func(t *testing.T) {
			older, newer := "x-gateway-"+c.suffix, "x-llm-d-"+c.suffix
			for _, x := range []struct {
				headers []string
				want    string
			}{
				{[]string{older, "old"}, "old"}, {[]string{newer, "new"}, "new"}, {nil, ""},
				{[]string{older, "old", newer, "new"}, "new"}, {[]string{newer, "new", older, "old"}, "new"},
				{[]string{newer, "1", newer, "2"}, "1"},
			} {
				if got := c.get(parseHead(httpHeaders(false, x.headers...).Headers)); got != x.want {
					t.Errorf("%v: %q, want %q", x.headers, got, x.want)
				}
			}
		})
	}
}

// An objective that is a whole number is the priority itself.
func TestPriority(t *testing.T) {
	for objective, want := range map[string]int{"": 0, "-1": -1, "7": 7, "batch": 0, "1.5": 0, "99999999999999999999": 0} {
		if got := priority(objective); got != want {
			t.Errorf("objective %q: priority %d, want %d", objective, got, want)
		}
	}
}

// A pick's log line names the request and nothing of its prompt.
func TestLogLine(t *testing.T) {
	t.Run("EP-24/log", func(t *testing.T) {
		log := &testdata.Buffer{}
		r := newRig(t, rigOptions{options: Options{Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}})
		const path = "/v1/chat/completions"
		r.ask(reqHeaders(fullDuplex, false, completionsPath, requestIDHeader, "mine-1"), reqBody([]byte(`{"model":"m","prompt":[918273,645546]}`), true))
		r.ask(reqHeaders(fullDuplex, false, path, requestIDHeader, "mine-2"), reqBody([]byte(`{"model":"m","messages":[{"role":"user","content":"my secret"}]}`), true))
		r.ask(reqHeaders(fullDuplex, false, path, requestIDHeader, "mine-3"), reqBody([]byte(`{"model":"m","messages":"my secret`), true)) // refused
		got := r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody(completion("m", ids(1, 64)), true))
		made, _ := headerOf(got[0], requestIDHeader)
		text := log.String()
		for _, id := range []string{"mine-1", "mine-2", "mine-3", made} {
			if n := strings.Count(text, "request_id="+id); n != 1 {
				t.Errorf("%d lines of request %s", n, id)
			}
		}
		for _, private := range []string{"secret", "918273", "645546"} {
			if strings.Contains(text, private) {
				t.Errorf("the log tells %q", private)
			}
		}
	})
}

// That a body does not come in time is logged once: any client that is slow can bring it
// about.
func TestStalledBodiesAreLoggedOnce(t *testing.T) {
	log := &testdata.Buffer{}
	r := newRig(t, rigOptions{
		options: Options{Log: slog.New(slog.NewTextHandler(log, nil))},
		config:  func(c *Config) { c.Limits.PickDeadline = 20 * time.Millisecond },
	})
	for range 3 {
		c := r.talk()
		c.send(reqHeaders(nil, false, completionsPath))
		wantKinds(t, []*extproc.ProcessingResponse{c.recv()}, "headers")
		c.cancel()
	}
	if n := strings.Count(log.String(), "no body message came in time"); n != 1 {
		t.Errorf("told %d times\n%s", n, log)
	}
}

// stubRun is a request whose every report is noted in order.
type stubRun struct {
	counted
	did func(string)
}

func (s *stubRun) status(reply) { s.did("status") }
func (s *stubRun) content()     { s.did("content") }

// Envoy's time limit runs until the answer to the response headers is out: it is
// sent before anything is counted.
func TestResponseHeadersAreAnsweredFirst(t *testing.T) {
	t.Run("EP-31/order", func(t *testing.T) {
		r := newRig(t, rigOptions{})
		var order []string
		s := r.script()
		s.m.pick = func(*ask) (running, *refusal) {
			return &stubRun{did: func(what string) { order = append(order, what) }}, nil
		}
		s.step(reqHeaders(protocol(modeFullDuplex, modeFullDuplex), true, "/v1/models"))
		send := s.m.send
		s.m.send = func(m *extproc.ProcessingResponse) { order = append(order, kind(m)); send(m) }
		s.step(sse())
		s.step(respBody([]byte("x"), false))
		if got := strings.Join(order, " "); got != "resp-headers status resp-body+ content" {
			t.Errorf("order: %s", got)
		}
	})
}

// A stream that only shows its traffic is never answered: not a request without a
// body either, nor one whose body is not shown.
func TestObserving(t *testing.T) {
	t.Run("EP-15/no body", func(t *testing.T) {
		r := newRig(t, rigOptions{})
		watch := func(id string, eos bool) {
			m := reqHeaders(nil, eos, completionsPath, requestIDHeader, id)
			m.ObservabilityMode = true
			wantKinds(t, r.ask(m, respHeaders(false, ":status", "200"), respBody(nil, true)), "")
			if x, _, _ := r.picker.ring.find(id); x == nil || *x.Unmatched != "no-body" {
				t.Errorf("%s: decision %+v", id, x)
			}
		}
		watch("get", true)
		watch("hidden", false)
		waitFor(t, "idle", func() bool { return r.inFlight() == 0 })
	})
}

func TestDestinationHeaderOfClient(t *testing.T) {
	r := newRig(t, rigOptions{})
	for _, key := range []string{destinationKey, "X-Gateway-Destination-Endpoint"} {
		t.Run("EP-04/"+key, func(t *testing.T) {
			got := r.ask(reqHeaders(fullDuplex, false, completionsPath, key, "6.6.6.6:1", servedKey, "x", subsetKey, "y"),
				reqBody(completion("m", ids(1, 64)), true))
			if d := destination(t, got[0]); strings.HasPrefix(d, "6.6.6.6") {
				t.Fatalf("spoofed: %s", d)
			}
			removed := strings.Join(mutationOf(got[0]).GetRemoveHeaders(), " ")
			if removed != servedKey+" "+subsetKey {
				t.Fatalf("removed %q", removed)
			}
		})
	}
}

func TestControlHeaders(t *testing.T) {
	r := newRig(t, rigOptions{config: func(c *Config) { c.StrictModels = true }})
	body := completion("unknown", ids(1, 64))
	for _, c := range []struct {
		name    string
		headers []string
	}{
		{"old", []string{"x-gateway-model-name-rewrite", "m"}},
		{"new", []string{"x-llm-d-model-name-rewrite", "m"}},
		{"both", []string{"x-gateway-model-name-rewrite", "nobody", "x-llm-d-model-name-rewrite", "m"}},
	} {
		t.Run("EP-23/"+c.name, func(t *testing.T) {
			got := r.ask(reqHeaders(fullDuplex, false, completionsPath, c.headers...), reqBody(body, true))
			wantKinds(t, got, "headers body+eos") // the rewritten model is known, the body's is not
			removed := mutationOf(got[0]).GetRemoveHeaders()
			for i := 0; i < len(c.headers); i += 2 {
				if !strings.Contains(strings.Join(removed, " "), c.headers[i]) {
					t.Fatalf("%s is not removed: %v", c.headers[i], removed)
				}
			}
		})
	}
	h := parseHead(httpHeaders(false,
		"x-gateway-inference-objective", "low", "x-llm-d-inference-objective", "-2", "x-gateway-inference-fairness-id", "t1",
		"x-slo-ttft-ms", "5", "x-llm-d-slo-class", "a", "x-prefiller-host-port", "h:1", "x-custom", "kept").Headers)
	if h.Objective != "-2" || h.Fairness != "t1" || len(h.Strip) != 6 {
		t.Fatalf("%+v", h)
	}
	t.Run("EU-02", func(t *testing.T) {
		got := r.ask(reqHeaders(fullDuplex, false, completionsPath, "accept", "a", "accept", "b", "content-length", "7", "x-llm-d-inference-fairness-id", "t"), reqBody(completion("m", ids(1, 64)), true))
		m := mutationOf(got[0])
		for _, x := range m.GetSetHeaders() {
			if k := x.GetHeader().GetKey(); k == "accept" || k == "content-length" {
				t.Fatalf("%s is touched", k)
			}
		}
		if len(m.GetRemoveHeaders()) != 1 {
			t.Fatalf("removed %v", m.GetRemoveHeaders())
		}
	})
}

func TestRequestID(t *testing.T) {
	r := newRig(t, rigOptions{})
	body := completion("m", ids(1, 64))
	t.Run("EP-24", func(t *testing.T) {
		got := r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody(body, true))
		id, ok := headerOf(got[0], requestIDHeader)
		if !ok || id == "" {
			t.Fatal("no id is generated")
		}
		if x, _, _ := r.picker.ring.find(id); x == nil || x.RequestID != id {
			t.Fatal("the explain record has another id")
		}
		got = r.ask(reqHeaders(fullDuplex, false, completionsPath, requestIDHeader, "mine"), reqBody(body, true))
		if _, ok := headerOf(got[0], requestIDHeader); ok {
			t.Fatal("a client's id is overwritten")
		}
		if x, _, _ := r.picker.ring.find("mine"); x == nil {
			t.Fatal("the explain record does not know the client's id")
		}
		if page := scrapePage(t, r.picker.met, true); !strings.Contains(page, `request_id="mine"`) {
			t.Fatal("no exemplar names the request")
		}
	})
	t.Run("EP-24 unusable", func(t *testing.T) {
		got := r.ask(reqHeaders(fullDuplex, false, completionsPath, requestIDHeader, strings.Repeat("x", maxRequestID+1)), reqBody(body, true))
		if _, ok := headerOf(got[0], requestIDHeader); !ok {
			t.Fatal("an endless id is kept")
		}
	})
}
