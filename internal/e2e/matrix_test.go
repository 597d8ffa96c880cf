package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/eppctl/eppctl/internal/serve"
	"github.com/eppctl/eppctl/internal/sim"
)

// Every bootstrap that envoy-config prints, run by a real Envoy in both body
// modes, over one IPv4 and one IPv6 engine.
func TestPrintedBootstraps(t *testing.T) {
	for _, v := range serve.Variants() {
		for _, b := range serve.Bodies() {
			t.Run(fmt.Sprintf("EP-45/%s/%s", v, b), func(t *testing.T) {
				s := start(t, setup{
					fleet:       sim.FleetOptions{Engines: 2, IPv6: true},
					envoyConfig: []string{"--variant", string(v), "--body", string(b)},
				})
				m := matrix{s, v, b}
				t.Run("picks on IPv4 and IPv6", m.picks)
				t.Run("3 MB body", m.largeBody)
				t.Run("GET", m.get)
				t.Run("client-sent destination", m.spoof)
				t.Run("SSE", m.stream)
				t.Run("cancel", m.cancel)
				t.Run("ImmediateResponse", m.refusal)
				s.quiet()
			})
		}
	}
}

type matrix struct {
	*stack
	variant serve.Variant
	body    serve.Body
}

// sub returns the stack reporting to a subtest.
func (m matrix) sub(t *testing.T) *stack { return &stack{m.Stack, t, m.client, m.dir} }

func (m matrix) picks(t *testing.T) {
	s := m.sub(t)
	served := map[string]int{}
	for i := range 40 {
		id := uuid.NewString()
		a := s.must(s.call(t.Context(), "POST", "/v1/completions", completion(prompt(i, 200), 1), "x-request-id", id))
		c := s.pickOf(id)
		if a.pod() != c.Pick.Pod {
			t.Fatalf("request %d: served by %q, picked %q", i, a.pod(), c.Pick.Pod)
		}
		if e := s.Fleet.ByName(c.Pick.Pod); e == nil || e.Addr() != c.Pick.Addr {
			t.Fatalf("pick %+v is no engine's address", c.Pick)
		}
		if served[a.pod()]++; len(served) == 2 {
			return
		}
	}
	t.Errorf("40 new prompts went to %v, want both pods", served)
}

func (m matrix) largeBody(t *testing.T) {
	s := m.sub(t)
	body, err := json.Marshal(map[string]any{"model": "sim", "prompt": prompt(1000, 64), "max_tokens": 1,
		"user": strings.Repeat("a ß 漢 \" \\ ", 3<<20/12)})
	if err != nil {
		t.Fatal(err)
	}
	if len(body) < 3<<20 {
		t.Fatalf("the body has only %d bytes", len(body))
	}
	a := s.must(s.call(t.Context(), "POST", "/v1/completions", body, sim.EchoDigest, "1"))
	if want := fmt.Sprintf("%x", sha256.Sum256(body)); a.header.Get(sim.BodyDigest) != want {
		t.Errorf("the engine got another body than was sent")
	}
	if got := a.header.Get(sim.BodyLength); got != fmt.Sprint(len(body)) {
		t.Errorf("content-length at the engine %s, want %d", got, len(body))
	}
}

func (m matrix) get(t *testing.T) {
	s := m.sub(t)
	a := s.must(s.call(t.Context(), "GET", "/v1/models", nil))
	if s.Fleet.ByName(a.pod()) == nil || !bytes.Contains(a.body, []byte(`"sim"`)) {
		t.Errorf("served by %q: %s", a.pod(), a.body)
	}
}

// A client that names a destination gets the picker's instead.
func (m matrix) spoof(t *testing.T) {
	s := m.sub(t)
	const dead = "127.0.0.1:1"
	for _, header := range []string{"x-gateway-destination-endpoint", "X-Gateway-Destination-ENDPOINT"} {
		id := uuid.NewString()
		a := s.must(s.call(t.Context(), "POST", "/v1/completions", completion(prompt(2000, 100), 1),
			header, dead, "x-request-id", id, sim.EchoDigest, "1"))
		if c := s.pickOf(id); a.pod() != c.Pick.Pod {
			t.Errorf("served by %q, picked %q", a.pod(), c.Pick.Pod)
		}
		if seen := a.header.Get(sim.SeenTarget); strings.Contains(seen, dead) {
			t.Errorf("the engine saw the client's destination: %q", seen)
		}
	}
}

func (m matrix) stream(t *testing.T) {
	s := m.sub(t)
	work := sim.WorkloadOptions{Seed: 3, Conversations: 4, Turns: 1, Systems: 1, SystemWords: 100, UserWords: 20, Output: 40, Model: "sim"}
	for _, o := range (&sim.Driver{URL: s.Proxy, Client: s.client}).Run(t.Context(), work.Draw()) {
		if o.Failed() || o.Output != 40 {
			t.Fatalf("%+v", o)
		}
	}
	// Envoy and the picker pass the chunks on as they come: the first is here while the
	// engine still computes the others, which take it seconds.
	for _, e := range s.Fleet.Engines {
		e.SetSlow(200)
	}
	lines := bufio.NewScanner(s.openStream(t.Context(), prompt(4000, 100), 40).Body)
	lines.Scan()
	running, _ := s.busiest().Load()
	for _, e := range s.Fleet.Engines {
		e.SetSlow(1)
	}
	if !strings.HasPrefix(lines.Text(), "data: {") || running == 0 {
		t.Errorf("%d requests run at the first line %.100q: the response was held back", running, lines.Text())
	}
	last := ""
	for lines.Scan() {
		if lines.Text() != "" {
			last = lines.Text()
		}
	}
	if lines.Err() != nil || last != "data: [DONE]" {
		t.Errorf("the stream ended with %v after %.100q", lines.Err(), last)
	}
}

func (m matrix) cancel(t *testing.T) {
	s := m.sub(t)
	s.quiet()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.openStream(ctx, prompt(3000, 100), 2000)
	eventually(t, func() error {
		st, err := s.State()
		if err == nil && st.Totals.InFlight != 1 {
			err = fmt.Errorf("%d in flight, want 1", st.Totals.InFlight)
		}
		return err
	})
	cancel()
	s.quiet()
	eventually(t, func() error {
		for _, e := range s.Fleet.Engines {
			if r, w := e.Load(); r+w > 0 {
				return fmt.Errorf("engine %s still computes", e.Name())
			}
		}
		return nil
	})
}

// openStream starts a streaming completion and returns once its headers are
// here. The body is closed when ctx ends.
func (s *stack) openStream(ctx context.Context, prompt []uint32, output int, extra ...string) *http.Response {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"model": "sim", "prompt": prompt, "max_tokens": output, "stream": true})
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Proxy+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(extra); i += 2 {
		req.Header.Set(extra[i], extra[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("status %d", resp.StatusCode)
	}
	return resp
}

func (m matrix) refusal(t *testing.T) {
	s := m.sub(t)
	a := s.call(t.Context(), "POST", "/v1/completions", []byte(`{"model": "sim", "prompt": `))
	var e struct {
		Error struct{ Message, Type, Code string }
	}
	if err := json.Unmarshal(a.body, &e); a.err != nil || err != nil {
		t.Fatalf("status %d, %v, %v: %s", a.status, a.err, err, a.body)
	}
	if a.status != 400 || e.Error.Type != "invalid_request_error" || e.Error.Code != "invalid_json" || e.Error.Message == "" {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	if ct := a.header.Get("Content-Type"); ct != "application/json" {
		t.Errorf("content-type %q", ct)
	}
}
