package pick

import (
	"testing"
	"time"
)

// A shed request may come again when the first pod has room, by the pace of its queue.
func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		name    string
		queued  [2]int  // requests per pod, of 32 that open the breaker
		seconds float64 // each takes
		after   time.Duration
		want    time.Duration
	}{
		{"9 of 40 must answer", [2]int{40, 60}, 0.5, 0, 4500 * time.Millisecond},
		{"some have", [2]int{40, 60}, 0.5, 10 * time.Second, 2250 * time.Millisecond},
		{"one must", [2]int{60, 32}, 2, 0, 2 * time.Second},
		{"sooner than a header can say", [2]int{32, 32}, 0.01, 0, time.Second},
		{"overdue", [2]int{40, 60}, 0.5, time.Minute, time.Second},
		{"bounded", [2]int{200, 300}, 10, 0, 30 * time.Second},
	} {
		f := newFleet(t, 2)
		f.policy.Breaker.Depth = 32
		for i, n := range c.queued {
			f.fill(f.pod(i), n, c.seconds)
		}
		q := f.query(tokens(1, 64), start+int64(c.after))
		q.Priority = -1
		card := f.decide(q)
		if card.Outcome != Overloaded {
			t.Fatalf("%s: %s", c.name, card.Outcome)
		}
		if got := card.RetryAfter(); !near(got.Seconds(), c.want.Seconds(), 1e-6) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
