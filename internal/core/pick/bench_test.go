package pick

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkDecide times a whole decision with a full card beside the least any
// scorer could do: summing six constants per pod over rows of the same size. The
// ratio of the two in one run is the figure; the lookup's prompt has 2,000
// tokens.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{64, 512, 1024} {
		b.Run(fmt.Sprintf("busy/%d", n), func(b *testing.B) { benchDecide(b, busyFleet(b, n), 2000) })
		b.Run(fmt.Sprintf("score-only/%d", n), func(b *testing.B) { benchDecide(b, busyFleet(b, n), 0) })
		b.Run(fmt.Sprintf("all-tied/%d", n), func(b *testing.B) { benchDecide(b, newFleet(b, n), 0) })
	}
}

func benchDecide(b *testing.B, f *fleet, prompt int) {
	v, c := f.View(), &Card{}
	q := f.query(tokens(3, prompt), start)
	Decide(&v, q, f.policy, c)
	b.ReportAllocs()
	for b.Loop() {
		Decide(&v, q, f.policy, c)
	}
	per := float64(b.Elapsed()) / float64(b.N)
	bare := bareLoop(c, max(100, b.N/10))
	b.ReportMetric(per/bare, "x-bare-loop")
	b.ReportMetric(per/float64(len(c.Rows)), "ns/pod")
}

// bareLoop returns the nanoseconds of the reference loop over the card's rows.
func bareLoop(c *Card, rounds int) float64 {
	six := [6]float64{0.8, -0.2, -0.001, -0.02, -0.01, -0.005}
	begin := time.Now()
	for range rounds {
		best := 0
		for i := range c.Rows {
			r := &c.Rows[i]
			r.Total = 0
			for t, x := range six {
				r.Terms[t] = x
				r.Total += x
			}
			if r.Total > c.Rows[best].Total {
				best = i
			}
		}
		c.Winner = best
	}
	return float64(time.Since(begin)) / float64(rounds)
}
