package top

import (
	"math"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/eppctl/eppctl/internal/core/view"
)

// The course of a pod is drawn from the frames that are kept, up to the one shown; a
// restart and a frame without the pod leave a gap.
func TestCourse(t *testing.T) {
	r := newRig(t, 120, 50)
	r.fleet.Pods = r.fleet.Pods[:1]
	p := &r.fleet.Pods[0]
	r.frame(0)
	for _, n := range []uint64{10, 40, 0, 20} {
		p.Served.Picks += n
		p.Telemetry.Waiting = new(float64(n / 10))
		r.frame(1e9)
	}
	name := p.Name
	of := func(n int) (list []float64) { return r.m.history.course(n, 60, name, gauges[0].of) }
	want := func(got []float64, want ...float64) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%v, want %v", got, want)
		}
		for i := range got {
			if got[i] != want[i] && !(math.IsNaN(got[i]) && math.IsNaN(want[i])) {
				t.Errorf("%v, want %v", got, want)
			}
		}
	}
	want(of(4), 10, 40, 0, 20)
	want(of(2), 10, 40)
	if got := r.m.history.course(4, 2, name, gauges[0].of); len(got) != 2 {
		t.Errorf("%d values, at most 2 were asked for", len(got))
	}
	r.keys("enter")
	r.has("COURSE    picks/s", "▃█▁▅", "now 20, most 40", "waiting", "now 2, most 4", "▄▄▄▄  now 38%")
	r.keys("< <")
	r.has("now 40, most 40")
	r.keys("esc")
	r.send(tea.WindowSizeMsg{Width: 200, Height: 20})
	r.has("WAITED", " ▃█ ") // of the frame that is shown, beside the longest queue
	r.keys("p")
	r.fleet.Run = "another"
	r.frame(1e9)
	r.fleet.Pods = []view.PodState{some("else", 0, 0, 0, 0, 0, 0, 0)}
	r.frame(1e9)
	want(of(6), 10, 40, 0, 20, math.NaN(), math.NaN())
}
