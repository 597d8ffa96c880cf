package pick

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

// One fleet with a pod for each filter; only "good" passes all.
func filterFleet(t *testing.T) *fleet {
	f := newFleet(t, 0)
	f.add(pod.Spec{Name: "good", Model: model, Adapters: []string{"a"}}, "10.0.0.1:8000")
	f.add(pod.Spec{Name: "unresolved", Address: "later.example:8000"}, "")
	p := f.add(pod.Spec{Name: "draining", Model: model}, "10.0.0.3:8000")
	f.Pods.Update(p.ID, func(p *pod.Pod) { p.Spec.Draining = true })
	f.add(pod.Spec{Name: "outside", Model: model}, "10.0.9.4:8000")
	f.add(pod.Spec{Name: "other-model", Model: "qwen"}, "10.0.0.5:8000")
	f.add(pod.Spec{Name: "prefill", Model: model, Role: pod.RolePrefill}, "10.0.0.6:8000")
	f.add(pod.Spec{Name: "no-adapter", Model: model, Adapters: []string{}}, "10.0.0.7:8000")
	f.add(pod.Spec{Name: "short", Model: model, MaxContext: 4095}, "10.0.0.8:8000")
	p = f.add(pod.Spec{Name: "broken", Model: model}, "10.0.0.9:8000")
	f.Telemetry.Put(p.ID, &telemetry.Sample{At: start, Device: telemetry.Device{Known: true, Fatal: true}})
	p = f.add(pod.Spec{Name: "asleep", Model: model}, "10.0.0.10:8000")
	f.Telemetry.Put(p.ID, &telemetry.Sample{At: start, Asleep: true})
	p = f.add(pod.Spec{Name: "hung", Model: model}, "10.0.0.12:8000")
	f.Telemetry.Put(p.ID, &telemetry.Sample{At: start - 5_001*ms})
	f.Telemetry.FailMute(p.ID, "no complete answer within 500ms", start-200*ms)
	p = f.add(pod.Spec{Name: "busy", Model: model}, "10.0.0.11:8000")
	f.prove(p)
	f.fill(p, f.policy.Breaker.Depth, 0.001)
	p = f.add(pod.Spec{Name: "failing", Model: model}, "10.0.0.13:8000")
	for range view.DefaultLimits.Errors {
		r := f.Load.Place(p, view.Work{Rank: -1}, start-400*ms)
		r.Status(true, start-300*ms)
		r.End(start - 300*ms)
	}
	good := f.Pods.Snapshot().ByName("good")
	f.prove(good)
	f.fill(good, 20, 1) // by score alone the last
	f.fill(f.add(pod.Spec{Name: "new", Model: model}, "10.0.0.14:8000"), 4, 0.001)
	return f
}

func filterQuery(f *fleet) *Query {
	q := f.query(tokens(1, 4096), start)
	q.Adapter, q.Prompt.LoRA = "a", "a"
	q.Subset = &Subset{}
	for _, p := range f.Pods.Snapshot().Pods {
		if p.Spec.Name != "outside" && p.Addr.IsValid() {
			q.Subset.Addrs = append(q.Subset.Addrs, p.Addr)
		}
	}
	return q
}

func TestFilters(t *testing.T) {
	f := filterFleet(t)
	c := f.decide(filterQuery(f))
	want := map[string]Verdict{
		"good": Scored, "unresolved": Unresolved, "draining": Draining, "outside": NotInSubset,
		"other-model": OtherModel, "prefill": OtherRole, "no-adapter": NoAdapter, "short": TooLong,
		"broken": Fatal, "failing": Failing, "asleep": Asleep, "hung": NotAnswering, "busy": BreakerOpen, "new": Starting,
	}
	seen := map[Verdict]bool{}
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Verdict != want[r.Pod.Spec.Name] || r.Candidate != (r.Verdict == Scored) {
			t.Errorf("%s: %s, candidate %v", r.Pod.Spec.Name, r.Verdict, r.Candidate)
		}
		seen[r.Verdict] = true
	}
	var then Card
	if err := Suppose(c, &WhatIf{Without: []string{"good"}}, &then); err != nil || then.row("good").Verdict != Excluded {
		t.Errorf("without good: %v, %s", err, then.row("good").Verdict)
	}
	seen[Excluded] = true
	if len(seen) != int(numVerdicts) {
		t.Errorf("%d of %d verdicts have a case", len(seen), numVerdicts)
	}
	if winner(c) != "good" || c.RunnerUp != -1 || c.Why != reason.None {
		t.Errorf("winner %s, runner-up %d, why %q", winner(c), c.RunnerUp, c.Why)
	}
	golden(t, "filters", c)
}

// Without the better pod, the mildest verdict of the rest makes the candidates.
func TestSoftFiltersGiveWay(t *testing.T) {
	for _, c := range []struct {
		gone   []string
		winner string
		why    reason.Code
	}{
		{nil, "good", reason.None},
		{[]string{"good"}, "new", reason.AllStarting},
		{[]string{"good", "new"}, "busy", reason.AllBreakersOpen},
		{[]string{"good", "new", "busy"}, "asleep", reason.AllAsleep},
		{[]string{"good", "new", "busy", "asleep"}, "failing", reason.AllFailing},
		{[]string{"good", "new", "busy", "asleep", "failing"}, "broken", reason.AllFatal},
		{[]string{"good", "new", "busy", "asleep", "failing", "broken"}, "hung", reason.AllSilent},
		{[]string{"good", "new", "busy", "asleep", "failing", "broken", "hung"}, "short", reason.AllTooShort},
		{[]string{"good", "new", "busy", "asleep", "failing", "broken", "hung", "short"}, "none", reason.NoEligiblePod},
	} {
		f := filterFleet(t)
		for _, name := range c.gone {
			f.Pods.Remove(f.Pods.Snapshot().ByName(name).ID)
		}
		card := f.decide(filterQuery(f))
		if winner(card) != c.winner || card.Why != c.why {
			t.Errorf("without %v: winner %s, why %q; want %s, %q", c.gone, winner(card), card.Why, c.winner, c.why)
		}
		wantOutcome := Picked
		if c.winner == "none" {
			wantOutcome = NoEndpoint
		}
		if card.Outcome != wantOutcome {
			t.Errorf("without %v: outcome %s", c.gone, card.Outcome)
		}
	}
}

// A pod that holds the whole prefix and answers nothing any more is not picked,
// whatever the event stream says; one that has no numbers to give is.
func TestNotAnswering(t *testing.T) {
	const limit = 5000 * ms // known_for
	sample := func(age int64) func(*fleet) {
		return func(f *fleet) { f.Telemetry.Put(0, &telemetry.Sample{At: start - age, Waiting: known(0)}) }
	}
	mute := func(f *fleet) { f.Telemetry.FailMute(0, "connection refused", start-ms) }
	failed := func(f *fleet) { f.Telemetry.Fail(0, "HTTP 404", start-ms) }
	gone := func(f *fleet) {
		f.Sync.Put(0, view.Sync{State: view.Connecting, Why: reason.Disconnected, Detail: "eof", Since: start - 60_000*ms, LastEvent: start - 60_000*ms})
	}
	for _, c := range []struct {
		name string
		do   []func(*fleet)
		want Verdict
		age  float64 // s, as shown
	}{
		{"known values, scrapes fail", []func(*fleet){sample(limit), mute}, Scored, 0},
		{"scrapes fail for longer", []func(*fleet){sample(limit + ms), mute}, NotAnswering, 5.001},
		{"killed", []func(*fleet){sample(limit + ms), mute, gone}, NotAnswering, 5.001},
		{"answers, but no page", []func(*fleet){sample(limit + ms), failed}, Scored, 0},
		{"answers again", []func(*fleet){sample(limit + ms), mute, sample(0)}, Scored, 0},
		{"never answered", []func(*fleet){mute, gone}, NotAnswering, 0},
		{"never answered, no event source", []func(*fleet){mute, func(f *fleet) { f.Sync.Put(0, view.Sync{}) }}, NotAnswering, 0},
		{"never answered, but publishes", []func(*fleet){mute}, Scored, 0},
		{"has no metrics page", []func(*fleet){failed, gone}, Scored, 0},
		{"not asked yet", []func(*fleet){gone}, Scored, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFleet(t, 2)
			f.Telemetry.Put(1, &telemetry.Sample{At: start, Waiting: known(0)})
			prompt := tokens(1, 4096)
			f.store(0, event.TierGPU, prompt, 0, 256)
			for _, do := range c.do {
				do(f)
			}
			card := f.decide(f.query(prompt, start))
			r := &card.Rows[0]
			want := "pod-0"
			if c.want == NotAnswering {
				want = "pod-1"
			}
			if r.Verdict != c.want || winner(card) != want || card.Why != reason.None {
				t.Errorf("verdict %s, winner %s, why %q; want %s, %s", r.Verdict, winner(card), card.Why, c.want, want)
			}
			if c.want == NotAnswering && (r.Value != c.age || r.Limit != 5) {
				t.Errorf("%v s of %v, want %v of 5", r.Value, r.Limit, c.age)
			}
			if x := r.explainFilter(); c.want == NotAnswering && !strings.HasSuffix(*x.Why, ": connection refused") {
				t.Errorf("explain says %q, and not why", *x.Why)
			}
			f.Pods.Remove(1)
			if card := f.decide(f.query(prompt, start)); winner(card) != "pod-0" {
				t.Errorf("alone it is not picked: %s, %q", winner(card), card.Why)
			}
		})
	}
}

func TestNoEndpoint(t *testing.T) {
	empty := newFleet(t, 0)
	if c := empty.decide(empty.query(nil, start)); c.Outcome != NoEndpoint || c.Why != reason.NoPods {
		t.Errorf("empty fleet: %s, %q", c.Outcome, c.Why)
	}
	f := newFleet(t, 2)
	for name, s := range map[string]*Subset{
		"empty hint":   {},
		"other port":   {Addrs: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:8001")}},
		"other family": {IPs: []netip.Addr{netip.MustParseAddr("2001:db8::1")}},
	} {
		q := f.query(nil, start)
		q.Subset = s
		if c := f.decide(q); c.Outcome != NoEndpoint || c.Winner != -1 || c.Why != reason.NoEligiblePod {
			t.Errorf("%s: %s, winner %d", name, c.Outcome, c.Winner)
		}
	}
	q := f.query(nil, start)
	q.Subset = &Subset{IPs: []netip.Addr{netip.MustParseAddr("10.0.0.2")}}
	if c := f.decide(q); winner(c) != "pod-1" {
		t.Errorf("ip without port: %s", winner(c))
	}
}

// Only load sheds: a sheddable request is routed like any other before that.
func TestSheddable(t *testing.T) {
	f := newFleet(t, 2)
	f.fill(f.pod(0), 32, 0.001)
	q := f.query(tokens(1, 64), start)
	q.Priority = -5
	if c := f.decide(q); c.Outcome != Picked || winner(c) != "pod-1" {
		t.Errorf("one pod has room: %s, %s", c.Outcome, winner(c))
	}
	f = newFleet(t, 1)
	f.Telemetry.Put(0, &telemetry.Sample{At: start, Asleep: true})
	if c := f.decide(q); c.Outcome != Picked || c.Why != reason.AllAsleep {
		t.Errorf("not excluded by load: %s, %q", c.Outcome, c.Why)
	}
}

func TestContextIsInclusive(t *testing.T) {
	f := newFleet(t, 0)
	f.add(pod.Spec{Name: "exact", MaxContext: 64}, "10.0.0.1:8000")
	f.add(pod.Spec{Name: "long"}, "10.0.0.2:8000")
	for n, want := range map[int]Verdict{64: Scored, 65: TooLong} {
		if got := f.decide(f.query(tokens(1, n), start)).Rows[0].Verdict; got != want {
			t.Errorf("%d tokens of 64: %s", n, got)
		}
	}
}

func TestEstimatedLengthFiltersNobody(t *testing.T) {
	f := newFleet(t, 0)
	f.add(pod.Spec{Name: "short", MaxContext: 1000}, "10.0.0.1:8000")
	f.add(pod.Spec{Name: "long", MaxContext: 8000}, "10.0.0.2:8000")
	q := f.query(nil, start)
	q.PromptTokens, q.Unmatched = 5000, reason.NoTokenizer
	c := f.decide(q)
	if !c.Rows[0].Candidate || c.Exact || c.Tokens != 5000 {
		t.Errorf("an estimate filtered a pod:\n%s", c)
	}
	// u = the estimate, on every pod.
	if got := c.Rows[0].Prefill; !near(got, 0.3125, 1e-12) {
		t.Errorf("prefill %v", got)
	}
}

func TestReasons(t *testing.T) {
	prompt := tokens(1, 400)
	for _, c := range []struct {
		want reason.Code
		do   func(f *fleet, q *Query)
	}{
		{reason.NotCached, func(*fleet, *Query) {}},
		{reason.TokenizeFailed, func(_ *fleet, q *Query) { q.Prompt.Tokens, q.Unmatched = nil, reason.TokenizeFailed }},
		{reason.NoEventsSource, func(f *fleet, _ *Query) { f.Sync.Put(0, view.Sync{}) }},
		{reason.Disconnected, func(f *fleet, _ *Query) {
			f.Sync.Put(0, view.Sync{State: view.Connecting, LastEvent: start - 500*ms})
		}},
		{reason.NoEventsEver, func(f *fleet, _ *Query) { f.Sync.Put(0, view.Sync{State: view.Live, Connected: true}) }},
		{reason.NotCached, func(f *fleet, _ *Query) { // joined late: what it holds came by replay alone
			f.store(0, event.TierGPU, tokens(1000, 400), 0, 25)
			f.Sync.Put(0, view.Sync{State: view.Live, Connected: true})
		}},
		{reason.Cleared, func(f *fleet, _ *Query) {
			f.store(0, event.TierGPU, prompt, 0, 25)
			f.Index.Apply(0, &event.Event{Kind: event.Cleared}, start-5*ms)
			f.Index.Emptied(0, start-5*ms)
		}},
		{reason.NotCached, func(f *fleet, _ *Query) { // so was another prompt
			f.store(0, event.TierGPU, tokens(1000, 400), 0, 25)
			f.Index.Apply(0, &event.Event{Kind: event.Cleared}, start-5*ms)
			f.Index.Emptied(0, start-5*ms)
		}},
		{reason.Disconnected, func(f *fleet, _ *Query) { f.Sync.Put(0, view.Sync{State: view.Down, LastEvent: start - 500*ms}) }},
		{reason.Silent, func(f *fleet, _ *Query) {
			f.Sync.Put(0, view.Sync{State: view.Stale, Why: reason.Silent, Connected: true, LastEvent: start - 500*ms})
		}},
		{reason.WrongFraming, func(f *fleet, _ *Query) {
			f.Sync.Put(0, view.Sync{State: view.Stale, Why: reason.WrongFraming, Connected: true})
		}},
		{reason.Asleep, func(f *fleet, _ *Query) {
			f.store(0, event.TierGPU, prompt, 0, 25)
			f.Telemetry.Put(0, &telemetry.Sample{At: start, Asleep: true})
		}},
		{reason.CacheOff, func(f *fleet, _ *Query) {
			f.Telemetry.Put(0, &telemetry.Sample{At: start, CacheOff: true})
		}},
		{reason.PromptShort, func(f *fleet, q *Query) {
			f.store(0, event.TierGPU, prompt, 0, 25)
			q.Prompt.Tokens = prompt[:16]
		}},
		{reason.CutAtImage, func(f *fleet, q *Query) {
			f.store(0, event.TierGPU, prompt, 0, 25)
			q.Prompt.Cut = 7
		}},
		{reason.None, func(f *fleet, _ *Query) { f.store(0, event.TierGPU, prompt, 0, 25) }},
	} {
		name := string(c.want)
		if c.want == reason.Asleep {
			name = "EM-35/asleep"
		}
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 1)
			q := f.query(prompt, start)
			c.do(f, q)
			card := f.decide(q)
			if age := card.Explanation().Pods[0].Age.Cleared; (age != nil) != (c.want == reason.Cleared) || age != nil && *age != 5 {
				t.Errorf("cleared %v ms ago, reason %q", age, card.Rows[0].Reason)
			}
			r := card.Rows[0]
			if r.Reason != c.want || (r.Cached > 0) != (c.want == reason.None) {
				t.Errorf("reason %q, cached %d; want %q", r.Reason, r.Cached, c.want)
			}
		})
	}
}

// A pod whose server errors leave it out is chosen again when a probe is due, for
// one request; among pods that all fail the best is, by score.
func TestFailing(t *testing.T) {
	t.Run("EP-35", func(t *testing.T) {
		f := newFleet(t, 2)
		prompt := tokens(1, 4096)
		f.store(f.pod(0).Members[0], event.TierGPU, prompt, 0, 256)
		fail := func(p *pod.Pod, at int64) {
			for range view.DefaultLimits.Errors {
				r := f.Load.Place(p, view.Work{Rank: -1}, at)
				r.Status(true, at)
				r.End(at)
			}
		}
		at := func(now int64) *Card { return f.decide(f.query(prompt, now)) }
		fail(f.pod(0), start)
		c := at(start + 400*ms)
		if r := &c.Rows[0]; winner(c) != "pod-1" || r.Verdict != Failing || r.Value != 5 || r.Limit != 5 {
			t.Errorf("winner %s, %s %v/%v", winner(c), r.Verdict, r.Value, r.Limit)
		}
		if x := c.Explanation().Pods[1].Filter; x.Name != "failing" || *x.Probe != 0.6 || *x.Why != "next probe in 0.6 s" {
			t.Errorf("%+v, probe %v, why %v", x, *x.Probe, *x.Why)
		}
		c = at(start + 1000*ms)
		if winner(c) != "pod-0" || c.Rows[0].Verdict != Scored {
			t.Fatalf("no probe when it is due: winner %s", winner(c))
		}
		probe := f.Load.Place(f.pod(0), c.Work(f.query(prompt, start)), start+1000*ms)
		if c = at(start + 1001*ms); winner(c) != "pod-1" || *c.Explanation().Pods[1].Filter.Why != "a probe is under way" {
			t.Errorf("a second probe beside the first: winner %s", winner(c))
		}
		fail(f.pod(1), start+1001*ms)
		if c = at(start + 1002*ms); winner(c) != "pod-0" || c.Outcome != Picked || c.Why != reason.AllFailing || len(c.Order(nil)) != 2 {
			t.Errorf("all fail: winner %s, why %q", winner(c), c.Why)
		}
		q := f.query(prompt, start+1002*ms)
		if q.Priority = -1; f.decide(q).Outcome != Picked {
			t.Error("failing pods are no overload: nothing is shed")
		}
		probe.Status(false, start+1100*ms)
		if c = at(start + 1101*ms); winner(c) != "pod-0" || c.Why != reason.None || c.Rows[0].Verdict != Scored {
			t.Errorf("after a good probe: winner %s, why %q", winner(c), c.Why)
		}
	})
}

// TestShortcutsAgreeWithFilters holds the two questions that save asking each filter
// against the filters, on pods and rows that differ in anything these look at.
func TestShortcutsAgreeWithFilters(t *testing.T) {
	bit := func(n, i int) bool { return n>>i&1 == 1 }
	for n := range 1 << 7 {
		p, q := &pod.Pod{Target: "10.0.0.1:8000"}, &Query{Base: model}
		p.Spec.Model = model
		if bit(n, 0) {
			p.Target = ""
		}
		p.Spec.Draining = bit(n, 1)
		if bit(n, 2) {
			q.Subset = &Subset{}
		}
		if bit(n, 3) {
			p.Spec.Model = "other"
		}
		if bit(n, 4) {
			p.Spec.Role = pod.RolePrefill
		}
		if bit(n, 5) {
			q.Adapter, p.Spec.Adapters = "sql", []string{}
		}
		if bit(n, 6) {
			q.Base = ""
		}
		if v := hard(q, p); suits(q, p) && v != Scored {
			t.Errorf("%b: %v leaves out a pod that suits", n, v)
		}
	}
	b := basisFor(DefaultPolicy(), 100)
	for n := range 1 << 7 {
		r := &Row{Pod: &pod.Pod{}, silent: bit(n, 0), fatal: bit(n, 1), asleep: bit(n, 2)}
		r.Load.Circuit.Out = bit(n, 3)
		if bit(n, 4) {
			r.Depth = b.policy.Breaker.Depth
		}
		if bit(n, 5) {
			r.Pod.Spec.MaxContext = 99
		}
		b.exact = bit(n, 6)
		if v, _, _ := b.soft(r); b.unfit(r) != (v != Scored) {
			t.Errorf("%b: unfit %v, verdict %v", n, b.unfit(r), v)
		}
	}
}
