package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/sim"
)

// An engine's cache is cleared: explain says so of the pod that held the prompt, of
// no other pod and no other prompt, and no longer once it is there again.
func TestExplainCleared(t *testing.T) {
	for _, c := range []struct {
		kind  pod.Engine
		clear string
	}{{pod.EngineVLLM, "/reset_prefix_cache"}, {pod.EngineSGLang, "/flush_cache"}} {
		t.Run(c.kind.String(), func(t *testing.T) {
			s := start(t, setup{fleet: sim.FleetOptions{Engines: 2, Engine: sim.EngineOptions{Kind: c.kind, BlockSize: 16}}})
			long, short, never := prompt(1, 1600), prompt(2, 64), prompt(3, 1600)
			name := s.Fleet.Engines[0].Name()
			at := s.Fleet.Engines[0].URL() // past the picker, which would expect what it placed
			s.post(at+"/v1/completions", completion(long, 1))
			eventually(t, func() error { return s.depth(long, name, 1600) })

			s.post(at+c.clear, nil)
			s.post(at+"/v1/completions", completion(short, 1)) // vLLM tells of a clear in its next step
			eventually(t, func() error { return s.depth(short, name, 64) })
			s.reasons(long, name, "cleared", "not-cached", "no-events-ever")
			s.reasons(never, name, "not-cached", "not-cached", "no-events-ever")

			file := filepath.Join(t.TempDir(), "request.json")
			if err := os.WriteFile(file, completion(long, 1), 0o644); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(eppctl, "explain", "--addr", s.Listen.Admin, "--path", "/v1/completions", "-f", file).CombinedOutput()
			if err != nil || !regexp.MustCompile(name+` .*, cleared \S+s ago`).Match(out) {
				t.Errorf("%v: the table does not tell when the cache was cleared:\n%s", err, out)
			}

			s.post(at+"/v1/completions", completion(long, 1))
			eventually(t, func() error { return s.depth(long, name, 1600) })
			s.post(at+c.clear, nil)
			s.post(at+"/v1/completions", completion(never, 1)) // as much as was lost, and nothing of it
			eventually(t, func() error { return s.depth(never, name, 1600) })
			s.post(at+"/v1/completions", completion(prompt(4, 320), 1))
			eventually(t, func() error { return s.depth(prompt(4, 320), name, 320) })
			s.reasons(long, name, "not-cached", "not-cached", "no-events-ever")
		})
	}
}

// post sends a request to an engine itself.
func (s *stack) post(url string, body []byte) {
	s.t.Helper()
	direct := *s.Stack
	direct.Proxy = url
	s.must((&stack{&direct, s.t, s.client, s.dir}).call(s.t.Context(), http.MethodPost, "", body))
}

// reasons checks why a prompt counts as nothing on one pod, and on the others.
func (s *stack) reasons(prompt []uint32, pod, want string, others ...string) {
	s.t.Helper()
	var x struct {
		Pods []struct {
			Name, Reason string
			Age          struct{ Cleared *float64 } `json:"age_ms"`
		}
	}
	if err := json.Unmarshal(s.explain(completion(prompt, 1), "why"), &x); err != nil {
		s.t.Fatal(err)
	}
	for _, p := range x.Pods {
		ok := p.Name == pod && p.Reason == want
		for _, other := range others {
			ok = ok || p.Name != pod && p.Reason == other
		}
		if !ok || (p.Age.Cleared != nil) != (p.Reason == "cleared") {
			s.t.Errorf("pod %s: %q, age %v; want %q on %s", p.Name, p.Reason, p.Age.Cleared, want, pod)
		}
	}
	if len(x.Pods) == 0 {
		s.t.Error("no pods")
	}
}
