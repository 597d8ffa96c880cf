package e2e

import (
	"errors"
	"math/bits"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/eppctl/eppctl/internal/sim"
)

// An engine that answers 500 at once looks idle and keeps its prefix: without the
// breaker it would draw every request of it.
func TestFailingPodIsLeftOut(t *testing.T) {
	t.Run("EP-35", func(t *testing.T) {
		s := start(t, setup{fleet: sim.FleetOptions{Engines: 2}})
		sick := s.Fleet.Engines[0]
		// In front of the engine: everything passes but, while broken, completions.
		var broken atomic.Bool
		to, err := url.Parse(sick.URL())
		if err != nil {
			t.Fatal(err)
		}
		through := httputil.NewSingleHostReverseProxy(to)
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if broken.Load() && r.Method == http.MethodPost {
				http.Error(w, "CUDA error", http.StatusInternalServerError)
				return
			}
			through.ServeHTTP(w, r)
		}))
		t.Cleanup(front.Close)
		addr := strings.TrimPrefix(front.URL, "http://")
		text, err := os.ReadFile(s.Config)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.Config, []byte(strings.Replace(string(text), sick.Addr(), addr, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() error {
			hosts, err := s.EnvoyHosts()
			if err == nil && !strings.Contains(hosts, addr) {
				return errors.New("Envoy has not read the new host")
			}
			if err == nil {
				err = s.Synced()
			}
			return err
		})
		p := prompt(1, 3200)
		fill(s, p, sick)
		ask := func() answer { return s.call(t.Context(), "POST", "/v1/completions", completion(p, 1)) }
		if a := s.must(ask()); a.pod() != sick.Name() {
			t.Fatalf("served by %s, want %s, which holds the prefix", a.pod(), sick.Name())
		}
		broken.Store(true)
		failed, begun := 0, time.Now()
		for range 40 {
			if a := ask(); a.err != nil || a.status != http.StatusOK {
				failed++
			}
		}
		// Five in a row, and probes after a second, two more, four more and so on.
		took := time.Since(begun)
		if probes := bits.Len(uint(took/time.Second)+1) - 1; failed < 5 || failed > 5+probes {
			t.Errorf("%d of 40 requests failed within %v, want 5 and at most %d probes", failed, took, probes)
		}
		broken.Store(false)
		eventually(t, func() error {
			id := uuid.NewString()
			s.must(s.call(t.Context(), "POST", "/v1/completions", completion(p, 1), "x-request-id", id))
			if s.pickOf(id).Pick.Pod != sick.Name() {
				return errors.New("no probe has gone there")
			}
			return nil
		})
	})
}
