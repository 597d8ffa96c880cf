package pick

import (
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

func TestTwinsInABurst(t *testing.T) {
	t.Run("SC-27", func(t *testing.T) {
		f := newFleet(t, 4)
		prompt := tokens(1, 4096)
		a, _ := f.place(f.query(prompt, start))
		b, _ := f.place(f.query(prompt, start+10*ms))
		if winner(a) != winner(b) {
			t.Errorf("%s, then %s\n%s", winner(a), winner(b), b)
		}
		if r := b.WinnerRow(); r.Cached != 4080 || r.Match.Expected() != 256 || r.Match.Announced != 0 {
			t.Errorf("match of the second: %+v", r.Match)
		}
	})
	t.Run("SC-28", func(t *testing.T) {
		f := newFleet(t, 2)
		prompt := tokens(1, 4096)
		f.store(1, event.TierGPU, prompt, 0, 10)
		c, p := f.place(f.query(prompt, start))
		if winner(c) != "pod-1" {
			t.Fatalf("winner %s", winner(c))
		}
		if got := f.decide(f.query(prompt, start)).Rows[1].Match; got.Depth != 256 || got.Announced != 10 {
			t.Errorf("in flight: %+v", got)
		}
		p.End(start + 50*ms)
		if got := f.decide(f.query(prompt, start)).Rows[1].Match; got.Depth != 10 {
			t.Errorf("ended, never announced: %+v", got)
		}
	})
}

// spread places n requests and counts them per pod.
func spread(f *fleet, n int, each func(i int) (prompt []uint32, end bool)) []int {
	got := make([]int, len(f.Pods.Snapshot().Pods))
	for i := range n {
		prompt, end := each(i)
		c, p := f.place(f.query(prompt, start))
		got[c.Winner]++
		if end {
			p.FirstByte(start)
			p.End(start)
		}
	}
	return got
}

func within(t *testing.T, got []int, lo, hi int) {
	t.Helper()
	for _, n := range got {
		if n < lo || n > hi {
			t.Errorf("placed %v, want %d to %d each", got, lo, hi)
			return
		}
	}
}

func TestSpread(t *testing.T) {
	for _, preset := range []string{"pool", "fixed"} {
		policy, err := Preset(preset)
		if err != nil {
			t.Fatal(err)
		}
		fleetOf := func(n int) *fleet {
			f := newFleet(t, n)
			f.policy = policy
			for i := range n {
				f.Telemetry.Put(pod.ID(i), &telemetry.Sample{At: start, Waiting: known(0), Running: known(0), KVUsage: known(0)})
			}
			return f
		}
		t.Run("SC-32/"+preset, func(t *testing.T) {
			got := spread(fleetOf(4), 50, func(i int) ([]uint32, bool) { return tokens(i, 4096), false })
			within(t, got, 12, 13)
		})
		t.Run("SC-42/"+preset, func(t *testing.T) {
			f, prompt := fleetOf(8), tokens(1, 4096)
			for m := range 8 {
				f.store(pod.Member(m), event.TierGPU, prompt, 0, 256)
			}
			within(t, spread(f, 100, func(int) ([]uint32, bool) { return prompt, false }), 10, 15)
		})
		t.Run("SC-43/"+preset, func(t *testing.T) {
			within(t, spread(fleetOf(4), 100, func(i int) ([]uint32, bool) { return tokens(i, 4096), true }), 10, 40)
		})
	}
}

// Equal cold prompts at once: with alpha 4 the first pod keeps them until beta, the
// queue and the breaker's term outweigh 1.02 s of affinity. With alpha 1 computing beside it is as good as queueing, and
// only the breaker's depth is promised.
func TestEqualColdPrompts(t *testing.T) {
	for _, preset := range []string{"fixed", "pool"} {
		t.Run("SC-45/"+preset, func(t *testing.T) {
			f, prompt := newFleet(t, 4), tokens(1, 4096)
			var err error
			if f.policy, err = Preset(preset); err != nil {
				t.Fatal(err)
			}
			D := f.policy.Breaker.Depth
			n := make([]int, 4)
			var opened []int // in order
			for range 50 {
				c, _ := f.place(f.query(prompt, start))
				if n[c.Winner] == 0 {
					opened = append(opened, c.Winner)
					if first := &c.Rows[opened[0]]; len(opened) > 1 && first.Total > 0.001 {
						t.Errorf("a second pod opens although the first stands at %v:\n%s", first.Total, c)
					}
				}
				n[c.Winner]++
			}
			for _, x := range n {
				if x > D {
					t.Errorf("placed %v: more than %d before their first token", n, D)
				}
			}
			if preset == "fixed" && (len(opened) != 2 || n[opened[0]] < 25) {
				t.Errorf("placed %v, opened %v", n, opened)
			}
		})
	}
}
