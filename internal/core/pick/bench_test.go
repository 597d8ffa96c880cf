package pick

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkDecide times a whole decision with a full card: a lookup of a prompt
// of 2,000 tokens that two thirds of the pods hold in part (busy), the same
// without a known prompt, and an idle fleet, where every pod ties.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{64, 512, 1024} {
		for name, c := range map[string]struct {
			fleet  *fleet
			prompt int
		}{
			"busy": {busyFleet(b, n), 2000}, "unknown-prompt": {busyFleet(b, n), 0}, "all-tied": {newFleet(b, n), 0},
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				f, card := c.fleet, &Card{}
				v, q := f.View(), f.query(tokens(3, c.prompt), start)
				besideBareLoop(b, card, func() { Decide(&v, q, f.policy, card) })
			})
		}
	}
}

// BenchmarkTerms times the terms and their sums alone, on observed rows.
func BenchmarkTerms(b *testing.B) {
	f := busyFleet(b, 64)
	c := f.decide(f.query(tokens(3, 2000), start))
	besideBareLoop(b, c, func() {
		for i := range c.Rows {
			c.basis.score(&c.Rows[i])
		}
	})
}

// besideBareLoop times work and, alternating with it, the least any scorer could
// do: summing six constants per pod over rows of the same size. The best round
// of each stands against the other, which a loaded machine disturbs least.
func besideBareLoop(b *testing.B, c *Card, work func()) {
	const round = 16
	work()
	best, bare := time.Duration(1<<62), time.Duration(1<<62)
	b.ReportAllocs()
	for b.Loop() {
		t0 := time.Now()
		for range round {
			work()
		}
		t1 := time.Now()
		for range round {
			bareLoop(c)
		}
		best, bare = min(best, t1.Sub(t0)), min(bare, time.Since(t1))
	}
	ns := float64(best) / round
	b.ReportMetric(ns, "ns/op") // instead of that of both loops
	b.ReportMetric(ns/float64(len(c.Rows)), "ns/pod")
	b.ReportMetric(float64(best)/float64(bare), "x-bare-loop")
}

var six = [6]float64{0.8, -0.2, -0.001, -0.02, -0.01, -0.005}

func bareLoop(c *Card) {
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
