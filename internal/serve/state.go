package serve

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

// stateQuery says what a snapshot shows.
type stateQuery struct {
	sort   string // a column name
	filter string // a part of a pod's name
	limit  int    // of pods
	picks  int    // recent decisions
	// detail names the pod whose page is shown in full; nil = all of them. A page is
	// most of what a pod has to tell, and nobody reads those of 256 pods every second.
	detail *string
}

func (q *stateQuery) full(pod string) bool { return q.detail == nil || *q.detail == pod }

// snapshot builds one. now is the wall clock's, for display: ages are by the
// picker's own clock.
func (p *Picker) snapshot(q stateQuery, now time.Time) *view.Snapshot {
	v, ns := p.fleet.View(), p.now()
	s := &view.Snapshot{
		APIVersion: APIVersion, Kind: "Snapshot", Source: cmp.Or(p.source, "live"), Run: p.run,
		At: now.UTC().Format(time.RFC3339Nano), Epoch: v.Pods.Epoch,
		IntervalMs: p.rules.Load().interval.Milliseconds(),
	}
	var shown []*pod.Pod
	for _, x := range v.Pods.Pods {
		l := v.Load.Load(x, ns)
		s.Totals.Pods++
		s.Totals.InFlight += l.InFlight
		s.Totals.Waiting += l.Waiting
		if hasEvents(x) {
			s.Totals.WithEvents++
		}
		if strings.Contains(x.Spec.Name, q.filter) {
			shown = append(shown, x)
		}
	}
	events := p.eventCounts()
	s.Pods = make([]view.PodState, len(shown))
	for i, x := range shown {
		s.Pods[i] = p.podState(&v, x, ns, q.full(x.Spec.Name))
		for k, m := range x.Members {
			s.Pods[i].Ranks[k].Events = events[m]
		}
	}
	sortPods(s.Pods, q.sort)
	s.Total = len(s.Pods)
	if len(s.Pods) > q.limit {
		s.Pods, s.Truncated = s.Pods[:q.limit], true
	}
	if q.picks > 0 {
		s.Picks, _ = p.ring.recent("", q.picks)
	}
	p.fillTotals(s)
	return s
}

// fillTotals adds what other parts count.
func (p *Picker) fillTotals(s *view.Snapshot) {
	if p.streams != nil {
		s.Totals.OpenStreams, s.Totals.LooseEnds = p.streams()
	}
	if p.tokenizers != nil {
		s.Tokenizers = p.tokenizers()
	}
	m := p.met
	s.Totals.Routed, s.Totals.Refused = m.routed.Load(), m.refused.Load()
	s.Hits = view.Hits{
		Queried: m.queried.Load(), BestAvailable: m.best.Load(), Selected: m.selected.Load(),
		EngineQueried: m.engineQueried.Load(), EngineCached: m.engineCached.Load(),
	}
	x := p.fleet.Index.Stats()
	s.Index = view.IndexState{
		Blocks: x.Blocks, MaxBlocks: x.MaxBlocks, Dead: x.Dead, Runs: x.Runs, Bytes: x.Bytes,
		BlockSizes: append([]int{}, x.Sizes...), Evicted: x.Evicted, Expired: x.Expired,
	}
	if x.MaxBytes > 0 {
		s.Index.MaxBytes = &x.MaxBytes
	}
}

// eventCounts are the feed's counters by member; none without a feed.
func (p *Picker) eventCounts() map[pod.Member]*view.RankEvents {
	if p.events == nil {
		return nil
	}
	list := p.events()
	by := make(map[pod.Member]*view.RankEvents, len(list))
	for i := range list {
		c := &list[i]
		by[c.Member] = &view.RankEvents{
			Batches: c.Batches, Bytes: c.Bytes, Stored: c.Stored, Removed: c.Removed, Cleared: c.Cleared,
			Undecodable: c.Undecodable + sum(c.WrongShape), Skipped: sum(c.Skips), Dropped: c.QueueDrops,
			Missed: c.Missed, Purges: sum(c.Purges), LagMs: ms(int64(c.Lag)),
		}
	}
	return by
}

func sum(words map[string]uint64) (n uint64) {
	for _, x := range words {
		n += x
	}
	return n
}

func (p *Picker) podState(v *view.View, x *pod.Pod, now int64, full bool) view.PodState {
	st := view.PodState{
		Name: x.Spec.Name, Addr: x.Target, Epoch: x.Epoch, Engine: x.Spec.Engine.String(), Role: x.Spec.Role.String(),
		Model: x.Spec.Model, Adapters: append([]string{}, x.Spec.Adapters...),
		State: p.stateWord(v, x, now), Draining: x.Spec.Draining, Ranks: make([]view.Rank, len(x.Members)),
		Telemetry: p.telemetryState(v.Telemetry.Get(x.ID), now, full),
		Served:    p.tallies.of(x).read(),
	}
	loads := v.Load.Ranks(x, now, make([]view.RankLoad, 0, len(x.Members)))
	for i, m := range x.Members {
		st.Ranks[i] = rankState(v, i, m, now)
		st.Ranks[i].Load = loads[i]
	}
	if v.Silent(x, v.Telemetry.At(x.ID), now, p.rules.Load().limits()) {
		st.Filter = pick.NotAnswering.String()
	}
	l := v.Load.Load(x, now)
	if st.Filter == "" && l.Circuit.Out {
		st.Filter = pick.Failing.String()
	}
	st.Load = view.PodLoad{InFlight: l.InFlight, Waiting: l.Waiting, QueueMs: ms(int64(l.Queue)), HeldTokens: l.Held}
	st.Breaker = breakState(&l, p.rules.Load().policy.Breaker.Depth)
	return st
}

func breakState(l *view.Load, limit int) view.PodBreak {
	c := &l.Circuit
	b := view.PodBreak{
		State: c.State.String(), Waiting: l.Waiting, Limit: limit,
		Errors: c.Errors, Lost: c.Lost, Probes: c.Probing,
	}
	switch {
	case c.Out:
		in := ms(int64(c.ProbeIn))
		b.Open, b.Why, b.ProbeInMs = true, "errors", &in
		if c.Lost > c.Errors {
			b.Why = "unanswered"
		}
	case l.Waiting >= limit:
		b.Open, b.Why = true, "queue"
	}
	return b
}

func rankState(v *view.View, i int, m pod.Member, now int64) view.Rank {
	y := v.Sync.Get(m)
	r := view.Rank{
		Rank: i, Sync: y.State.String(), Missing: y.Missing, Why: string(y.Why), Detail: y.Detail, LastSeq: y.LastSeq, Lost: y.Lost, Connected: y.Connected,
	}
	if st, ok := v.Index.Member(m); ok {
		r.GPU, r.Host, r.Disk, r.Remote = st.Blocks[event.TierGPU], st.Blocks[event.TierHost], st.Blocks[event.TierDisk], st.Blocks[event.TierRemote]
		r.Expected, r.Approximate = st.Expectations, st.Approximate
	}
	if y.Since > 0 {
		r.SinceMs = ms(now - y.Since)
	}
	if y.LastEvent > 0 {
		r.EventAge = age(now, y.LastEvent)
	}
	if n := v.Index.BlockSize(m); n > 0 {
		r.BlockSize = &n
	}
	return r
}

func (p *Picker) telemetryState(e telemetry.Entry, now int64, full bool) view.Scraped {
	t := view.Scraped{State: e.State(now, p.rules.Load().limits()).String(), Error: e.Err}
	s := e.Sample
	if s == nil {
		return t
	}
	t.AgeMs = age(now, s.At)
	t.Waiting, t.Running, t.KVUsage = number(s.Waiting), number(s.Running), number(s.KVUsage)
	t.CacheQueried, t.CacheHit = number(s.CacheQueried), number(s.CacheHit)
	if d := &s.Device; d.Known {
		t.Device = &view.Device{AgeMs: age(now, d.At), Throttled: d.Throttled, Critical: d.Critical, Fatal: d.Fatal, Why: d.Why, Missing: d.Missing}
	}
	if !full {
		return t
	}
	for _, sig := range s.Signals() {
		out := view.Signal{Name: sig.Name, Value: number(sig.Value), Metric: sig.Value.Metric}
		if sig.Value.Known {
			out.AgeMs = age(now, sig.At)
			out.Estimate = sig.Name == "kv_usage" && s.KVEstimate
		}
		t.Signals = append(t.Signals, out)
	}
	if a := &s.LoRA; a.Known {
		t.LoRA = &view.LoRA{Max: a.Max, Running: append([]string{}, a.Running...), Waiting: append([]string{}, a.Waiting...)}
	}
	return t
}

// stateWord is one word for a pod, the worst that applies.
func (p *Picker) stateWord(v *view.View, x *pod.Pod, now int64) string {
	r := p.rules.Load()
	e := v.Telemetry.Get(x.ID)
	st := e.State(now, r.limits())
	switch {
	case x.Target == "", v.Silent(x, &e, now, r.limits()):
		return "down"
	case st != telemetry.Fresh && (x.Spec.Metrics != "" || e.Err != ""):
		return "stale"
	case p.broken(v, x, now):
		return "open"
	case e.Sample != nil && e.Sample.Device.Known && (e.Sample.Device.Throttled || e.Sample.Device.Critical || e.Sample.Device.Fatal):
		return "slow"
	}
	return "ok"
}

// broken reports that a breaker keeps the pod out of picks.
func (p *Picker) broken(v *view.View, x *pod.Pod, now int64) bool {
	l := v.Load.Load(x, now)
	return breakState(&l, p.rules.Load().policy.Breaker.Depth).Open
}

func sortPods(pods []view.PodState, by string) {
	slices.SortStableFunc(pods, func(a, b view.PodState) int {
		switch by {
		case "in_flight":
			return cmp.Compare(b.Load.InFlight, a.Load.InFlight)
		case "queue":
			return cmp.Compare(b.Load.QueueMs, a.Load.QueueMs)
		case "state":
			return cmp.Compare(a.State, b.State)
		}
		return cmp.Compare(a.Name, b.Name)
	})
}

func number(v telemetry.Value) *float64 {
	if !v.Known || math.IsNaN(v.V) || math.IsInf(v.V, 0) {
		return nil
	}
	return &v.V
}

func age(now, then int64) *int64 {
	a := max(0, now-then) / int64(time.Millisecond)
	return &a
}

func ms(ns int64) float64 { return float64(ns) / 1e6 }
