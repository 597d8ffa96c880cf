package serve

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

func TestEqualScoresAgree(t *testing.T) {
	t.Run("EP-27", func(t *testing.T) {
		pods := threePods()
		one, two := newRig(t, rigOptions{pods: pods}), newRig(t, rigOptions{pods: pods})
		less := newRig(t, rigOptions{pods: pods[:2]})
		moved, spread := 0, map[string]int{}
		for i := range 60 {
			id := fmt.Sprintf("request-%d", i)
			ask := func(r *rig) string {
				c := r.talk()
				c.send(reqHeaders(fullDuplex, true, "/v1/models", requestIDHeader, id))
				got := c.rest() // the stream ends, and with it the request
				waitFor(t, "idle", func() bool { return r.inFlight() == 0 })
				return destination(t, got[0])
			}
			a, b, c := ask(one), ask(two), ask(less)
			if a != b {
				t.Fatalf("%s: %s and %s", id, a, b)
			}
			spread[a]++
			if a != c {
				if moved++; a != "[fd00::3]:8000" {
					t.Fatalf("%s moved from %s, which is still there", id, a)
				}
			}
		}
		if len(spread) != 3 || moved == 0 {
			t.Fatalf("spread %v, moved %d", spread, moved)
		}
	})
}

func TestTargetPorts(t *testing.T) {
	t.Run("EP-28", func(t *testing.T) {
		var pods []pod.Spec
		for port := 8000; port < 8008; port++ {
			pods = append(pods, pod.Spec{Name: fmt.Sprint(port), Address: fmt.Sprintf("10.0.0.1:%d", port), Model: "m"})
		}
		r := newRig(t, rigOptions{pods: pods})
		seen := map[string]bool{}
		for i := range 8 { // streams stay open, so that load spreads them
			c := r.talk()
			c.send(reqHeaders(fullDuplex, false, completionsPath), reqBody(completion("m", ids(i, 900)), true))
			seen[destination(t, c.recv())] = true
		}
		if len(seen) != 8 {
			t.Fatalf("%d endpoints of 8 used", len(seen))
		}
	})
}

func TestIPv6(t *testing.T) {
	t.Run("EP-29", func(t *testing.T) {
		r := newRig(t, rigOptions{pods: threePods()[2:], options: Options{EmitScores: true}})
		body := completion("m", ids(1, 64))
		for _, mode := range []bodyMode{modeNone, modeStreamed, modeBuffered, modePartial, modeFullDuplex} {
			for _, got := range r.ask(reqHeaders(protocol(mode, modeNone), false, completionsPath), reqBody(body, true)) {
				if mutationOf(got) != nil && len(mutationOf(got).GetSetHeaders()) > 0 {
					if d := destination(t, got); d != "[fd00::3]:8000" {
						t.Fatalf("%v: %s", mode, d)
					}
					scores := got.GetDynamicMetadata().GetFields()[lbNamespace].GetStructValue().GetFields()[scoresKey].GetStructValue().GetFields()
					if _, ok := scores["[fd00::3]:8000"]; !ok || len(scores) != 1 {
						t.Fatalf("scores %v", scores)
					}
				}
			}
		}
		if d := destination(t, r.ask(reqHeaders(fullDuplex, true, "/v1/models"))[0]); d != "[fd00::3]:8000" {
			t.Fatal(d)
		}
	})
}

// stuck is a tokenizer that never answers.
type stuck struct{ asked chan struct{} }

func (stuck) Name() string { return "stuck" }

func (s stuck) Tokenize(ctx context.Context, _ tokenizer.Text) (tokenizer.Result, error) {
	s.asked <- struct{}{}
	<-ctx.Done()
	return tokenizer.Result{}, ctx.Err()
}

func TestPickDeadline(t *testing.T) {
	t.Run("EP-30", func(t *testing.T) {
		r := newRig(t, rigOptions{
			provider: stuck{make(chan struct{}, 10)},
			config:   func(c *Config) { c.Limits.PickDeadline = 20 * time.Millisecond },
		})
		body := []byte(`{"model":"m","prompt":"some text"}`)
		got := r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody(body, true))
		wantKinds(t, got, "headers body+eos")
		if why := metadataOf(got[0], reasonKey); why != string(reason.TokenizeSlow) {
			t.Fatalf("reason %q", why)
		}
		if page := scrapePage(t, r.picker.met, false); !strings.Contains(page, `eppctl_unmatched_total{reason="tokenize-deadline"} 1`) {
			t.Fatal("not counted")
		}
	})
	t.Run("EP-30 others hold the processors", func(t *testing.T) {
		r := newRig(t, rigOptions{config: func(c *Config) { c.Limits.PickDeadline = 20 * time.Millisecond }})
		r.route(completion("m", ids(1, 64)))
		if n := r.picker.met.crowded.Load(); n != 0 {
			t.Fatalf("%d picks without a slot, and all were free", n)
		}
		slots := r.picker.slots.all
		for range cap(slots) {
			slots <- struct{}{}
		}
		got := r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody(completion("m", ids(1, 64)), true))
		wantKinds(t, got, "headers body+eos")
		if why := metadataOf(got[0], reasonKey); why != string(reason.Deadline) {
			t.Errorf("reason %q", why)
		}
		if page := scrapePage(t, r.picker.met, false); !strings.Contains(page, "eppctl_picks_without_slot_total 1\n") {
			t.Error("not counted")
		}
		if len(slots) != cap(slots) {
			t.Error("a slot was given back that was never taken")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		a := &ask{Head: head{Path: completionsPath, ContentType: "application/json"}, Body: completion("m", ids(1, 64))}
		if _, no := r.picker.Pick(ctx, a); no == nil || no.Status != clientGone().Status {
			t.Errorf("a client that left was answered: %+v", no)
		}
		for range cap(slots) {
			<-slots
		}
	})
	t.Run("EP-30 no end of the body", func(t *testing.T) {
		r := newRig(t, rigOptions{config: func(c *Config) { c.Limits.PickDeadline = 20 * time.Millisecond }})
		c := r.talk()
		c.send(reqHeaders(fullDuplex, false, completionsPath), reqBody([]byte("{"), false))
		got := c.recv()
		destination(t, got)
		if why := metadataOf(got, reasonKey); why != string(reason.Deadline) {
			t.Fatalf("reason %q", why)
		}
	})
}

// faulty panics, as a bug of ours would.
type faulty struct{}

func (faulty) Name() string { return "faulty" }

func (faulty) Tokenize(context.Context, tokenizer.Text) (tokenizer.Result, error) {
	panic("a bug")
}

func TestPanicIsOneRequests(t *testing.T) {
	t.Run("EU-10/internal", func(t *testing.T) {
		r := newRig(t, rigOptions{provider: faulty{}})
		for range 2 * cap(r.picker.slots.all) {
			got := r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody([]byte(`{"model":"m","prompt":"x"}`), true))
			wantKinds(t, got, "immediate 500")
			checkError(t, got[0].GetImmediateResponse(), "api_error", "internal_error", nil)
		}
		r.route(completion("m", ids(1, 64))) // others go on
	})
}

// TestRouting holds the scenarios of the field's own integration tests.
func TestRouting(t *testing.T) {
	set := func(r *rig, name string, queue, kv float64, loras ...string) {
		r.fleet.Telemetry.Put(r.pod(name).ID, &telemetry.Sample{
			Engine: pod.EngineVLLM, At: time.Now().UnixNano(),
			Waiting: telemetry.Value{V: queue, Known: true}, Running: telemetry.Value{V: 1, Known: true},
			KVUsage: telemetry.Value{V: kv, Known: true},
			LoRA:    telemetry.LoRA{Known: true, Max: 2, Running: loras},
		})
	}
	t.Run("RS-01", func(t *testing.T) {
		r := newRig(t, rigOptions{})
		set(r, "a", 3, .2)
		set(r, "b", 0, .1)
		set(r, "c", 10, .2)
		if d := r.route(completion("m", ids(1, 300))); d != r.pod("b").Target {
			t.Fatal(d)
		}
		if page := scrapePage(t, r.picker.met, false); !strings.Contains(page, `eppctl_requests_total{code="200",model="m",reason=""} 1`) {
			t.Fatal("the request is not counted")
		}
	})
	t.Run("RS-02", func(t *testing.T) {
		r := newRig(t, rigOptions{})
		set(r, "a", 0, .2, "x")
		set(r, "b", 0, .2, "ad")
		set(r, "c", 0, .2, "y")
		if d := r.route(completion("ad", ids(1, 300))); d != r.pod("b").Target {
			t.Fatal(d)
		}
	})
	t.Run("RS-03", func(t *testing.T) {
		r := newRig(t, rigOptions{})
		set(r, "a", 2, .2, "x", "y")
		set(r, "b", 2, .2, "x", "y")
		set(r, "c", 2, .7, "ad", "y")
		if d := r.route(completion("ad", ids(1, 300))); d != r.pod("c").Target {
			t.Fatal(d)
		}
	})
	t.Run("RS-10", func(t *testing.T) {
		r := newRig(t, rigOptions{})
		r.route(completion("nobody-knows", ids(1, 300)), "x-llm-d-inference-objective", "3")
	})
	t.Run("RS-17", func(t *testing.T) {
		for _, on := range []bool{false, true} {
			r := newRig(t, rigOptions{options: Options{EmitScores: on}})
			got := r.ask(reqHeaders(fullDuplex, true, "/v1/models"))[0]
			_, has := got.GetDynamicMetadata().GetFields()[lbNamespace].GetStructValue().GetFields()[scoresKey]
			if has != on {
				t.Fatalf("scores present %v, asked for %v", has, on)
			}
		}
	})
}

func TestRanks(t *testing.T) {
	r := newRig(t, rigOptions{pods: []pod.Spec{{Name: "dp", Address: "10.0.0.1:8000", Model: "m", Engine: pod.EngineVLLM, Ranks: 2}}})
	prompt := ids(4, 128)
	r.cache("dp", 1, prompt)
	got := r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody(completion("m", prompt), true))
	if rank, _ := headerOf(got[0], rankHeader); rank != "1" {
		t.Fatalf("rank %q, want 1", rank)
	}
	got = r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody(completion("m", ids(9, 128)), true))
	if rank, _ := headerOf(got[0], rankHeader); rank != "0" && rank != "1" {
		t.Fatalf("rank %q, want one of both", rank)
	}
	r = newRig(t, rigOptions{pods: []pod.Spec{{Name: "dp", Address: "10.0.0.1:8000", Model: "m", Engine: pod.EngineTRTLLM, Ranks: 2}}})
	r.cache("dp", 1, prompt)
	got = r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody(completion("m", prompt), true))
	if rank, ok := headerOf(got[0], rankHeader); ok {
		t.Fatalf("rank %q for an engine that does not listen", rank)
	}
}

func TestIfAvailable(t *testing.T) {
	r := newRig(t, rigOptions{})
	prompt := ids(6, 128)
	ask := func() string {
		return kind(r.ask(reqHeaders(fullDuplex, false, completionsPath, "prefer", "respond-async, if-available"), reqBody(completion("m", prompt), true))[0])
	}
	if k := ask(); k != "immediate 412" {
		t.Fatalf("not cached: %s", k)
	}
	r.cache("a", 0, prompt)
	if k := ask(); k != "headers" {
		t.Fatalf("cached: %s", k)
	}
}
