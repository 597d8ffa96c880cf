package pick

import (
	"testing"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// TestDelay: each request that waits stands for one that will wait behind, and each
// of those loses what the pod is expected to compute: a match that is half trusted
// saves half.
func TestDelay(t *testing.T) {
	b := basisFor(DefaultPolicy(), 4096) // 0.256 s cold
	for _, c := range []struct {
		name    string
		row     Row
		members int
		want    float64
	}{
		{"nobody waits", Row{Prefill: 0.256, Trust: 1}, 1, 0},
		{"three wait", Row{Prefill: 0.256, Trust: 1, Depth: 3}, 1, -0.768},
		{"warm", Row{Prefill: 0.056, Trust: 1, Depth: 3}, 1, -0.168},
		{"warm, half trusted", Row{Prefill: 0.056, Trust: 0.5, Depth: 3}, 1, -0.468},
		{"does not tell its queue", Row{Prefill: 0.256, Trust: 1, Depth: 1, Assumed: 6}, 1, -1.536},
		{"of two ranks", Row{Prefill: 0.256, Trust: 1, Depth: 1, Assumed: 6}, 2, -0.768},
		{"ours are more than the others'", Row{Prefill: 0.256, Trust: 1, Depth: 4, Assumed: 6}, 2, -1.024},
	} {
		c.row.Pod = &pod.Pod{Members: make([]pod.Member, c.members)}
		if got := delaySeconds(b, &c.row); !near(got, c.want, 1e-9) {
			t.Errorf("%s: %v s, want %v", c.name, got, c.want)
		}
	}
}

// Of two pods with the same wait the long prompt takes the one where fewer wait.
func TestDelayPrefersFewWaiting(t *testing.T) {
	f, prompt := newFleet(t, 2), tokens(1, 4096)
	f.policy.Beta = 0
	f.prove(f.pod(0))
	f.prove(f.pod(1))
	f.fill(f.pod(0), 10, 0.02)
	f.fill(f.pod(1), 1, 0.2)
	if c := f.decide(f.query(prompt, start)); winner(c) != "pod-1" {
		t.Errorf("%s", c)
	}
	f.policy.Delay = 0
	if c := f.decide(f.query(prompt, start)); !c.Tie.Used {
		t.Errorf("without the term they are equal:\n%s", c)
	}
}
