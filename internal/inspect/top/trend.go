package top

import (
	"fmt"
	"math"

	"charm.land/lipgloss/v2"
)

// gauges are the numbers of a pod whose course is drawn, from frame to frame.
var gauges = []struct {
	name string
	of   func(from, to *podCounts, seconds float64) rate
	says func(float64) string
	full float64 // at full height, 0 = the highest
}{
	{"picks/s", func(from, to *podCounts, s float64) rate {
		return rate{grown(from.served.Picks, to.served.Picks) / s, true}
	}, amount, 0},
	{"waiting", queue, requests, 0},
	{"KV pool", func(_, to *podCounts, _ float64) rate { return to.kv }, inPercent, 1},
	{"hits", func(from, to *podCounts, _ float64) rate {
		return part(grown(from.served.Cached, to.served.Cached), grown(from.served.Queried, to.served.Queried))
	}, inPercent, 1},
	{"batches/s", func(from, to *podCounts, s float64) rate { return rate{grown(from.batches, to.batches) / s, true} }, amount, 0},
}

func queue(_, to *podCounts, _ float64) rate { return to.waiting }

func requests(n float64) string { return number(&n) }

func inPercent(share float64) string { return percent(share, true) + "%" }

// course is a number of a pod in the frames up to n, at most so many of them; NaN
// where it is not known, as through a restart.
func (h *history) course(n, most int, pod string, of func(from, to *podCounts, seconds float64) rate) (list []float64) {
	for i := max(h.gone+1, n-most+1); i <= n; i++ {
		v := math.NaN()
		p := between(h.at(i-1), h.at(i))
		if from, to, ok := p.pod(pod); ok {
			if r := of(&from, &to, p.seconds()); r.ok {
				v = r.v
			}
		}
		list = append(list, v)
	}
	return list
}

// trends draws the course of each of a pod's gauges, with the highest of it.
func (t *lines) trends(d *drawing, h *history, n int, pod string) {
	w := min(t.w-labelWidth-32, 60)
	for i, g := range gauges {
		label := ""
		if i == 0 {
			label = "COURSE"
		}
		list, most := h.course(n, w, pod, g.of), math.NaN()
		for _, v := range list {
			if !math.IsNaN(v) && !(v <= most) {
				most = v
			}
		}
		name := plain(fmt.Sprintf("%-9s", g.name))
		if math.IsNaN(most) {
			t.add(label, name, known(unknown))
			continue
		}
		now := unknown
		if v := list[len(list)-1]; !math.IsNaN(v) {
			now = g.says(v)
		}
		line := cell(d.spark(list, g.full, w, cool).fit(len(list), lipgloss.Left))
		t.add(label, name, line, plain(fmt.Sprintf("now %s, most %s", now, g.says(most))))
	}
}
