package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/eppctl/eppctl/internal/sim"
)

// A pod that hangs with its ports open, and one that died, hold the prefix that
// everybody asks for. Once their last numbers are too old to be known they are
// not picked, though the index still has their blocks; when they are back they
// are.
func TestPodThatDoesNotAnswer(t *testing.T) {
	for _, how := range []string{"frozen", "killed"} {
		t.Run(how, func(t *testing.T) {
			s := start(t, setup{})
			shared := prompt(1, 3200)
			own := append(slices.Clone(shared[:1600]), prompt(2, 1600)...) // the others never compute its end
			first := s.must(s.call(t.Context(), "POST", "/v1/completions", completion(shared, 1)))
			hot := s.Fleet.ByName(first.pod())
			eventually(t, func() error { return s.depth(shared, hot.Name(), 3200) })
			if a := s.must(s.call(t.Context(), "POST", "/v1/completions", completion(own, 1))); a.pod() != hot.Name() {
				t.Fatalf("served by %s, the test wants %s", a.pod(), hot.Name())
			}
			eventually(t, func() error { return s.depth(own, hot.Name(), 3200) })

			if how == "frozen" {
				hot.Stall(true)
			} else {
				hot.Kill()
			}
			// known_for is 5 s, a scrape that hangs takes half a second more.
			eventually(t, func() error { return s.filter(hot.Name(), "not-answering") })
			for i := range 8 {
				id := uuid.NewString()
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				a := s.must(s.call(ctx, "POST", "/v1/completions", completion(append(slices.Clone(shared), prompt(10+i, 64)...), 1), "x-request-id", id))
				cancel()
				if c := s.pickOf(id); c.Pick.Pod == hot.Name() || a.pod() == hot.Name() {
					t.Errorf("request %d: picked %s, served by %s; %s is %s", i, c.Pick.Pod, a.pod(), hot.Name(), how)
				}
			}

			if how == "frozen" {
				hot.Stall(false)
			} else {
				back, err := sim.Start(hot.Options())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { back.Close() })
			}
			eventually(t, func() error { return s.filter(hot.Name(), "") })
			if how == "frozen" { // its cache is as it was
				if a := s.must(s.call(t.Context(), "POST", "/v1/completions", completion(own, 1))); a.pod() != hot.Name() {
					t.Errorf("back, and served by %s", a.pod())
				}
				return
			}
			eventually(t, func() error {
				a := s.must(s.call(t.Context(), "POST", "/v1/completions", completion(prompt(int(time.Now().UnixNano()%100_000)+100, 64), 1)))
				if a.pod() != hot.Name() {
					return fmt.Errorf("the restarted pod gets nothing")
				}
				return nil
			})
		})
	}
}

// filter is nil when /v1/state and explain agree that a pod is left out by this
// filter, "" = by none.
func (s *stack) filter(pod, want string) error {
	s.t.Helper()
	var st struct {
		Pods []struct{ Name, State, Filter string }
	}
	if err := json.Unmarshal(s.admin(http.MethodGet, "/v1/state", nil), &st); err != nil {
		return err
	}
	for _, p := range st.Pods {
		if p.Name == pod && (p.Filter != want || (p.State == "down") != (want != "")) {
			return fmt.Errorf("/v1/state: pod %s is %q, filter %q, want filter %q", pod, p.State, p.Filter, want)
		}
	}
	var c struct {
		Pods []struct {
			Name, Verdict string
			Filter        *struct {
				Name string
				Why  string
			}
		}
	}
	if err := json.Unmarshal(s.explain(completion(prompt(1, 64), 1), "filter"), &c); err != nil {
		return err
	}
	for _, p := range c.Pods {
		got := ""
		if p.Filter != nil {
			got = p.Filter.Name
		}
		if p.Name == pod && (got != want || (p.Verdict == "filtered") != (want != "")) {
			return fmt.Errorf("explain: pod %s is %s by %q, want %q", pod, p.Verdict, got, want)
		}
	}
	return nil
}
