package pick

import (
	"math"
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/view"
)

// ranked is a fleet of one pod of n ranks.
func ranked(t *testing.T, engine pod.Engine, n int) (*fleet, *pod.Pod) {
	f := newFleet(t, 0)
	return f, f.add(pod.Spec{Name: "dp", Model: model, Engine: engine, Ranks: n}, "10.0.9.1:8000")
}

// Requests with nothing in common, one at a time and all at once: each rank gets a
// share, and each is where the request's prompt is expected from then on.
func TestColdRequestsUseEveryRank(t *testing.T) {
	for name, together := range map[string]bool{"one at a time": false, "at once": true} {
		t.Run(name, func(t *testing.T) {
			f, _ := ranked(t, pod.EngineVLLM, 4)
			var got [4]int
			for i := range 80 {
				q := f.query(tokens(i, 512), start+int64(i)*ms)
				c, r := f.place(q)
				rank := c.WinnerRow().Rank
				got[rank]++
				if next := f.decide(q).WinnerRow(); int(next.Match.Rank) != rank && next.RankWhy != reason.RankBusy || int(next.Match.Rank) == rank && next.Cached != 496 {
					t.Fatalf("placed on rank %d, expected on %d: %d tokens", rank, next.Match.Rank, next.Cached)
				}
				if !together {
					r.FirstByte(q.Now)
					r.End(q.Now)
				}
			}
			for _, n := range got {
				if n < 10 || together && n != 20 {
					t.Fatalf("ranks got %v", got)
				}
			}
		})
	}
}

// A block that every prompt begins with is on one rank first. It must not draw the
// whole traffic there.
func TestSharedPrefixDoesNotFillOneRank(t *testing.T) {
	f, p := ranked(t, pod.EngineVLLM, 4)
	shared := tokens(1, 16)
	f.store(p.Members[2], event.TierGPU, shared, 0, 1)
	var got [4]int
	busy := 0
	for i := range 40 {
		c, _ := f.place(f.query(append(append([]uint32{}, shared...), tokens(2+i, 2000)...), start))
		r := c.WinnerRow()
		got[r.Rank]++
		if r.RankWhy == reason.RankBusy {
			busy++
		}
		if i == 0 && r.Rank != 2 {
			t.Errorf("the first goes to rank %d", r.Rank)
		}
	}
	for _, n := range got {
		if n < 9 || n > 11 {
			t.Fatalf("ranks got %v", got)
		}
	}
	if busy == 0 {
		t.Error("no card says why")
	}
}

// A prefix that saves more than the wait is waited for.
func TestDeepMatchIsWaitedFor(t *testing.T) {
	f, p := ranked(t, pod.EngineVLLM, 2)
	prompt := tokens(1, 16_000)
	f.store(p.Members[1], event.TierGPU, prompt, 0, 1000)
	f.place(f.query(prompt[:8000], start))
	c := f.decide(f.query(prompt, start))
	if r := c.WinnerRow(); r.Rank != 1 || r.RankWhy != reason.None || r.Load.Queue == 0 {
		t.Errorf("rank %d (%s), queue %v", r.Rank, r.RankWhy, r.Load.Queue)
	}
}

// An engine that chooses the rank itself finds what one of four has one time in
// four; nothing is expected of a rank, and nothing is learned.
func TestRankByEngine(t *testing.T) {
	f, p := ranked(t, pod.EngineTRTLLM, 4)
	prompt := tokens(1, 4096)
	f.store(p.Members[2], event.TierGPU, prompt, 0, 256)
	q := f.query(prompt, start)
	c := f.decide(q)
	r := c.WinnerRow()
	if r.Rank != -1 || r.RankWhy != reason.RankByEngine || r.Trust != 0.25 || r.Match.Rank != 2 {
		t.Errorf("rank %d (%s), trust %v, match on %d", r.Rank, r.RankWhy, r.Trust, r.Match.Rank)
	}
	if want := 0.25 * f.policy.Alpha * (c.basis.cold - r.Prefill); !near(r.Terms[TermKV], want, 1e-12) {
		t.Errorf("kv term %v, want %v", r.Terms[TermKV], want)
	}
	if w := c.Work(q); w.Rank != -1 || w.Nominal != 0 {
		t.Errorf("work for rank %d, nominal %v", w.Rank, w.Nominal)
	}
	x := c.Explanation()
	if y := x.Pods[0].Match.RankWhy; y == nil || *y != "rank-by-engine" || x.Pick.Rank != nil {
		t.Errorf("explained: %v, rank %v", y, x.Pick.Rank)
	}
}

// A pod of four ranks with four equal requests is as busy as a pod of one with one.
func TestRanksAreServers(t *testing.T) {
	for _, engine := range []pod.Engine{pod.EngineVLLM, pod.EngineTRTLLM} {
		f, p := ranked(t, engine, 4)
		single := f.add(pod.Spec{Name: "single", Model: model, Engine: engine}, "10.0.9.2:8000")
		f.fill(p, 4, 0.5)
		f.fill(single, 1, 0.5)
		c := f.decide(f.query(tokens(1, 64), start))
		if a, b := &c.Rows[0], &c.Rows[1]; math.Abs(a.Queue-0.5) > 1e-9 || a.Queue != b.Queue || a.Depth != b.Depth {
			t.Errorf("%s: queue %v depth %d, single %v depth %d", engine, a.Queue, a.Depth, b.Queue, b.Depth)
		}
	}
}

// A rank that is full does not hold the prompt back, however deep its match: another
// rank of the pod gets it, and the pod stays in.
func TestFullRankGivesWay(t *testing.T) {
	f, p := ranked(t, pod.EngineVLLM, 2)
	prompt := tokens(1, 16_000)
	f.store(p.Members[1], event.TierGPU, prompt, 0, 1000)
	for range f.policy.Breaker.Depth {
		f.Fleet.Place(p, view.Work{Rank: 1}, start) // of no prefill: there is no queue to see
	}
	c := f.decide(f.query(prompt, start))
	if r := c.WinnerRow(); r.Rank != 0 || r.RankWhy != reason.RankBusy || r.Verdict != Scored || r.Depth != 0 {
		t.Errorf("rank %d (%s), %s, depth %d", r.Rank, r.RankWhy, r.Verdict, r.Depth)
	}
}
