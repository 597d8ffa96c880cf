package pick

import (
	"math"
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
	f.policy.Breaker.Start = 0 // TestSlowStart has the rest
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

// A pod that comes to a fleet that works is idle and empty and scores best; it
// gets a few requests until it answers, and then as many as its score brings.
func TestSlowStart(t *testing.T) {
	f := newFleet(t, 2)
	f.prove(f.pod(0))
	f.fill(f.pod(0), 8, 0.5) // a queue of 4 s that the new pod does not have
	place := func() (string, *view.Placement) {
		c, p := f.place(f.query(tokens(1000+f.ids, 64), start))
		return winner(c), p
	}
	var there []*view.Placement
	for range f.policy.Breaker.Start {
		name, p := place()
		if name != "pod-1" {
			t.Fatalf("%s is picked, with %d on the idle pod", name, len(there))
		}
		there = append(there, p)
	}
	c := f.decide(f.query(tokens(1, 64), start))
	if r := &c.Rows[1]; winner(c) != "pod-0" || r.Verdict != Starting || r.Value != 4 || r.Limit != 4 {
		t.Fatalf("winner %s, new pod %s %v/%v", winner(c), r.Verdict, r.Value, r.Limit)
	}
	if x := c.Explanation().Pods[1]; x.Filter.Name != "starting" || *x.Filter.Why != "has answered 0 requests" || x.Circuit.State != "closed" {
		t.Errorf("%+v %+v", x.Filter, x.Circuit)
	}
	full := f.fill(f.pod(0), f.policy.Breaker.Depth, 0.5) // its breaker opens
	if c := f.decide(f.query(tokens(1, 64), start)); winner(c) != "pod-1" || c.Why != reason.AllStarting {
		t.Errorf("the other pod's breaker is open: winner %s, why %q", winner(c), c.Why)
	}
	for _, p := range full {
		p.End(start)
	}
	there[0].FirstByte(start)
	for range f.policy.Breaker.Start {
		if name, _ := place(); name != "pod-1" {
			t.Fatalf("%s is picked after an answer", name)
		}
	}
}

// A pod that has announced blocks of the prompt computes, even if no answer is out
// yet: who needs those blocks does not compute them elsewhere.
func TestSlowStartLetsTheCachedIn(t *testing.T) {
	f := newFleet(t, 2)
	f.prove(f.pod(0))
	f.fill(f.pod(1), f.policy.Breaker.Start, 0.001)
	q := f.query(tokens(1, 4096), start)
	if c := f.decide(q); c.Rows[1].Verdict != Starting {
		t.Fatalf("%s", c)
	}
	f.store(f.pod(1).Members[0], event.TierGPU, tokens(1, 4096), 0, 4096/blockSize)
	if c := f.decide(q); winner(c) != "pod-1" || c.Why != reason.None {
		t.Errorf("winner %s, why %q", winner(c), c.Why)
	}
}

// While fewer than half have answered nothing is held back: so it is when the router
// starts, and the first to answer would get everything.
func TestSlowStartNeedsExamples(t *testing.T) {
	f := newFleet(t, 5)
	for i := range 5 {
		f.fill(f.pod(i), 20, 0.01)
	}
	for proven := range 5 {
		c := f.decide(f.query(tokens(1, 64), start))
		for i := range c.Rows {
			want := Scored
			if i >= proven && proven >= 3 {
				want = Starting
			}
			if v := c.Rows[i].Verdict; v != want {
				t.Errorf("%d of 5 have answered: pod-%d is %s", proven, i, v)
			}
		}
		f.prove(f.pod(proven))
	}
}

func TestUnknownIsNeverIdle(t *testing.T) {
	f := newFleet(t, 5)
	f.policy = fixed(t)
	for i, usage := range []float64{0.2, 0.4, 0.9} {
		f.Telemetry.Put(pod.ID(i), &telemetry.Sample{At: start, KVUsage: known(usage)})
	}
	f.Telemetry.Put(3, &telemetry.Sample{At: start - 4000*ms, KVUsage: known(0.95)}) // stale
	c := f.decide(f.query(tokens(1, 64), start))
	for i, want := range []struct {
		usage float64
		how   Source
		state telemetry.State
	}{{0.2, FromPod, telemetry.Fresh}, {0.4, FromPod, telemetry.Fresh}, {0.9, FromPod, telemetry.Fresh}, {0.95, FromPod, telemetry.Stale}, {0.9, FromOthers, telemetry.Unknown}} {
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

// An engine that is short of memory preempts a request that has answered, counts it
// as waiting and a full pool beside it. All of that is ours: it raises neither queue
// nor pool share. One request more on the page than ours are, and both count.
func TestPreemptedRequestsAreNotForeign(t *testing.T) {
	f := newFleet(t, 1)
	for _, p := range f.fill(f.pod(0), 3, 0.1) {
		p.FirstByte(start + 300*ms)
	}
	f.fill(f.pod(0), 1, 0.1) // before its first byte
	for _, c := range []struct {
		name    string
		running telemetry.Value
		foreign bool
		depth   int
		share   float64
	}{
		{"two of ours preempted", known(1), false, 1, 0},
		{"one request of others", known(2), true, 3, 0.8},
		{"running ones not told", telemetry.Value{}, true, 3, 0.8},
	} {
		f.Telemetry.Put(0, &telemetry.Sample{
			At: start + 400*ms, Waiting: known(3), Running: c.running,
			KVBlocks: known(1000), KVBlockSize: known(16), KVUsage: known(0.8),
		})
		r := f.decide(f.query(tokens(1, 64), start+500*ms)).Rows[0]
		if r.Load.PlacedAtScrape != 4 || r.Foreign != c.foreign || r.Depth != c.depth || r.PoolShare != c.share {
			t.Errorf("%s: foreign %v, depth %d, share %v, %+v", c.name, r.Foreign, r.Depth, r.PoolShare, r.Load)
		}
		if ours := seconds(r.Load.Queue); !c.foreign && r.Queue != ours || c.foreign && r.Queue <= ours {
			t.Errorf("%s: queue %v, own %v", c.name, r.Queue, ours)
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
	t.Run("a sleeping engine adds all of the prompt", func(t *testing.T) {
		f.Telemetry.Put(0, &telemetry.Sample{At: start, KVBlocks: known(1000), KVBlockSize: known(16), Asleep: true})
		if got := f.decide(f.query(prompt, start)).Rows[0].PoolAdds; got != 4112 {
			t.Errorf("adds %v tokens", got)
		}
	})
	t.Run("a hit/miss estimate says nothing of the pool", func(t *testing.T) {
		f.Telemetry.Put(1, &telemetry.Sample{At: start, KVBlocks: known(500), KVBlockSize: known(16), KVUsage: known(0.97), KVEstimate: true})
		if got := f.decide(f.query(prompt, start)).Rows[1].PoolShare; got != 0 {
			t.Errorf("share %v", got)
		}
	})
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

// Utilisation is the device's where an exporter tells it, and the energy term, once
// it has a weight, charges what lies beyond its share of the limit; a pod that tells
// nothing is not taken for a cool one.
func TestDevices(t *testing.T) {
	f := newFleet(t, 4)
	f.policy.Upsilon = 1
	told := func(v float64) telemetry.Value { return telemetry.Value{V: v, Known: true} }
	for i, d := range []telemetry.Device{
		{Utilisation: told(0.9), Envelope: told(0.95)}, {Utilisation: told(0.6), Envelope: told(0.7)}, {Utilisation: told(0.85)}, {},
	} {
		f.Telemetry.Put(pod.ID(i), &telemetry.Sample{At: start, KVUsage: known(0.25), Device: d})
	}
	terms := func(term int) (x [4]float64) {
		for i, r := range f.decide(f.query(tokens(1, 64), start)).Rows {
			x[i] = math.Round(r.Terms[term]*1e6) / 1e6
		}
		return x
	}
	if got := terms(TermUtilisation); got != [4]float64{-0.9, -0.6, -0.85, -0.25} {
		t.Errorf("utilisation %v", got)
	}
	if got := terms(TermEnergy); got != [4]float64{} {
		t.Errorf("energy is off: %v", got)
	}
	f.policy.Energy.Weight = 2
	if got := terms(TermEnergy); got != [4]float64{-1.5, 0, -0.5, -1.5} {
		t.Errorf("energy %v", got)
	}
}
