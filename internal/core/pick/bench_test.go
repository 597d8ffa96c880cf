package pick

import (
	"fmt"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
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

// besideBareLoop times work and, alternating with it, the least that any scorer
// could do which fills a card: lay out 64 rows, sum six constants in each and keep
// the best. The quickest call of each stands against the other: a call is shorter
// than the scheduler's time slice, so that on a loaded machine some are undisturbed.
func besideBareLoop(b *testing.B, c *Card, work func()) {
	const round = 16 // of the bare loop: one is too short for the clock
	bareCard := Card{Rows: make([]Row, 64)}
	pods := newFleet(b, 64).Pods.Snapshot().Pods
	work()
	best, bare := time.Duration(1<<62), time.Duration(1<<62)
	b.ReportAllocs()
	for b.Loop() {
		t0 := time.Now()
		work()
		t1 := time.Now()
		for range round {
			bareLoop(&bareCard, pods)
		}
		best, bare = min(best, t1.Sub(t0)), min(bare, time.Since(t1))
	}
	ns := float64(best)
	b.ReportMetric(ns, "ns/op") // instead of that of both loops
	b.ReportMetric(ns/float64(len(c.Rows)), "ns/pod")
	b.ReportMetric(float64(bare)/round, "ns/bare-64")
	b.ReportMetric(ns*round/float64(bare), "x-bare-64")
}

var six = [6]float64{0.8, -0.2, -0.001, -0.02, -0.01, -0.005}

func bareLoop(c *Card, pods []*pod.Pod) {
	best := 0
	for i, p := range pods {
		r := &c.Rows[i]
		*r = Row{Pod: p}
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

// BenchmarkFlips times what explain asks of a decision that was made.
func BenchmarkFlips(b *testing.B) {
	for _, n := range []int{4, 64, 1024} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := busyFleet(b, n)
			c := f.decide(f.query(tokens(3, 2000), start))
			for b.Loop() {
				c.Flips()
			}
		})
	}
}
