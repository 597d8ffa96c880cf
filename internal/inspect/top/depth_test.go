package top

import (
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/eppctl/eppctl/internal/core/view"
)

func TestDepths(t *testing.T) {
	type counts = [view.DepthBuckets]uint64
	for name, tc := range map[string]struct {
		from, to counts
		want     depths
		bar      string
	}{
		"no picks":            {counts{}, counts{}, depths{}, "?"},
		"none since":          {counts{5, 5}, counts{5, 5}, depths{}, "?"},
		"nothing hit":         {counts{}, counts{10}, depths{0, 0, true}, "··········"},
		"all hit":             {counts{}, counts{10: 10}, depths{0.95, 0.995, true}, "█████████▌"},
		"one of ten hits all": {counts{}, counts{0: 90, 10: 10}, depths{0, 0.95, true}, "░░░░░░░░░░"},
		"half and half":       {counts{}, counts{3: 10, 7: 10}, depths{0.3, 0.69, true}, "███░░░░···"},
		"only what is new":    {counts{10: 1000}, counts{1: 10, 10: 1000}, depths{0.05, 0.095, true}, "▌·········"},
		"a new begin":         {counts{10: 1000}, counts{0: 4, 10: 2}, depths{0, 0, true}, "··········"},
	} {
		got := newDepths(&tc.from, &tc.to)
		near := func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }
		if got.ok != tc.want.ok || !near(got.half, tc.want.half) || !near(got.most, tc.want.most) {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
		if bar := ansi.Strip(string(blockGlyphs.depth(got, 10))); bar != tc.bar {
			t.Errorf("%s: %q, want %q", name, bar, tc.bar)
		}
	}
}
