package view

import (
	"fmt"
	"math/rand"
	"net/netip"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/affinity"
	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// flapping is a fleet whose pods leave and come back while requests are on them.
type flapping struct {
	*Fleet
	t    *testing.T
	rnd  *rand.Rand
	now  int64
	pods []*pod.Pod // all that ever were
	live []*Placement
}

// The pods: of several ranks that the request names, of one, and of several that the
// engine chooses among.
var flappingSpecs = []pod.Spec{
	{Name: "a", Model: "m", Engine: pod.EngineVLLM, Ranks: 3},
	{Name: "b", Model: "m", Engine: pod.EngineVLLM},
	{Name: "c", Model: "m", Engine: pod.EngineTRTLLM, Ranks: 2},
}

// Whatever is reported of requests, in whatever order, twice, too late, about ranks,
// adapters, probes, pods that are gone and pods that came back: no counter is ever
// negative, and when all have ended nothing is left of them.
func TestCountersOfFlappingPods(t *testing.T) {
	for seed := range int64(200) {
		f := newFlapping(t, seed)
		for range 300 {
			f.now += f.rnd.Int63n(3 * ms)
			f.step()
			f.wantNoNegative()
		}
		f.end()
		f.wantNothing()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func newFlapping(t *testing.T, seed int64) *flapping {
	f := &flapping{t: t, rnd: rand.New(rand.NewSource(seed)), now: 1000 * ms, Fleet: &Fleet{
		Pods: pod.NewTable(), Index: index.New(index.Options{Seed: 1}), Telemetry: &telemetry.Board{}, Sync: &SyncBoard{},
		Load: NewLedger(), Affinity: affinity.NewTable(1 << 16),
	}}
	for i := range flappingSpecs {
		f.come(i)
	}
	return f
}

func (f *flapping) come(i int) {
	p, err := f.Pods.Add(flappingSpecs[i], netip.MustParseAddrPort(fmt.Sprintf("10.0.0.%d:8000", i+1)))
	if err != nil {
		f.t.Fatal(err)
	}
	for _, m := range p.Members {
		f.Index.Register(m, index.Owner{Model: p.Spec.Model, Engine: p.Spec.Engine, BlockSize: 16})
	}
	f.pods = append(f.pods, p)
}

// flap takes a pod away and adds it again.
func (f *flapping) flap() {
	p := f.Pods.Snapshot().Pods[f.rnd.Intn(len(flappingSpecs))]
	f.Pods.Remove(p.ID)
	for _, m := range p.Members {
		f.Index.Purge(m)
	}
	for i := range flappingSpecs {
		if flappingSpecs[i].Name == p.Spec.Name {
			f.come(i)
		}
	}
}

// some is a pod, of the latest mostly.
func (f *flapping) some() *pod.Pod { return f.pods[len(f.pods)-1-f.rnd.Intn(min(len(f.pods), 5))] }

func (f *flapping) place() {
	prompt := &block.Prompt{Tokens: family(f.rnd), Cut: -1}
	takes := func() time.Duration { return time.Duration(f.rnd.Int63n(5 * ms)) }
	f.live = append(f.live, f.Place(f.some(), Work{
		Prefill: takes(), Nominal: takes(), Prompt: prompt, Tokens: len(prompt.Tokens), Uncached: len(prompt.Tokens),
		Rank: f.rnd.Intn(5) - 1, Adapter: []string{"", "x", "y"}[f.rnd.Intn(3)],
		Limits: Limits{Depth: 3, Errors: 2, Probes: 2, Cooldown: time.Millisecond, Longest: 8 * time.Millisecond},
	}, f.now))
}

func (f *flapping) step() {
	switch op := f.rnd.Intn(9); {
	case op < 3 || len(f.live) == 0:
		f.place()
	case op == 3:
		f.flap()
	default:
		f.report(f.live[f.rnd.Intn(len(f.live))])
	}
}

// report says one thing of a request, which may be over.
func (f *flapping) report(r *Placement) {
	switch f.rnd.Intn(7) {
	case 0:
		r.FirstByte(f.now)
	case 1:
		r.Whole(f.now)
	case 2:
		r.Move(f.some(), f.now)
	case 3:
		r.Status(f.rnd.Intn(2) == 0, f.now)
	case 4:
		r.Unseen(f.now + f.rnd.Int63n(5*ms))
	case 5:
		f.Load.Presume(f.some(), Scrape{At: f.now - f.rnd.Int63n(5*ms), Waiting: f.rnd.Intn(3), Running: f.rnd.Intn(4) - 1}, f.now)
	default:
		r.End(f.now)
	}
}

// end ends all, and says more of them afterwards.
func (f *flapping) end() {
	for _, r := range f.live {
		r.End(f.now)
		for range 5 {
			f.report(r)
		}
	}
	f.Index.Sweep(f.now + int64(announceBy))
}

func (f *flapping) wantNoNegative() {
	for _, p := range f.pods {
		x := f.Load.LoadSince(p, f.now, f.now-f.rnd.Int63n(5*ms))
		c := &x.Circuit
		for i, n := range []int{
			x.Waiting, x.InFlight - x.Waiting, int(x.Queue), x.Depth, x.Since, int(x.SinceWork), x.AtScrape, x.PlacedAtScrape, int(x.Held),
			c.Errors, c.Lost, c.Probing, c.Answered, int(c.ProbeIn),
		} {
			if n < 0 {
				f.t.Errorf("counter %d is %d: %+v", i, n, x)
			}
		}
	}
}

func (f *flapping) wantNothing() {
	for _, r := range f.live {
		a := r.account
		if a.inFlight != 0 || a.waiting != 0 || a.newest != nil || a.held.tokens.Load() != 0 || len(a.held.users) != 0 || a.circuit.probing != 0 {
			f.t.Errorf("left on the pod: %+v", a)
		}
		for _, l := range a.lanes {
			if l.inFlight != 0 || l.waiting != 0 || l.work != 0 {
				f.t.Errorf("left on a rank: %+v", l)
			}
		}
		for _, u := range a.adapters {
			if u.users != 0 {
				f.t.Errorf("left on an adapter: %+v", u)
			}
		}
	}
	for _, p := range f.Pods.Snapshot().Pods {
		for _, m := range p.Members {
			if s, _ := f.Index.Member(m); s.Expectations != 0 {
				f.t.Errorf("%d prompts are expected of %s for good", s.Expectations, p.Spec.Name)
			}
		}
	}
}

// What is expected of a pod is no longer when the request turns out to be served
// elsewhere, when it fails, or when it ends before a first byte; one that ended well is
// announced within the time that engines take for it.
func TestExpectationsEndWithTheirRequests(t *testing.T) {
	one, first := &block.Prompt{Tokens: make([]uint32, 64), Cut: -1}, numbered(0, 64)
	for name, c := range map[string]struct {
		do   func(f *flapping, r *Placement)
		left bool // right after it
	}{
		"moved":      {func(f *flapping, r *Placement) { r.Move(f.pods[0], f.now) }, false},
		"failed":     {func(f *flapping, r *Placement) { r.Status(true, f.now); r.Whole(f.now); r.End(f.now) }, false},
		"given up":   {func(f *flapping, r *Placement) { r.End(f.now) }, false},
		"under way":  {func(f *flapping, r *Placement) { r.FirstByte(f.now) }, true},
		"ended well": {func(f *flapping, r *Placement) { r.FirstByte(f.now); r.End(f.now) }, true},
	} {
		for _, w := range []Work{
			{Prompt: one, Tokens: 64, Rank: -1},
			{Prompt: &first, Further: []block.Prompt{numbered(1000, 64), numbered(0, 64)}, Tokens: 192, Rank: -1}, // each by itself
		} {
			f := newFlapping(t, 1)
			on, prompts := f.pods[1], 1+len(w.Further)
			r := f.Place(on, w, f.now)
			expected := func(at int64) int {
				f.Index.Sweep(at)
				s, _ := f.Index.Member(on.Members[0])
				return s.Expectations
			}
			if n := expected(f.now); n != prompts {
				t.Fatalf("%d expected of the pod, of %d prompts", n, prompts)
			}
			c.do(f, r)
			left := 0
			if c.left {
				left = prompts
			}
			if n := expected(f.now + int64(announceBy) - 1); n != left {
				t.Errorf("%s: %d expected of the pod, want %d", name, n, left)
			}
			r.End(f.now)
			if n := expected(f.now + int64(announceBy)); n != 0 {
				t.Errorf("%s: %d expected of the pod for good", name, n)
			}
		}
	}
}

// An engine must have announced a block of a request that ended well there and whose
// prompt had one that it was not known to hold, and of no other.
func TestCaused(t *testing.T) {
	well := func(_ *flapping, _ *Placement) {}
	for name, c := range map[string]struct {
		do       func(f *flapping, r *Placement)
		uncached int
		rank     int
		want     [3]uint64 // by rank
	}{
		"well, on a rank":          {well, 16, 1, [3]uint64{0, 1, 0}},
		"all but the end was held": {well, 15, 1, [3]uint64{}},
		"moved":                    {func(f *flapping, r *Placement) { r.Move(f.pods[2], f.now) }, 16, 1, [3]uint64{}},
		"failed":                   {func(f *flapping, r *Placement) { r.Status(true, f.now) }, 16, 1, [3]uint64{}},
		"given up":                 {func(f *flapping, r *Placement) { r.End(f.now) }, 16, 1, [3]uint64{}},
		"by the engine's choice":   {well, 16, -1, [3]uint64{1, 1, 1}},
	} {
		f := newFlapping(t, 1)
		on := f.pods[0]
		for range 3 { // of which each rank gets one where the engine chooses
			r := f.Place(on, Work{Prompt: &block.Prompt{Tokens: make([]uint32, 64), Cut: -1}, Tokens: 64, Rank: c.rank, Uncached: c.uncached}, f.now)
			c.do(f, r)
			r.FirstByte(f.now)
			r.End(f.now)
			if c.rank >= 0 {
				break
			}
		}
		for rank, want := range c.want {
			if got := f.Load.Caused(on, rank); got != want {
				t.Errorf("%s: rank %d must have announced %d, want %d", name, rank, got, want)
			}
		}
		for rank := range f.pods[2].Members {
			if got := f.Load.Caused(f.pods[2], rank); got != 0 {
				t.Errorf("%s: the pod it was moved to must have announced %d", name, got)
			}
		}
	}
}

// A prompt that is known by its bytes alone was sent to both pods, once the proxy asked
// a second one.
func TestMovedBytes(t *testing.T) {
	f := newFlapping(t, 1)
	d := f.Affinity.Digest(affinity.Namespace{})
	d.Write(make([]byte, 4096))
	bytes := d.Prefix()
	r := f.Place(f.pods[0], Work{Bytes: bytes, Rank: -1}, f.now)
	var found affinity.Result
	for i, want := range []int{0, 4096} {
		f.Affinity.Lookup(bytes, f.Pods.Snapshot(), &found)
		if a, b := found.Bytes(f.pods[0].ID), found.Bytes(f.pods[1].ID); a != 4096 || b != want {
			t.Errorf("moved %d times: %d bytes on the first pod, %d on the second, want %d", i, a, b, want)
		}
		r.Move(f.pods[1], f.now)
	}
}
