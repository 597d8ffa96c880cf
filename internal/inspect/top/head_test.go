package top

import (
	"testing"

	"github.com/eppctl/eppctl/internal/core/view"
)

// What the head says of recent decisions is what half of them took at most, and what
// 99 of 100 did; of none it says nothing.
func TestTook(t *testing.T) {
	var picks []*view.RecentPick
	for us := 100; us > 0; us-- {
		picks = append(picks, &view.RecentPick{TookUs: float64(us)})
	}
	for n, want := range map[int][2]float64{1: {100, 100}, 2: {99, 100}, 100: {50, 99}} {
		if half, most, ok := took(picks[:n]); !ok || half != want[0] || most != want[1] {
			t.Errorf("of %d: %v and %v, want %v", n, half, most, want)
		}
	}
	if _, _, ok := took(nil); ok {
		t.Error("no decision took a time")
	}
}
