package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/sim"
	"github.com/eppctl/eppctl/internal/sim/freeport"
)

// Turn 2..n of each conversation finds everything the turn before computed, on
// vLLM and SGLang engines with different block sizes side by side.
func TestConversationsReachTheirPrefix(t *testing.T) {
	// The prefix alone decides: what a short one weighs beside others that wait is the
	// policy's, and its tests'.
	s := start(t, setup{fleet: sim.FleetOptions{Engines: 4, Mixed: true}, weights: "{alpha: 4, delay: 0, beta: 0}"})
	// So little load that no pod is left for another: where the test's machine
	// stalls, an engine on it is slow, and the picker is right to go elsewhere.
	work := sim.WorkloadOptions{Seed: 7, Conversations: 24, Turns: 5, Systems: 4, SystemWords: 600, UserWords: 60, Output: 12,
		Gap: 200 * time.Millisecond, Think: 400 * time.Millisecond, Model: "sim"}
	d := sim.Driver{URL: s.Proxy, Client: s.client, MaxInFlight: 32}
	last := map[[2]int]sim.Outcome{}
	var outcomes []sim.Outcome
	for _, o := range d.Run(t.Context(), work.Draw()) {
		if o.Failed() {
			t.Fatalf("conversation %d turn %d: status %d, %v", o.Conversation, o.Turn, o.Status, o.Err)
		}
		last[[2]int{o.Conversation, o.Turn}] = o
		outcomes = append(outcomes, o)
	}
	if len(outcomes) != 24*5 {
		t.Fatalf("%d turns, want %d", len(outcomes), 24*5)
	}
	pods := map[string]int{}
	turns, reached := 0, 0
	for _, o := range outcomes {
		pods[o.Pod]++
		prev, ok := last[[2]int{o.Conversation, o.Turn - 1}]
		if !ok {
			continue
		}
		turns++
		size := s.Fleet.ByName(o.Pod).Options().BlockSize
		if o.Cached >= (prev.Prompt+prev.Output-1)/size*size {
			reached++
		} else {
			t.Logf("conversation %d turn %d: %d of %d cached on %s, the turn before was on %s", o.Conversation, o.Turn, o.Cached, prev.Prompt+prev.Output, o.Pod, prev.Pod)
		}
	}
	if share := float64(reached) / float64(turns); share < 0.95 {
		t.Errorf("%d of %d later turns found their prefix: %.3f, want at least 0.95", reached, turns, share)
	}
	if len(pods) < 2 {
		t.Errorf("all load went to one pod: %v", pods)
	}
}

// An engine that restarts with an empty cache, and one whose publisher dials the
// picker: both are followed.
func TestRestartedEngineIsFollowed(t *testing.T) {
	bind := freeAddr(t)
	s := start(t, setup{fleet: sim.FleetOptions{Engines: 2, Each: func(i int, o *sim.EngineOptions) {
		if i == 1 {
			o.EventsTo = bind
		}
	}}})
	parent := t
	for i, e := range s.Fleet.Engines {
		t.Run(e.Name(), func(t *testing.T) {
			s := &stack{s.Stack, t, s.client, s.dir}
			p := prompt(1+i, 640)
			fill(s, p, e)
			e.Kill()
			again, err := sim.Start(e.Options())
			if err != nil {
				t.Fatal(err)
			}
			parent.Cleanup(func() { again.Close() })
			eventually(t, func() error { return s.depth(p, e.Name(), 0) })
			eventually(t, s.Synced)
			// It counts from sequence number 0 again, and is found again.
			fill(s, p, again)
		})
	}
}

// fill computes a prompt on one engine, past the picker, and waits until the
// picker has heard of it.
func fill(s *stack, p []uint32, e *sim.Engine) {
	s.t.Helper()
	resp, err := http.Post(e.URL()+"/v1/completions", "application/json", bytes.NewReader(completion(p, 2)))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("status %d", resp.StatusCode)
	}
	eventually(s.t, func() error { return s.depth(p, e.Name(), len(p)) })
}

// A pod that the configuration gains is used, and one that it loses is not, with
// no request lost on the way.
func TestConfigEditMovesTheFleet(t *testing.T) {
	s := start(t, setup{fleet: sim.FleetOptions{Engines: 3}})
	edit := func(f *sim.Fleet) {
		t.Helper()
		if err := os.WriteFile(s.Config, []byte(f.Config(s.Listen)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fresh, err := sim.Start(sim.EngineOptions{Name: "sim-new", Speedup: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fresh.Close() })
	gone := s.Fleet.Engines[0]
	outcomes := s.load(t, 21, func() {
		s.Fleet.Engines = append(s.Fleet.Engines[1:], fresh)
		edit(s.Fleet)
	})
	eventually(t, func() error {
		st, err := s.State()
		for _, p := range st.Pods {
			if p.Name == gone.Name() {
				return fmt.Errorf("the picker still knows %s", p.Name)
			}
		}
		// Until Envoy has read the hosts file too, it answers a pick it does not
		// know by round robin.
		hosts, herr := s.EnvoyHosts()
		if strings.Contains(hosts, gone.Addr()) || !strings.Contains(hosts, fresh.Addr()) {
			return errors.New("Envoy has not read the new hosts")
		}
		return errors.Join(err, herr, s.Synced())
	})
	pods := map[string]int{}
	for i := range 60 { // prompts that no pod holds go anywhere
		a := s.must(s.call(t.Context(), "POST", "/v1/completions", completion(prompt(500+i, 100), 1)))
		pods[a.pod()]++
	}
	for _, o := range outcomes {
		if o.Failed() {
			t.Errorf("turn %d of conversation %d was lost: status %d, %v", o.Turn, o.Conversation, o.Status, o.Err)
		}
	}
	if pods[gone.Name()] > 0 || pods["sim-new"] == 0 {
		t.Errorf("after the edit requests went to %v", pods)
	}
}

// freeAddr is a loopback address that nobody listens at.
func freeAddr(t *testing.T) string {
	t.Helper()
	at, err := freeport.Take("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return at
}
