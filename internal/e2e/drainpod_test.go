package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// A pod that an edit of the configuration drains finishes what it runs and gets
// nothing new: from the picker, though it holds the prefix, and from Envoy alone while
// the picker is away. Undrained it is used again, and nothing it holds was forgotten.
func TestDrainedPod(t *testing.T) {
	s := start(t, setup{})
	held := prompt(1, 640)
	warm := s.must(s.call(t.Context(), "POST", "/v1/completions", completion(held, 1))).pod()
	eventually(t, func() error { return s.depth(held, warm, 640) })
	s.quiet()

	running := make(chan answer)
	s.Fleet.ByName(warm).SetSlow(200)
	go func() { running <- s.call(t.Context(), "POST", "/v1/completions", completion(held, 8)) }()
	eventually(t, func() error {
		if now, waiting := s.Fleet.ByName(warm).Load(); now+waiting == 0 {
			return fmt.Errorf("pod %s has no request yet", warm)
		}
		return nil
	})
	s.drain(warm, true)
	s.Fleet.ByName(warm).SetSlow(1)
	if a := s.must(<-running); a.pod() != warm {
		t.Errorf("the request that ran on %s was answered by %s", warm, a.pod())
	}
	for range 6 {
		if a := s.must(s.call(t.Context(), "POST", "/v1/completions", completion(held, 1))); a.pod() == warm {
			t.Fatalf("the picker chose %s, which is draining", warm)
		}
	}
	eventually(t, func() error {
		hosts, err := s.EnvoyHosts()
		if err == nil && !strings.Contains(hosts, "/eds_status_draining") {
			err = fmt.Errorf("Envoy takes every host for well:\n%s", hosts)
		}
		return err
	})

	if err := s.Serve.Stop(patience); err != nil {
		t.Fatal(err)
	}
	for range 6 {
		if a := s.must(s.call(t.Context(), "POST", "/v1/completions", completion(held, 1))); a.pod() == warm {
			t.Fatalf("Envoy alone chose %s, which is draining", warm)
		}
	}
	if err := s.StartServe(); err != nil {
		t.Fatal(err)
	}
	s.drain(warm, false)
	if err := s.depth(held, warm, 640); err != nil {
		t.Error(err)
	}
}

// drain edits the configuration and waits until the picker heeds it.
func (s *stack) drain(pod string, on bool) {
	s.t.Helper()
	text, err := os.ReadFile(s.Config)
	if err != nil {
		s.t.Fatal(err)
	}
	const key = ", draining: true"
	name := fmt.Sprintf("{name: %q", pod)
	edited := strings.ReplaceAll(string(text), key, "")
	if on {
		edited = strings.Replace(edited, name, name+key, 1)
	}
	if edited == string(text) {
		s.t.Fatalf("no pod %s in\n%s", pod, text)
	}
	if err := os.WriteFile(s.Config, []byte(edited), 0o644); err != nil {
		s.t.Fatal(err)
	}
	eventually(s.t, func() error {
		if is := strings.Contains(string(s.admin("GET", "/v1/state?filter="+pod, nil)), `"draining":true`); is != on {
			return fmt.Errorf("pod %s draining: %v, want %v", pod, is, on)
		}
		return nil
	})
}
