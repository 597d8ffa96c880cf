package pick

import (
	"math/rand"
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

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
	}{{0.2, FromPod, telemetry.Fresh}, {0.4, FromPod, telemetry.Fresh}, {0.9, FromPod, telemetry.Fresh}, {0.05, FromPod, telemetry.Stale}, {0.9, FromOthers, telemetry.Unknown}} {
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

// A pod that does not tell its queue is taken to have the longest of the fresh
// ones; what we placed there counts where it is more.
func TestUnknownQueueIsTheLongest(t *testing.T) {
	f := newFleet(t, 4)
	f.policy = fixed(t)
	for i, waiting := range []float64{2, 6} {
		f.Telemetry.Put(pod.ID(i), &telemetry.Sample{At: start, Waiting: known(waiting)})
	}
	f.fill(f.pod(3), 8, 0.5)
	prompt := tokens(1, 4096) // 0.256 s
	mean := 0.5               // of the requests placed
	c := f.decide(f.query(prompt, start))
	for i, want := range []struct{ queue, taken float64 }{{2 * mean, 0}, {6 * mean, 0}, {6 * mean, 6}, {4, 6}} {
		if r := &c.Rows[i]; !near(r.Queue, want.queue, 1e-9) || r.Assumed != want.taken {
			t.Errorf("pod %d: queue %v, taken for waiting %v; want %+v", i, r.Queue, r.Assumed, want)
		}
	}
	if winner(c) != "pod-0" || c.Rows[2].Depth != 0 || !c.Rows[2].Candidate {
		t.Errorf("winner %s, depth of the unknown pod %d", winner(c), c.Rows[2].Depth)
	}
	f.policy.ScrapedLoad = false
	if got := f.decide(f.query(prompt, start)).Rows[2].Queue; got != 0 {
		t.Errorf("without scraped load: queue %v", got)
	}
	f.policy.ScrapedLoad = true
	c = f.decide(f.query(prompt, start+10_000*ms)) // nobody tells
	for i := range c.Rows[:3] {
		if r := &c.Rows[i]; r.Queue != 0 || r.Assumed != 0 || !r.Candidate {
			t.Errorf("nobody tells: pod %d has queue %v", i, r.Queue)
		}
	}
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
		{8_000, 4112, 0.6}, // unknown: the smallest pool, the greatest usage
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

func TestHardwareStates(t *testing.T) {
	slow := func(v float64) telemetry.Device { return telemetry.Device{Known: true, SlowDown: known(v)} }
	for _, c := range []struct {
		name         string
		device       telemetry.Device
		slow, severe float64
	}{
		{"no telemetry", telemetry.Device{SlowDown: known(3)}, 1, 0},
		{"healthy", telemetry.Device{Known: true}, 1, 0},
		{"noise", slow(1.04), 1, 0},
		{"slow clock", slow(1.05), 1.05, 0},
		{"slower than believed", slow(9), 4, 0},
		{"throttled", telemetry.Device{Known: true, Throttled: true}, 2, 0},
		{"throttled and slow", telemetry.Device{Known: true, Throttled: true, SlowDown: known(3)}, 3, 0},
		{"critical", telemetry.Device{Known: true, Critical: true}, 2, 30},
	} {
		f := newFleet(t, 1)
		f.Telemetry.Put(0, &telemetry.Sample{At: start, Device: c.device})
		if r := f.decide(f.query(nil, start)).Rows[0]; r.Slow != c.slow || r.Severe != c.severe {
			t.Errorf("%s: slow %v, severe %v; want %v, %v", c.name, r.Slow, r.Severe, c.slow, c.severe)
		}
	}
}
