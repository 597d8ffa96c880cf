//go:build !race

// Eighteen runs of one goroutine each: the race detector, which makes minutes of them, has
// nothing to find here that TestDeterministic does not show it.

package fleet

import "testing"

// An index that is behind a replay port misses nothing in the end; one without it
// loses what was lost, and neither promises what is not there for long.
// One run's share of cached tokens moves by a hundredth with what is lost, whatever the
// policy: the mean of six does not by half of that.
func TestEventLoss(t *testing.T) {
	w := conversation(t, 1000)
	var whole, replayed, lost float64
	const seeds = 6
	for seed := range uint64(seeds) {
		c := Default()
		c.Pods, c.Speed, c.Seed = 8, 1.5, seed+1
		whole += play(t, w, "pool", c).Hit / seeds
		c.Loss = 0.05
		replayed += play(t, w, "pool", c).Hit / seeds
		c.ReplayDelay = 0
		lost += play(t, w, "pool", c).Hit / seeds
	}
	if replayed < whole-0.005 {
		t.Errorf("with replay %.3f of the tokens are cached, without loss %.3f", replayed, whole)
	}
	if lost >= replayed-0.02 {
		t.Errorf("lost for good: %.3f of the tokens cached, with replay %.3f", lost, replayed)
	}
}
