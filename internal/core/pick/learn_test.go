package pick

import (
	"container/heap"
	"math"
	"math/rand"
	"testing"

	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

// engines is a fleet in virtual time: each pod computes prompts one after another
// at a rate of its own, while it generates, and the real ledger and Decide route.
type engines struct {
	*fleet
	t       *testing.T
	rnd     *rand.Rand
	now     int64
	rate    []float64 // tokens per second, by pod
	free    []int64   // ns, when the pod can begin with the next prompt
	events  eventHeap
	serial  int
	picks   []int
	whole   float64 // share of requests whose response comes in one piece
	stalled float64 // share of prefills that take ten times as long
	jitter  float64 // of a prefill, from the batch that decodes beside it
}

type happening struct {
	at int64
	no int
	do func()
}

type eventHeap []happening

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].no < h[j].no
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(happening)) }
func (h *eventHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

func newEngines(t *testing.T, rates ...float64) *engines {
	return &engines{
		fleet: newFleet(t, len(rates)), t: t, rnd: rand.New(rand.NewSource(1)), now: start,
		rate: rates, free: make([]int64, len(rates)), picks: make([]int, len(rates)),
	}
}

func (e *engines) after(ns int64, do func()) {
	e.serial++
	heap.Push(&e.events, happening{e.now + ns, e.serial, do})
}

// run lets perSecond requests a second of 1,000 to 5,000 distinct tokens come for
// this many seconds.
func (e *engines) run(seconds, perSecond float64) {
	until := e.now + nanos(seconds)
	clear(e.picks)
	var arrive func()
	arrive = func() {
		if e.now < until {
			e.request(1000 + e.rnd.Intn(4000))
			e.after(nanos(e.rnd.ExpFloat64()/perSecond), arrive)
		}
	}
	e.after(0, arrive)
	for len(e.events) > 0 && e.events[0].at <= until {
		x := heap.Pop(&e.events).(happening)
		e.now = x.at
		x.do()
	}
	e.now = until
}

func (e *engines) request(length int) {
	c, p := e.place(e.query(tokens(1_000_000+e.serial, length), e.now))
	i := c.Winner
	e.picks[i]++
	took := float64(length) / e.rate[i] * (1 + e.jitter*e.rnd.Float64())
	if e.rnd.Float64() < e.stalled {
		took *= 10
	}
	e.free[i] = max(e.free[i], e.now) + nanos(took)
	first, last := e.free[i]-e.now, e.free[i]-e.now+nanos(0.5+2*e.rnd.Float64())
	if e.rnd.Float64() < e.whole {
		e.after(last, func() { p.Whole(e.now); p.End(e.now) })
		return
	}
	e.after(first, func() { p.FirstByte(e.now) })
	e.after(last, func() { p.End(e.now) })
}

func (e *engines) card() *Card { return e.decide(e.query(tokens(7, 4000), e.now)) }

// The configured rate is wrong by a factor; what is used comes within a tenth of
// the true one, though a third of the responses shows no first token, every
// twentieth prefill stalls and decoding costs up to a tenth.
func TestRateIsLearned(t *testing.T) {
	for _, rate := range []float64{6_000, 16_000, 40_000} {
		e := newEngines(t, rate, rate, rate, rate)
		e.whole, e.stalled, e.jitter = 0.3, 0.05, 0.1
		if x := e.card().Explanation(); x.Weights.PrefillRate != 16_000 || x.Weights.LearnedSure != 0 {
			t.Fatalf("before anything: %+v", x.Weights)
		}
		e.run(20, 0.5*4*rate/3000)
		x := e.card().Explanation()
		if got := x.Weights.PrefillRate; math.Abs(got/rate-1) > 0.1 || x.Weights.LearnedSure != 1 || x.Weights.Configured != 16_000 {
			t.Errorf("true rate %v: %+v", rate, x.Weights)
		}
		if cold := 4000 / rate; math.Abs(x.Weights.ColdPrefillS/cold-1) > 0.1 {
			t.Errorf("true rate %v: a prompt of 4,000 tokens counts %v s", rate, x.Weights.ColdPrefillS)
		}
		for _, r := range e.card().Rows {
			if r.Slow != 1 {
				t.Errorf("true rate %v: %s counts as %v times slower than the others", rate, r.Pod.Spec.Name, r.Slow)
			}
		}
		e.policy.Learn.On = false
		if x := e.card().Explanation(); x.Weights.PrefillRate != 16_000 || x.Weights.LearnedSure != 0 {
			t.Errorf("switched off: %+v", x.Weights)
		}
	}
}

// A pod becomes three times slower under load: within five seconds its prefill
// counts so, and it gets less; the model's rate stays. A minute without a sample
// later it is taken for what it was.
func TestSlowPodIsNoticed(t *testing.T) {
	const rate = 16_000.0
	e := newEngines(t, rate, rate, rate, rate)
	e.jitter = 0.1
	e.run(20, 0.5*4*rate/3000)
	e.rate[2] = rate / 3
	e.run(5, 0.5*4*rate/3000)
	c := e.card()
	if r := &c.Rows[2]; math.Abs(r.Slow-3) > 0.5 || r.Terms[TermHardware] > -0.3 || winner(c) == "pod-2" {
		t.Errorf("five seconds later: slow %v, measured %+v, hardware %v s, winner %s", r.Slow, r.Load.Pace, r.Terms[TermHardware], winner(c))
	}
	if got := c.Explanation().Weights.PrefillRate; math.Abs(got/rate-1) > 0.1 {
		t.Errorf("the model's rate counts %v", got)
	}
	e.run(10, 0.5*4*rate/3000)
	if others := e.picks[0] + e.picks[1] + e.picks[3]; e.picks[2] == 0 || 2*e.picks[2] > others/3 {
		t.Errorf("picks %v: want less than half on pod-2, and some", e.picks)
	}
	e.now += 61e9
	if r := &e.card().Rows[2]; r.Slow != 1 || r.Load.Pace != (view.Rate{}) {
		t.Errorf("a minute later: slow %v, %+v", r.Slow, r.Load.Pace)
	}
}

// A prompt that the pool may have no room for waits for memory before it is computed:
// its first byte teaches no rate. One that fits does, and so does one on a pod that
// does not tell its pool.
func TestNothingToLearnWithoutRoom(t *testing.T) {
	for _, c := range []struct {
		name   string
		usage  float64
		blocks telemetry.Value
		held   int // tokens in flight
		taught bool
	}{
		{"room", 0.3, known(1000), 0, true},
		{"pool full by the page", 0.8, known(1000), 0, false},
		{"pool full by our own prompts", 0, known(1000), 12_000, false},
		{"pool not told", 0.8, telemetry.Value{}, 0, true},
	} {
		f := newFleet(t, 1)
		f.Telemetry.Put(0, &telemetry.Sample{At: start, KVBlocks: c.blocks, KVBlockSize: known(16), KVUsage: known(c.usage)})
		f.Fleet.Place(f.pod(0), view.Work{Tokens: c.held, Rank: -1}, start)
		card := f.decide(f.query(tokens(1, 4000), start))
		if got := card.Work(f.query(tokens(1, 4000), start)).Nominal > 0; got != c.taught {
			t.Errorf("%s: taught %v", c.name, got)
		}
	}
}

// Pods without streams, and prompts that nobody has read, teach nothing.
func TestNothingToLearnFrom(t *testing.T) {
	e := newEngines(t, 4_000, 4_000)
	e.whole = 1
	e.run(10, 2)
	for range 20 {
		q := e.query(nil, e.now)
		q.PromptTokens = 4000
		_, p := e.place(q)
		e.now += 1e9
		p.FirstByte(e.now)
		p.End(e.now)
	}
	if x := e.card().Explanation(); x.Weights.LearnedSure != 0 || x.Weights.PrefillRate != 16_000 {
		t.Errorf("%+v", x.Weights)
	}
}
