package pick

import (
	"fmt"
	"math/rand"
	"reflect"
	"sync"
	"testing"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

func TestReferenceIsOne(t *testing.T) {
	t.Run("SC-14", func(t *testing.T) {
		f := newFleet(t, 1)
		f.add(pod.Spec{Name: "slow", Model: model, PrefillRate: 8000}, "10.0.1.1:8000")
		prompt := tokens(1, 4096)
		for i := range 2 {
			f.store(pod.Member(i), event.TierGPU, prompt, 0, 200)
		}
		c := f.decide(f.query(prompt, start))
		fast, slow := &c.Rows[0], &c.Rows[1]
		if fast.Terms[TermKV] != slow.Terms[TermKV] || fast.Terms[TermHardware] != 0 {
			t.Errorf("affinity differs between equal matches:\n%s", c)
		}
		// 896 tokens at half the rate take 56 ms longer.
		if got := slow.Terms[TermHardware]; !near(got, -0.056, 1e-9) {
			t.Errorf("hardware of the slower pod %v, want -0.056", got)
		}
		if w := c.Work(f.query(prompt, start)); winner(c) != "pod-0" || w.Prefill != duration(0.056) {
			t.Errorf("winner %s, work %+v", winner(c), w)
		}
	})
}

func TestStaleEventsDiscountAffinity(t *testing.T) {
	for state, want := range map[view.SyncState]float64{
		view.Live: 1, view.Partial: partialTrust, view.Gap: 0.5, view.Syncing: 0.5, view.Connecting: 0.5, view.Stale: 0.5, view.Down: 0.5,
	} {
		f, prompt := newFleet(t, 1), tokens(1, 4096)
		f.store(0, event.TierGPU, prompt, 0, 256)
		f.Sync.Put(0, view.Sync{State: state, LastEvent: start, Connected: true})
		c := f.decide(f.query(prompt, start))
		if got := c.Rows[0].Terms[TermKV]; !near(got, want*0.255, 1e-9) || c.Rows[0].Trust != want {
			t.Errorf("%s: affinity %v, trust %v; want trust %v", state, got, c.Rows[0].Trust, want)
		}
	}
	f, prompt := newFleet(t, 1), tokens(1, 4096)
	f.Sync.Put(0, view.Sync{})
	f.place(f.query(prompt, start))
	if r := f.decide(f.query(prompt, start)).Rows[0]; r.Trust != 1 || r.Cached != 4080 {
		t.Errorf("our own placement needs no events: trust %v, cached %d", r.Trust, r.Cached)
	}
}

func TestRanks(t *testing.T) {
	f := newFleet(t, 1)
	p := f.add(pod.Spec{Name: "dp", Model: model, Engine: pod.EngineVLLM, Ranks: 3}, "10.0.9.1:8000")
	prompt := tokens(1, 4096)
	f.store(p.Members[1], event.TierGPU, prompt, 0, 100)
	f.store(p.Members[2], event.TierGPU, prompt, 0, 40)
	f.Sync.Put(p.Members[1], view.Sync{State: view.Gap, LastEvent: start})
	c := f.decide(f.query(prompt, start))
	r := c.WinnerRow()
	if r.Pod.Spec.Name != "dp" || r.Match.Rank != 1 || r.Cached != 1600 || r.Sync.State != view.Gap {
		t.Errorf("%s rank %d cached %d sync %s", winner(c), r.Match.Rank, r.Cached, r.Sync.State)
	}
	if w := c.Work(f.query(prompt, start)); w.Rank != 1 {
		t.Errorf("work goes to rank %d", w.Rank)
	}
}

func TestDeepestRank(t *testing.T) {
	const prompt = 100
	for _, c := range []struct {
		name string
		a, b Match
	}{
		{"anything beats nothing", Match{Rank: 3}, Match{Rank: -1}},
		{"tokens, not blocks", Match{Rank: 1, Size: 32, Depth: 2}, Match{Rank: 0, Size: 16, Depth: 3}},
		{"announced before expected", Match{Rank: 1, Size: 16, Depth: 3, Announced: 3}, Match{Rank: 0, Size: 16, Depth: 3, Announced: 1}},
		{"depth behind the prompt counts not", Match{Rank: 0, Size: 16, Depth: 6}, Match{Rank: 1, Size: 16, Depth: 60}},
		{"lower rank at last", Match{Rank: 0, Size: 16, Depth: 3}, Match{Rank: 1, Size: 16, Depth: 3}},
	} {
		if !deeper(&c.a, &c.b, prompt) || (c.b.Rank >= 0 && deeper(&c.b, &c.a, prompt)) {
			t.Errorf("%s: order is wrong", c.name)
		}
	}
}

func TestDecideTwice(t *testing.T) {
	t.Run("ST-12", func(t *testing.T) {
		f := busyFleet(t, 24)
		q := f.query(tokens(3, 2000), start)
		a, b := f.decide(q), f.decide(q)
		if !reflect.DeepEqual(a.Clone(), b.Clone()) || a.String() != b.String() {
			t.Errorf("cards differ:\n%s\n%s", a, b)
		}
		// A used card gives what a new one gives.
		v := f.View()
		other := busyFleet(t, 40)
		ov := other.View()
		Decide(&ov, other.query(nil, start), f.policy, b)
		Decide(&v, q, f.policy, b)
		if !reflect.DeepEqual(a.Clone(), b.Clone()) {
			t.Errorf("reused card differs:\n%s\n%s", a, b)
		}
	})
}

// The total is the sum of the printed terms, in their order, to the last bit.
func TestTotalIsTheSumOfTerms(t *testing.T) {
	f := busyFleet(t, 40)
	c := f.decide(f.query(tokens(3, 2000), start))
	for i := range c.Rows {
		sum := 0.0
		for _, x := range c.Rows[i].Terms {
			sum += x
		}
		if sum != c.Rows[i].Total {
			t.Errorf("row %d: %v, sum %v", i, c.Rows[i].Total, sum)
		}
	}
}

// busyFleet has pods in all sorts of states, the same ones on each call.
func busyFleet(tb testing.TB, n int) *fleet {
	f, rnd := newFleet(tb, n), rand.New(rand.NewSource(int64(n)))
	prompt := tokens(3, 2000)
	for i := range n {
		f.Telemetry.Put(pod.ID(i), &telemetry.Sample{
			At: start - int64(rnd.Intn(6000))*ms, Waiting: known(float64(rnd.Intn(3))), Running: known(2),
			KVUsage: known(rnd.Float64()), KVBlocks: known(4000), KVBlockSize: known(blockSize),
		})
		if blocks := rnd.Intn(125); blocks > 0 && i%3 != 0 {
			f.store(pod.Member(i), event.TierGPU, prompt, 0, blocks)
			f.store(pod.Member(i), event.TierHost, prompt, 0, blocks)
		}
		f.fill(f.pod(i), rnd.Intn(6), rnd.Float64()/10)
	}
	for i := range n {
		for _, done := range f.fill(f.pod(i), 2, 0.1) {
			done.FirstByte(start)
			done.End(start + 5000*ms)
		}
	}
	return f
}

func TestDecideAllocatesNothing(t *testing.T) {
	for _, n := range []int{64, 512} {
		t.Run(fmt.Sprintf("SC-61/%d", n), func(t *testing.T) {
			f := busyFleet(t, n)
			for name, q := range map[string]*Query{
				"busy": f.query(tokens(3, 2000), start), "cold": f.query(tokens(4, 2000), start), "unknown prompt": f.query(nil, start),
			} {
				v, c := f.View(), &Card{}
				Decide(&v, q, f.policy, c)
				if got := testing.AllocsPerRun(50, func() { Decide(&v, q, f.policy, c) }); got != 0 {
					t.Errorf("%s: %v allocations", name, got)
				}
			}
			idle := newFleet(t, n)
			v, c, q := idle.View(), &Card{}, idle.query(tokens(4, 2000), start)
			Decide(&v, q, idle.policy, c)
			if c.Tie.Size != n {
				t.Fatalf("%d of %d idle pods tie", c.Tie.Size, n)
			}
			if got := testing.AllocsPerRun(50, func() { Decide(&v, q, idle.policy, c) }); got != 0 {
				t.Errorf("all tied: %v allocations", got)
			}
		})
	}
}

// Decisions beside placements, scrapes and events: -race watches, every card is
// whole, and in the end nothing is in flight.
func TestDecideConcurrent(t *testing.T) {
	f := busyFleet(t, 8)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			c := &Card{}
			for i := range 100 {
				prompt := tokens(i%5, 2000)
				q := &Query{
					RequestID: fmt.Sprint(g, i), Now: start + int64(i)*ms, Model: model, Base: model,
					Prompt: block.Prompt{Model: model, Tokens: prompt, Cut: -1}, PromptTokens: len(prompt),
				}
				v := f.View()
				if Decide(&v, q, f.policy, c) != Picked || c.WinnerRow() == nil {
					t.Errorf("no pick:\n%s", c)
					return
				}
				p := f.Fleet.Place(c.WinnerRow().Pod, c.Work(q), q.Now)
				f.Telemetry.Put(c.WinnerRow().Pod.ID, &telemetry.Sample{At: q.Now, Waiting: known(1), KVUsage: known(0.5)})
				p.FirstByte(q.Now + ms)
				p.End(q.Now + 2*ms)
			}
		})
	}
	all.Go(func() {
		for i := range 100 {
			f.store(0, event.TierGPU, tokens(i%5, 2000), 0, 1+i)
		}
	})
	all.Wait()
	fresh := busyFleet(t, 8)
	for i := range 8 {
		if got, want := f.Load.Load(f.pod(i), start).InFlight, fresh.Load.Load(fresh.pod(i), start).InFlight; got != want {
			t.Errorf("pod %d: %d in flight, %d before", i, got, want)
		}
	}
}
