package e2e

import (
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/sim"
)

// Turn 2..n of each conversation finds everything the turn before computed, on
// vLLM and SGLang engines with different block sizes side by side.
func TestConversationsReachTheirPrefix(t *testing.T) {
	s := start(t, setup{fleet: sim.FleetOptions{Engines: 4, Mixed: true}})
	work := sim.WorkloadOptions{Seed: 7, Conversations: 24, Turns: 5, Systems: 4, SystemWords: 600, UserWords: 60, Output: 12,
		Gap: 80 * time.Millisecond, Think: 150 * time.Millisecond, Model: "sim"}
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
		}
	}
	if share := float64(reached) / float64(turns); share < 0.95 {
		t.Errorf("%d of %d later turns found their prefix: %.3f, want at least 0.95", reached, turns, share)
	}
	if len(pods) < 2 {
		t.Errorf("all load went to one pod: %v", pods)
	}
}

// An engine that dials its subscriber, and one that restarts with an empty cache.
func TestRestartedEngineIsFollowed(t *testing.T) {
	s := start(t, setup{fleet: sim.FleetOptions{Engines: 2}})
	p := prompt(1, 640)
	first := s.must(s.call(t.Context(), "POST", "/v1/completions", completion(p, 4)))
	eventually(t, 5*time.Second, func() error { return s.depth(p, first.pod(), 640) })

	old := s.Fleet.ByName(first.pod())
	old.Kill()
	again, err := sim.Start(old.Options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { again.Close() })
	eventually(t, 20*time.Second, func() error { return s.depth(p, first.pod(), 0) })
	eventually(t, 20*time.Second, s.Synced)
	// It is filled again, from sequence number 0, and found again.
	if a := s.must(s.call(t.Context(), "POST", "/v1/completions", completion(p, 4))); a.pod() == first.pod() {
		eventually(t, 5*time.Second, func() error { return s.depth(p, first.pod(), 640) })
	} else {
		eventually(t, 5*time.Second, func() error { return s.depth(p, a.pod(), 640) })
	}
}
