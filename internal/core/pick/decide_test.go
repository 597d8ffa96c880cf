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
	"github.com/eppctl/eppctl/internal/core/reason"
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

// The ledger counts real seconds. A pod at half speed with 0.4 real seconds
// queued has 0.2 nominal ones in its queue term and the rest in hardware, so
// nothing is counted twice.
func TestSlowPodsQueueCountsOnce(t *testing.T) {
	f := newFleet(t, 1)
	f.policy = fixed(t)
	f.Telemetry.Put(0, &telemetry.Sample{At: start, Device: telemetry.Device{Known: true, Throttled: true}})
	f.fill(f.pod(0), 1, 0.4)
	c := f.decide(f.query(tokens(1, 4096), start))
	r := &c.Rows[0]
	if !near(r.Terms[TermQueue], -0.2, 1e-9) || !near(r.Terms[TermHardware], -(4*0.256+0.2), 1e-9) {
		t.Errorf("queue %v, hardware %v\n%s", r.Terms[TermQueue], r.Terms[TermHardware], c)
	}
}

func TestTwinsInABurst(t *testing.T) {
	t.Run("SC-27", func(t *testing.T) {
		f := newFleet(t, 4)
		prompt := tokens(1, 4096)
		a, _ := f.place(f.query(prompt, start))
		b, _ := f.place(f.query(prompt, start+10*ms))
		if winner(a) != winner(b) {
			t.Errorf("%s, then %s\n%s", winner(a), winner(b), b)
		}
		if r := b.WinnerRow(); r.Cached != 4080 || r.Match.Expected() != 256 || r.Match.Announced != 0 {
			t.Errorf("match of the second: %+v", r.Match)
		}
	})
	t.Run("SC-28", func(t *testing.T) {
		f := newFleet(t, 2)
		prompt := tokens(1, 4096)
		f.store(1, event.TierGPU, prompt, 0, 10)
		c, p := f.place(f.query(prompt, start))
		if winner(c) != "pod-1" {
			t.Fatalf("winner %s", winner(c))
		}
		if got := f.decide(f.query(prompt, start)).Rows[1].Match; got.Depth != 256 || got.Announced != 10 {
			t.Errorf("in flight: %+v", got)
		}
		p.End(start + 50*ms)
		if got := f.decide(f.query(prompt, start)).Rows[1].Match; got.Depth != 10 {
			t.Errorf("ended, never announced: %+v", got)
		}
	})
}

// scraped is a fleet of one pod with the load of the case: four waiting in the
// scrape, two requests of ours of 0.3 s placed after it, a mean of 0.2 s.
func scraped(t *testing.T, at int64) *fleet {
	f := newFleet(t, 2)
	for _, s := range []float64{0.1, 0.1} {
		for _, p := range f.fill(f.pod(1), 1, s) {
			p.End(start)
		}
	}
	f.Telemetry.Put(0, &telemetry.Sample{At: at, Waiting: known(4)})
	f.fill(f.pod(0), 2, 0.3)
	return f
}

func TestScrapedQueue(t *testing.T) {
	t.Run("SC-30", func(t *testing.T) {
		f := scraped(t, start-100*ms)
		r := f.decide(f.query(tokens(1, 64), start+100*ms)).Rows[0]
		if !near(r.Queue, 1.4, 1e-9) || r.Depth != 6 || r.Load.Waiting != 2 || r.Load.Queue != duration(0.5) {
			t.Errorf("Q %v, d %d, own %+v", r.Queue, r.Depth, r.Load)
		}
		f.policy.ScrapedLoad = false
		r = f.decide(f.query(tokens(1, 64), start+100*ms)).Rows[0]
		if !near(r.Queue, 0.5, 1e-9) || r.Depth != 2 {
			t.Errorf("own accounting only: Q %v, d %d", r.Queue, r.Depth)
		}
	})
	t.Run("SC-31", func(t *testing.T) {
		f := scraped(t, start-5900*ms)
		r := f.decide(f.query(tokens(1, 64), start+100*ms)).Rows[0]
		if !near(r.Queue, 0.5, 1e-9) || r.Depth != 2 || r.Telemetry != telemetry.Unknown {
			t.Errorf("Q %v, d %d, telemetry %s", r.Queue, r.Depth, r.Telemetry)
		}
	})
	t.Run("a gauge of our own work changes nothing", func(t *testing.T) {
		rnd := rand.New(rand.NewSource(5))
		f, now := newFleet(t, 1), start
		var live []*view.Placement
		for range 3000 {
			now += int64(rnd.Intn(30)) * ms
			switch p := f.pod(0); rnd.Intn(4) {
			case 0, 1:
				live = append(live, f.Fleet.Place(p, view.Work{Prefill: duration(rnd.ExpFloat64() / 20), Rank: -1}, now))
			case 2:
				if len(live) > 0 {
					live[0].FirstByte(now)
					live[0].End(now)
					live = live[1:]
				}
			case 3:
				waiting := f.Load.Load(p, now).Waiting
				f.Telemetry.Put(p.ID, &telemetry.Sample{At: now, Waiting: known(float64(max(0, waiting-1)))})
			}
			r := f.decide(f.query(tokens(1, 64), now)).Rows[0]
			if r.Foreign || r.Queue != seconds(r.Load.Queue) || r.Depth != r.Load.Waiting {
				t.Fatalf("at %d: queue %v, own %+v, gauge %+v", now, r.Queue, r.Load, r.Waiting)
			}
		}
	})
}

// spread places n requests and counts them per pod.
func spread(f *fleet, n int, each func(i int) (prompt []uint32, end bool)) []int {
	got := make([]int, len(f.Pods.Snapshot().Pods))
	for i := range n {
		prompt, end := each(i)
		c, p := f.place(f.query(prompt, start))
		got[c.Winner]++
		if end {
			p.FirstByte(start)
			p.End(start)
		}
	}
	return got
}

func within(t *testing.T, got []int, lo, hi int) {
	t.Helper()
	for _, n := range got {
		if n < lo || n > hi {
			t.Errorf("placed %v, want %d to %d each", got, lo, hi)
			return
		}
	}
}

func TestSpread(t *testing.T) {
	for _, preset := range []string{"pool", "fixed"} {
		policy, err := Preset(preset)
		if err != nil {
			t.Fatal(err)
		}
		fleetOf := func(n int) *fleet {
			f := newFleet(t, n)
			f.policy = policy
			for i := range n {
				f.Telemetry.Put(pod.ID(i), &telemetry.Sample{At: start, Waiting: known(0), Running: known(0), KVUsage: known(0)})
			}
			return f
		}
		t.Run("SC-32/"+preset, func(t *testing.T) {
			got := spread(fleetOf(4), 50, func(i int) ([]uint32, bool) { return tokens(i, 4096), false })
			within(t, got, 12, 13)
		})
		t.Run("SC-42/"+preset, func(t *testing.T) {
			f, prompt := fleetOf(8), tokens(1, 4096)
			for m := range 8 {
				f.store(pod.Member(m), event.TierGPU, prompt, 0, 256)
			}
			within(t, spread(f, 100, func(int) ([]uint32, bool) { return prompt, false }), 10, 15)
		})
		t.Run("SC-43/"+preset, func(t *testing.T) {
			within(t, spread(fleetOf(4), 100, func(i int) ([]uint32, bool) { return tokens(i, 4096), true }), 10, 40)
		})
	}
}

// Equal cold prompts at once: with alpha 4 the first pod keeps them until beta, the
// queue and the breaker's term outweigh 1.02 s of affinity. With alpha 1 computing beside it is as good as queueing, and
// only the breaker's depth is promised.
func TestEqualColdPrompts(t *testing.T) {
	for _, preset := range []string{"fixed", "pool"} {
		t.Run("SC-45/"+preset, func(t *testing.T) {
			f, prompt := newFleet(t, 4), tokens(1, 4096)
			var err error
			if f.policy, err = Preset(preset); err != nil {
				t.Fatal(err)
			}
			D := f.policy.Breaker.Depth
			n := make([]int, 4)
			var opened []int // in order
			for range 50 {
				c, _ := f.place(f.query(prompt, start))
				if n[c.Winner] == 0 {
					opened = append(opened, c.Winner)
					if first := &c.Rows[opened[0]]; len(opened) > 1 && first.Total > 0.001 {
						t.Errorf("a second pod opens although the first stands at %v:\n%s", first.Total, c)
					}
				}
				n[c.Winner]++
			}
			for _, x := range n {
				if x > D {
					t.Errorf("placed %v: more than %d before their first token", n, D)
				}
			}
			if preset == "fixed" && (len(opened) != 2 || n[opened[0]] < 25) {
				t.Errorf("placed %v, opened %v", n, opened)
			}
		})
	}
}

func TestBreakerOpensAndCloses(t *testing.T) {
	f := newFleet(t, 4)
	D := f.policy.Breaker.Depth
	var full [][]*view.Placement
	for i := range 3 {
		full = append(full, f.fill(f.pod(i), D, 0.01))
	}
	f.fill(f.pod(3), D-1, 1) // by score alone the worst
	t.Run("SC-33", func(t *testing.T) {
		c := f.decide(f.query(tokens(1, 64), start))
		if winner(c) != "pod-3" || c.Why != reason.None || c.Outcome != Picked {
			t.Errorf("winner %s, why %q", winner(c), c.Why)
		}
		r := &c.Rows[0]
		if r.Verdict != BreakerOpen || r.Value != float64(D) || r.Limit != float64(D) || r.Candidate {
			t.Errorf("open pod: %s %v/%v", r.Verdict, r.Value, r.Limit)
		}
	})
	last := f.fill(f.pod(3), 1, 1)
	t.Run("SC-34", func(t *testing.T) {
		c := f.decide(f.query(tokens(1, 64), start))
		if c.Outcome != Picked || c.Why != reason.AllBreakersOpen || winner(c) == "pod-3" || winner(c) == "none" {
			t.Errorf("outcome %s, why %q, winner %s", c.Outcome, c.Why, winner(c))
		}
		if got := len(c.Order(nil)); got != 4 {
			t.Errorf("%d candidates", got)
		}
		q := f.query(tokens(1, 64), start)
		q.Priority = -1
		if c := f.decide(q); c.Outcome != Overloaded || c.Why != reason.Shed || c.Winner != -1 {
			t.Errorf("sheddable: outcome %s, why %q, winner %d", c.Outcome, c.Why, c.Winner)
		}
	})
	t.Run("SC-35", func(t *testing.T) {
		last[0].FirstByte(start)
		for _, p := range full[1] {
			p.FirstByte(start)
		}
		c := f.decide(f.query(tokens(1, 64), start))
		if winner(c) != "pod-1" || c.Why != reason.None || c.Rows[3].Verdict != Scored {
			t.Errorf("winner %s, why %q\n%s", winner(c), c.Why, c)
		}
	})
}

func TestUnknownIsNeverIdle(t *testing.T) {
	f := newFleet(t, 5)
	f.policy = fixed(t)
	for i, usage := range []float64{0.2, 0.4, 0.9} {
		f.Telemetry.Put(pod.ID(i), &telemetry.Sample{At: start, KVUsage: known(usage)})
	}
	f.Telemetry.Put(3, &telemetry.Sample{At: start - 4000*ms, KVUsage: known(0.05)}) // stale
	c := f.decide(f.query(tokens(1, 64), start))
	for i, want := range []struct {
		usage float64
		how   Source
		state telemetry.State
	}{{0.2, FromPod, telemetry.Fresh}, {0.4, FromPod, telemetry.Fresh}, {0.9, FromPod, telemetry.Fresh}, {0.05, FromPod, telemetry.Stale}, {0.4, FromOthers, telemetry.Unknown}} {
		if r := &c.Rows[i]; r.Usage != want.usage || r.UsageHow != want.how || r.Telemetry != want.state {
			t.Errorf("pod %d: usage %v from %s, %s; want %+v", i, r.Usage, r.UsageHow, r.Telemetry, want)
		}
	}
	t.Run("EM-31", func(t *testing.T) {
		c := f.decide(f.query(tokens(1, 64), start+60_000*ms))
		for i := range c.Rows {
			if r := &c.Rows[i]; r.Usage != unknownUsage || r.UsageHow != FromDefault || !r.Candidate {
				t.Errorf("pod %d: usage %v from %s", i, r.Usage, r.UsageHow)
			}
		}
	})
}

func TestPoolInputs(t *testing.T) {
	f := newFleet(t, 3)
	f.Telemetry.Put(0, &telemetry.Sample{At: start, KVBlocks: known(1000), KVBlockSize: known(16), KVUsage: known(0)})
	f.Telemetry.Put(1, &telemetry.Sample{At: start, KVBlocks: known(500), KVBlockSize: known(16), KVUsage: known(0.6)})
	prompt := tokens(1, 4096)
	f.store(0, event.TierGPU, prompt, 0, 256)
	for range 3 { // three equal prompts occupy the pool once
		f.Fleet.Place(f.pod(0), view.Work{Prompt: &f.query(prompt, start).Prompt, Tokens: 4096, Rank: -1}, start)
	}
	done := f.Fleet.Place(f.pod(2), view.Work{Rank: -1}, start)
	done.FirstByte(start)
	done.End(start + 4000*ms)
	c := f.decide(f.query(prompt, start))
	for i, want := range []struct{ size, adds, share float64 }{
		{16_000, 16, 0.256},
		{8_000, 4112, 0.6},
		{8_000, 4112, 0.3}, // unknown: the smallest pool, the median usage
	} {
		r := &c.Rows[i]
		if r.PoolSize != want.size || r.PoolAdds != want.adds || !near(r.PoolShare, want.share, 1e-12) {
			t.Errorf("pod %d: size %v adds %v share %v, want %+v", i, r.PoolSize, r.PoolAdds, r.PoolShare, want)
		}
		if got, want := r.Terms[TermPool], -want.adds/want.size*4*want.share/(1-want.share); !near(got, want, 1e-9) {
			t.Errorf("pod %d: pool term %v, want %v", i, got, want)
		}
	}
	t.Run("a hit/miss estimate says nothing of the pool", func(t *testing.T) {
		f.Telemetry.Put(1, &telemetry.Sample{At: start, KVBlocks: known(500), KVBlockSize: known(16), KVUsage: known(0.97), KVEstimate: true})
		if got := f.decide(f.query(prompt, start)).Rows[1].PoolShare; got != 0 {
			t.Errorf("share %v", got)
		}
	})
}

func TestAdapterStates(t *testing.T) {
	for _, c := range []struct {
		name string
		lora telemetry.LoRA
		want AdapterState
	}{
		{"running", telemetry.LoRA{Known: true, Max: 1, Running: []string{"a", "b"}}, AdapterActive},
		{"waiting", telemetry.LoRA{Known: true, Max: 1, Waiting: []string{"b"}}, AdapterActive},
		{"room", telemetry.LoRA{Known: true, Max: 2, Running: []string{"a"}, Waiting: []string{"a"}}, AdapterFreeSlot},
		{"full", telemetry.LoRA{Known: true, Max: 2, Running: []string{"a"}, Waiting: []string{"c"}}, AdapterSaturated},
		{"limit not told", telemetry.LoRA{Known: true, Running: []string{"a", "c", "d"}}, AdapterFreeSlot},
		{"slots free", telemetry.LoRA{SlotsUsed: known(1), SlotsTotal: known(2)}, AdapterFreeSlot},
		{"slots full", telemetry.LoRA{SlotsUsed: known(2), SlotsTotal: known(2)}, AdapterSaturated},
		{"no data", telemetry.LoRA{}, AdapterUnknown},
	} {
		f := newFleet(t, 2)
		f.Telemetry.Put(0, &telemetry.Sample{At: start, LoRA: c.lora})
		q := f.query(tokens(1, 64), start)
		q.Adapter, q.Prompt.LoRA = "b", "b"
		card := f.decide(q)
		if got := card.Rows[0].Adapter; got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if got := card.Rows[1].Adapter; got != AdapterUnknown {
			t.Errorf("%s: never scraped is %s", c.name, got)
		}
	}
}

func TestStaleEventsDiscountAffinity(t *testing.T) {
	for state, want := range map[view.SyncState]float64{
		view.Synced: 1, view.Partial: 1, view.Gap: 0.5, view.CatchingUp: 0.5, view.Connecting: 0.5,
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
	p := f.add(pod.Spec{Name: "dp", Model: model, Ranks: 3}, "10.0.9.1:8000")
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
	done := f.fill(f.pod(0), 1, 0.1)[0]
	done.FirstByte(start)
	done.End(start + 5000*ms)
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
