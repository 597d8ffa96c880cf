package pick

import (
	"errors"
	"math"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// warmFleet: pod-0 has most of the prompt and a request waiting, pod-1 less and
// nothing waiting, pod-2 nothing at all.
func warmFleet(t *testing.T) (*fleet, *Card) {
	f, prompt := newFleet(t, 3), tokens(1, 4096)
	for i := range 3 {
		f.prove(f.pod(i))
	}
	f.store(0, event.TierGPU, prompt, 0, 200)
	f.store(0, event.TierHost, prompt, 0, 212)
	f.store(1, event.TierGPU, prompt, 0, 100)
	f.fill(f.pod(0), 1, 0.03)
	for i := range 3 {
		f.Telemetry.Put(pod.ID(i), &telemetry.Sample{At: start - 300*ms, Waiting: known(0), KVUsage: known(0.2), Running: known(1)})
	}
	c := f.decide(f.query(prompt, start))
	if winner(c) != "pod-0" || c.Rows[c.RunnerUp].Pod.Spec.Name != "pod-1" {
		t.Fatalf("winner %s:\n%s", winner(c), c)
	}
	return f, c
}

func suppose(t *testing.T, c *Card, w WhatIf) *Card {
	t.Helper()
	var then Card
	if err := Suppose(c, &w, &then); err != nil {
		t.Fatal(err)
	}
	return &then
}

// TestSupposeWeights: a supposed weight gives the card that a decision under it gives.
func TestSupposeWeights(t *testing.T) {
	rnd := rand.New(rand.NewSource(7))
	for range 20 {
		f := busyFleet(t, 3+rnd.Intn(20))
		q := f.query(tokens(3, 2000), start)
		c := f.decide(q)
		w := []Weight{
			{"alpha", rnd.Float64() * 4}, {"beta", rnd.Float64() / 10}, {"pool", rnd.Float64() * 2}, {"breaker.depth", float64(3 + rnd.Intn(5))},
			{"fresh_for", 1 + rnd.Float64()}, {"prefill_tokens_per_second", 1000 + rnd.Float64()*30_000},
		}
		then := suppose(t, c, WhatIf{Weights: w})
		pol, err := f.policy.With(w...)
		if err != nil {
			t.Fatal(err)
		}
		f.policy = pol
		if want := f.decide(q); wire(t, then) != wire(t, want) {
			t.Errorf("supposed:\n%s\ndecided:\n%s", wire(t, then), wire(t, want))
		}
	}
}

// TestSupposeWithout: without a pod the card is that of a fleet whose gateway left it out.
func TestSupposeWithout(t *testing.T) {
	_, c := warmFleet(t)
	then := suppose(t, c, WhatIf{Without: []string{"pod-0"}})
	if winner(then) != "pod-1" || then.row("pod-0").Candidate || then.row("pod-0").Verdict != Excluded {
		t.Errorf("without pod-0:\n%s", then)
	}
	if all := suppose(t, c, WhatIf{Without: []string{"pod-0", "pod-1", "pod-2"}}); all.Winner != -1 || all.Why != reason.NoEligiblePod {
		t.Errorf("without all:\n%s", all)
	}
	if winner(c) != "pod-0" {
		t.Error("the decision itself has changed")
	}
}

func TestSupposeInputs(t *testing.T) {
	_, c := warmFleet(t)
	for _, tc := range []struct {
		text, winner string
		check        func(r *Row) bool
	}{
		{"pod-0.queue=80", "pod-1", func(r *Row) bool { return r.Verdict == BreakerOpen && r.Depth == 80 }},
		{"pod-0.queue=0", "pod-0", func(r *Row) bool { return r.Queue == 0 && r.Depth == 0 && r.Terms[TermBreaker] == 0 }},
		{"pod-0.queue=4", "pod-1", func(r *Row) bool { return near(r.Queue, 0.12, 1e-9) && r.Depth == 4 }}, // 30 ms each
		{"pod-0.cached=0", "pod-1", func(r *Row) bool {
			return r.Cached == 0 && r.Reason == reason.NotCached && r.Match.Fastest == [event.NumTiers]int32{}
		}},
		{"pod-0.cached=3231", "pod-0", func(r *Row) bool { // 201 whole blocks: one of those on the host is left
			return r.Cached == 3216 && r.Match.Fastest[event.TierGPU] == 200 && r.Match.Fastest[event.TierHost] == 1
		}},
		{"pod-0.cached=1600", "pod-1", func(r *Row) bool { return r.Match.Fastest[event.TierGPU] == 100 && r.Match.Announced == 100 }},
		{"pod-2.cached=4000", "pod-2", func(r *Row) bool {
			return r.Cached == 4000 && r.Reason == reason.None && r.Match.Fastest[event.TierGPU] == 250
		}},
		{"pod-1.in-flight=3", "pod-0", func(r *Row) bool { return r.Load.InFlight == 3 }},
		{"pod-0.waiting=9", "pod-1", func(r *Row) bool { return r.Foreign && r.Depth == 10 && r.Waiting.V == 9 }}, // and ours since
		{"pod-0.kv_usage=0.95", "pod-0", func(r *Row) bool { return r.Usage == 0.95 }},
		{"pod-0.slow=8", "pod-1", func(r *Row) bool { return r.Slow == 8 && r.Terms[TermHardware] < -0.1 }},
	} {
		x, err := ParseInput(tc.text)
		if err != nil {
			t.Fatal(err)
		}
		then := suppose(t, c, WhatIf{Inputs: []Input{x}})
		if winner(then) != tc.winner || !tc.check(then.row(x.Pod)) {
			t.Errorf("%s: winner %s, row %+v", tc.text, winner(then), *then.row(x.Pod))
		}
	}
	// A pod whose page nobody has any more gets one.
	f := newFleet(t, 2)
	f.Telemetry.Put(0, &telemetry.Sample{At: start - 60_000*ms, Waiting: known(90)})
	c = f.decide(f.query(tokens(1, 4096), start))
	if r := suppose(t, c, WhatIf{Inputs: []Input{{"pod-0", "waiting", 4}}}).row("pod-0"); r.Telemetry != telemetry.Fresh || r.Waiting.V != 4 || !r.Foreign {
		t.Errorf("supposed page of a silent pod: %+v", r)
	}
}

func TestSupposeOfEstimates(t *testing.T) {
	f := newFleet(t, 2)
	q := f.query(nil, start)
	q.PromptTokens, q.Unmatched = 1000, reason.NoTokenizer
	c := f.decide(q)
	r := suppose(t, c, WhatIf{Inputs: []Input{{"pod-1", "cached", 900}}}).row("pod-1")
	if r.Cached != 900 || r.Near != 900 || r.Trust != nearTrust {
		t.Errorf("%+v", r)
	}
}

func TestSupposeRefuses(t *testing.T) {
	_, c := warmFleet(t)
	for name, w := range map[string]WhatIf{
		"no pod is called":                    {Inputs: []Input{{"pod-9", "queue", 1}}},
		"did you mean pod-0, pod-1 or pod-2?": {Without: []string{"pod-9"}},
		"want a whole number":                 {Inputs: []Input{{"pod-0", "queue", 1.5}}},
		"want 0 to 1000000":                   {Inputs: []Input{{"pod-0", "queue", -1}}},
		"want 0 to 4096":                      {Inputs: []Input{{"pod-0", "cached", 4097}}},
		"want 0 to 1 share":                   {Inputs: []Input{{"pod-0", "kv_usage", 1.01}}},
		"there are queue, cache":              {Inputs: []Input{{"pod-0", "nothing", 1}}},
		"breaker.depth":                       {Weights: []Weight{{"breaker.depth", 0}}},
	} {
		var then Card
		if err := Suppose(c, &w, &then); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: %v; want %q in it", w, err, name)
		}
	}
}

// TestFlips: EX-06. Each changes the winner as it says, and one step less does not.
func TestFlips(t *testing.T) {
	_, c := warmFleet(t)
	flips := c.Flips()
	find := func(pod, field string) *Flip {
		for i := range flips {
			if flips[i].Pod == pod && flips[i].Field == field {
				return &flips[i]
			}
		}
		t.Fatalf("no flip of %s %s in %+v", pod, field, flips)
		return nil
	}
	step := map[string]float64{"queue": 1, "cached": blockSize, "in_flight": 1, "slow": 0.1, "kv_usage": 0.01}
	for i := range flips {
		x := &flips[i]
		if got := winner(suppose(t, c, *x.whatIf(x.At))); got != x.Winner || got == winner(c) {
			t.Errorf("%+v: winner %s", x, got)
		}
		less := round(x.At + math.Copysign(step[x.Field], x.Now-x.At))
		if x.Pod != "" && winner(suppose(t, c, *x.whatIf(less))) != winner(c) {
			t.Errorf("%+v: %v does it too", x, less)
		}
	}
	// 112 blocks of 16 at 16,000 tokens per second are worth 112 ms, less the host's
	// part; each request that waits takes 30 ms, and one like it behind ours is
	// delayed by 44 ms.
	if x := find("pod-0", "queue"); x.Now != 1 || x.At != 2 || x.Winner != "pod-1" {
		t.Errorf("%+v", x)
	}
	find("pod-0", "cached")
	find("pod-1", "cached")
	if x := find("", "alpha"); x.At >= x.Now || x.Winner != "pod-1" {
		t.Errorf("%+v", x)
	}
	if flips[0].Field != "queue" || flips[0].Pod != "pod-0" {
		t.Errorf("first is %+v", flips[0])
	}
}

// TestFlipOfAFullPod: the best pod is left out for its queue; the flip says how long
// it may be.
func TestFlipOfAFullPod(t *testing.T) {
	f, prompt := newFleet(t, 2), tokens(1, 4096)
	f.prove(f.pod(0))
	f.prove(f.pod(1))
	f.store(0, event.TierGPU, prompt, 0, 250)
	f.policy.Beta = 0
	f.fill(f.pod(0), 80, 0.001)
	c := f.decide(f.query(prompt, start))
	if winner(c) != "pod-1" {
		t.Fatalf("%s", c)
	}
	i := slices.IndexFunc(c.Flips(), func(x Flip) bool { return x.Pod == "pod-0" && x.Field == "queue" && x.Winner == "pod-0" })
	if i < 0 {
		t.Fatalf("%+v", c.Flips())
	}
	if x := c.Flips()[i]; x.Now != 80 || x.At >= 64 || x.At < 20 {
		t.Errorf("%+v", x)
	}
}

func TestNoFlips(t *testing.T) {
	f := newFleet(t, 1)
	if got := f.decide(f.query(tokens(1, 4096), start)).Flips(); len(got) != 0 {
		t.Errorf("one pod alone: %+v", got)
	}
	f = newFleet(t, 0)
	if got := f.decide(f.query(tokens(1, 4096), start)).Flips(); len(got) != 0 {
		t.Errorf("no pod: %+v", got)
	}
}

func TestExplainWhatIf(t *testing.T) {
	_, c := warmFleet(t)
	x, err := c.ExplainWhatIf(&WhatIf{Inputs: []Input{{"pod-0", "queue", 8}}, Weights: []Weight{{"beta", 0.1}}, Without: []string{"pod-2"}})
	if err != nil {
		t.Fatal(err)
	}
	if *x.Pick.Pod != "pod-1" || len(x.Overrides) != 3 || *x.Overrides[0].Now != 1 || *x.Overrides[1].Now != c.basis.policy.Beta || *x.Overrides[2].Pod != "pod-2" {
		t.Errorf("%+v", x)
	}
	// The breaker's term is 0 but for what floats lose, before and after: it does not move.
	want := []string{"pod-0 queue", "pod-0 delay", "pod-0 concurrency"}
	var got []string
	for _, m := range x.Moved {
		got = append(got, m.Pod+" "+m.Term)
	}
	if !slices.Equal(got, want) {
		t.Errorf("moved %v, want %v", got, want)
	}
	whole := c.Explanation()
	whole.Flip, whole.WhatIf = c.ExplainFlips(), x
	goldenWire(t, "whatif", whole)
	if _, err := c.ExplainWhatIf(&WhatIf{Without: []string{"nobody"}}); !errors.As(err, new(*UnknownPodError)) {
		t.Errorf("an unknown pod: %v", err)
	}
}

// TestZeroes: a term that is 0 says why, and one that is not does not.
func TestZeroes(t *testing.T) {
	_, c := warmFleet(t)
	want := map[string]map[string]string{
		"pod-0": {"concurrency": "", "utilisation": "weight-zero", "lora": "no-adapter-wanted", "hardware": "hardware-unknown", "pool": "pool-size-unknown", "energy": "weight-zero"},
		"pod-2": {"kv": "not-cached", "queue": "idle", "concurrency": "idle", "breaker": "idle", "tier": "not-cached"},
		"pod-1": {"tier": "on-gpu", "kv": ""},
	}
	for _, p := range c.Explanation().Pods {
		for _, term := range p.Terms {
			if (term.Seconds == 0) != (term.Zero != nil) {
				t.Errorf("%s %s: %v s, reason %v", p.Name, term.Name, term.Seconds, term.Zero)
			}
			if w, ok := want[p.Name][term.Name]; ok && (term.Zero == nil) != (w == "") || ok && w != "" && *term.Zero != w {
				t.Errorf("%s %s: reason %v, want %q", p.Name, term.Name, term.Zero, w)
			}
		}
	}
}

func TestParseInput(t *testing.T) {
	for text, want := range map[string]Input{
		"a.queue=12": {"a", "queue", 12}, "vllm-0.ns.svc.kv_usage=0.97": {"vllm-0.ns.svc", "kv_usage", 0.97},
		"a=b.in-flight=1": {"a=b", "in_flight", 1}, "a.cached=1e3": {"a", "cached", 1000},
	} {
		if got, err := ParseInput(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"": "POD.FIELD=VALUE", "a.queue": "POD.FIELD=VALUE", "queue=1": "POD.FIELD=VALUE", ".queue=1": "POD.FIELD=VALUE",
		"a.que=1": "did you mean queue?", "a.queue=many": "a number", "a.queue=": "a number", "a.queue=NaN": "a number",
	} {
		if _, err := ParseInput(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q in it", text, err, want)
		}
	}
}

// FuzzParseInput: what is read is written and read again, and supposing it is either
// refused or gives a card whose numbers are finite.
func FuzzParseInput(f *testing.F) {
	for _, text := range []string{"pod-0.queue=12", "pod-1.cached=1600", "pod-0.kv_usage=1", "pod-2.slow=64", "pod-0.held=1e12", "a.b.c=d.waiting=3", "=", "."} {
		f.Add(text)
	}
	fl := busyFleet(f, 3)
	c := fl.decide(fl.query(tokens(3, 2000), start))
	f.Fuzz(func(t *testing.T, text string) {
		x, err := ParseInput(text)
		if err != nil {
			return
		}
		if y, err := ParseInput(x.String()); err != nil || y != x {
			t.Fatalf("%q: %v, again %v, %v", text, x, y, err)
		}
		var then Card
		if Suppose(c, &WhatIf{Inputs: []Input{x}}, &then) != nil {
			return
		}
		for i := range then.Rows {
			if r := &then.Rows[i]; r.Candidate && (math.IsNaN(r.Total) || math.IsInf(r.Total, 0)) {
				t.Fatalf("%q: %+v", text, r)
			}
		}
	})
}
