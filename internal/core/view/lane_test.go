package view

import (
	"slices"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// Three ranks are three queues: a request counts where it was sent, or where it
// would wait least, and an answer corrects that queue alone.
func TestRanksAreLanes(t *testing.T) {
	l, p := NewLedger(), &pod.Pod{ID: 1, Epoch: 1, Members: []pod.Member{4, 5, 6}}
	on := func(rank int, s float64) *Placement {
		w := seconds(s)
		w.Rank = rank
		return l.Place(p, w, 0)
	}
	want := func(at int64, idlest []int, queues ...float64) {
		t.Helper()
		for rank, q := range queues {
			var x Load
			l.Read(p, at, at, rank, &x)
			if x.Rank != rank || x.Queue.Seconds() != q {
				t.Errorf("rank %d: %v s (as rank %d), want %v s", rank, x.Queue.Seconds(), x.Rank, q)
			}
		}
		if got := l.Idlest(p, at, nil); !slices.Equal(got, idlest) {
			t.Errorf("idlest %v, want %v", got, idlest)
		}
		for rank, x := range l.Ranks(p, at, nil) {
			if x.QueueMs != 1000*queues[rank] {
				t.Errorf("rank %d: %v ms, want %v s", rank, x.QueueMs, queues[rank])
			}
		}
		if x := l.Load(p, at); x.Rank != idlest[0] {
			t.Errorf("read rank %d", x.Rank)
		}
	}
	want(0, []int{0, 1, 2}, 0, 0, 0)
	first := on(1, 0.5)
	want(0, []int{0, 2}, 0, 0.5, 0)
	engines := on(-1, 0.25)
	want(0, []int{2}, 0.25, 0.5, 0)
	third := on(2, 1)
	want(0, []int{0}, 0.25, 0.5, 1)
	more := on(1, 0.25)
	want(100*ms, []int{0}, 0.15, 0.65, 0.9)
	first.FirstByte(200 * ms)
	want(200*ms, []int{0}, 0.05, 0.25, 0.8)
	if got := l.Load(p, 200*ms); got.InFlight != 4 || got.Waiting != 3 || got.Depth != 1 {
		t.Errorf("%+v", got)
	}
	ranks := l.Ranks(p, 200*ms, nil)
	for i, want := range []RankLoad{{InFlight: 1, Waiting: 1}, {InFlight: 2, Waiting: 1}, {InFlight: 1, Waiting: 1}} {
		want.QueueMs = ranks[i].QueueMs
		if ranks[i] != want {
			t.Errorf("rank %d: %+v, want %+v", i, ranks[i], want)
		}
	}
	if got := l.Ranks(&pod.Pod{ID: 2, Epoch: 1, Members: []pod.Member{7, 8}}, 0, nil); !slices.Equal(got, make([]RankLoad, 2)) {
		t.Errorf("of a pod on which nothing was placed: %+v", got)
	}
	for _, r := range []*Placement{first, engines, third, more} {
		r.End(300 * ms)
	}
	want(300*ms, []int{0, 1, 2}, 0, 0, 0)
	a := l.account(p)
	for i := range a.lanes {
		if x := a.lanes[i]; x.inFlight != 0 || x.waiting != 0 || x.work != 0 {
			t.Errorf("lane %d is left with %+v", i, x)
		}
	}
}

// Two ranks that compute side by side are not twice as fast: each answer is
// measured against its own rank's work.
func TestPaceIsMeasuredPerRank(t *testing.T) {
	l, p := NewLedger(), &pod.Pod{ID: 1, Epoch: 1, Members: []pod.Member{4, 5}}
	for i := range int64(8) {
		var both [2]*Placement
		for rank := range both {
			w := seconds(0.1)
			w.Rank, w.Nominal, w.Prior = rank, w.Prefill, Prior{Model: "m", TokensPerSecond: 1}
			both[rank] = l.Place(p, w, i*200*ms)
		}
		for rank, r := range both {
			r.FirstByte((i*200 + 100 + int64(rank)*5) * ms)
			r.End((i*200 + 150) * ms)
		}
	}
	for rank, want := range []float64{1, 1.05} {
		var x Load
		l.Read(p, 1600*ms, 1600*ms, rank, &x)
		if f := x.Pace.Factor; f < want-0.001 || f > want+0.001 {
			t.Errorf("rank %d: pace %v, want %v", rank, f, want)
		}
	}
}

// Where none would wait by the estimates, the idlest is where fewest requests are
// before their first token, and then where fewest are.
func TestIdlestByCounts(t *testing.T) {
	l, p := NewLedger(), &pod.Pod{ID: 1, Epoch: 1, Members: []pod.Member{4, 5, 6}}
	on := func(rank int) *Placement { return l.Place(p, Work{Rank: rank}, 0) }
	want := func(idlest ...int) {
		t.Helper()
		if got := l.Idlest(p, ms, nil); !slices.Equal(got, idlest) {
			t.Errorf("idlest %v, want %v", got, idlest)
		}
	}
	first := on(0)
	want(1, 2)
	on(1).FirstByte(ms)
	want(2)
	on(2)
	want(1)
	first.FirstByte(ms)
	want(0, 1)
}
