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

// Snapshot is the fleet at one instant as /v1/state shows it. Unknown numbers
// are null, never 0.
type Snapshot struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"` // "Snapshot"
	At         string     `json:"at"`
	Source     string     `json:"source"`
	Epoch      uint64     `json:"epoch"`
	IntervalMs int64      `json:"interval_ms"` // between scrapes
	Pods       []PodState `json:"pods"`
	Total      int        `json:"total"` // pods that pass the filter
	Truncated  bool       `json:"truncated"`
	Totals     Totals     `json:"totals"`
	Index      IndexState `json:"index"`
	Hits       Hits       `json:"hits"`
}

// Totals are sums over the fleet.
type Totals struct {
	Pods        int    `json:"pods"`
	WithEvents  int    `json:"with_events"`
	InFlight    int    `json:"in_flight"`
	Waiting     int    `json:"waiting"` // before their first byte
	OpenStreams int64  `json:"open_streams"`
	LooseEnds   int    `json:"loose_ends"` // ended streams whose request may still run
	Routed      uint64 `json:"routed"`
	Refused     uint64 `json:"refused"`
}

// IndexState sizes the index.
type IndexState struct {
	Blocks     int    `json:"blocks"`
	Dead       int    `json:"dead"`
	Runs       int    `json:"runs"`
	Bytes      int64  `json:"bytes"` // about
	BlockSizes []int  `json:"block_sizes"`
	Evicted    uint64 `json:"evicted"`
	Expired    uint64 `json:"expired"`
}

// Hits counts prompt tokens since the start.
type Hits struct {
	Queried       uint64 `json:"queried"`
	BestAvailable uint64 `json:"best_available"`
	Selected      uint64 `json:"selected"`
}

// PodState is one pod.
type PodState struct {
	Name      string    `json:"name"`
	Addr      string    `json:"addr"`
	Engine    string    `json:"engine"`
	Role      string    `json:"role"`
	Model     string    `json:"model"`
	Adapters  []string  `json:"adapters"`
	State     string    `json:"state"`            // ok, slow, open, stale, down
	Filter    string    `json:"filter,omitempty"` // that leaves the pod out of every pick for now: "not-answering", "failing"
	Draining  bool      `json:"draining"`
	Ranks     []Rank    `json:"ranks"`
	Telemetry Telemetry `json:"telemetry"`
	Load      PodLoad   `json:"load"`
}

// Rank is one data-parallel rank's event stream and cache.
type Rank struct {
	Rank      int     `json:"rank"`
	Sync      string  `json:"sync"`
	Why       string  `json:"why,omitempty"`
	SinceMs   float64 `json:"since_ms"`
	EventAge  *int64  `json:"last_event_age_ms"`
	LastSeq   uint64  `json:"last_seq"`
	Lost      uint64  `json:"lost"`
	Connected bool    `json:"connected"`
	BlockSize *int    `json:"block_size"`
	GPU       int     `json:"blocks"` // on the GPU
	Host      int     `json:"host_blocks"`
	Disk      int     `json:"disk_blocks"`
	Remote    int     `json:"remote_blocks"`
	Expected  int     `json:"expected_prompts"`
	// Approximate: the model has cache groups whose rule is not known, and its
	// matches are too long at times.
	Approximate bool `json:"approximate,omitempty"`
}

// Telemetry is the last good scrape.
type Telemetry struct {
	State   string   `json:"state"` // fresh, stale, unknown
	AgeMs   *int64   `json:"age_ms"`
	Error   string   `json:"error,omitempty"`
	Waiting *float64 `json:"waiting"`
	Running *float64 `json:"running"`
	KVUsage *float64 `json:"kv_usage"`
}

// PodLoad is our own accounting.
type PodLoad struct {
	InFlight   int     `json:"in_flight"`
	Waiting    int     `json:"waiting"`
	QueueMs    float64 `json:"queue_ms"`
	HeldTokens int64   `json:"held_tokens"`
}

// snapshot builds one; order is a column name, filter a part of a pod's name. now
// is the wall clock's, for display: ages are by the picker's own clock.
func (p *Picker) snapshot(order, filter string, limit int, now time.Time) *Snapshot {
	v, ns := p.fleet.View(), p.now()
	s := &Snapshot{
		APIVersion: APIVersion, Kind: "Snapshot", Source: "live",
		At: now.UTC().Format(time.RFC3339Nano), Epoch: v.Pods.Epoch,
		IntervalMs: p.rules.Load().interval.Milliseconds(),
		Pods:       []PodState{},
	}
	for _, x := range v.Pods.Pods {
		l := v.Load.Load(x, ns)
		s.Totals.Pods++
		s.Totals.InFlight += l.InFlight
		s.Totals.Waiting += l.Waiting
		if hasEvents(x) {
			s.Totals.WithEvents++
		}
		if strings.Contains(x.Spec.Name, filter) {
			s.Pods = append(s.Pods, p.podState(&v, x, ns))
		}
	}
	sortPods(s.Pods, order)
	s.Total = len(s.Pods)
	if len(s.Pods) > limit {
		s.Pods, s.Truncated = s.Pods[:limit], true
	}
	p.fillTotals(s)
	return s
}

// fillTotals adds what other parts count.
func (p *Picker) fillTotals(s *Snapshot) {
	if p.streams != nil {
		s.Totals.OpenStreams, s.Totals.LooseEnds = p.streams()
	}
	s.Totals.Routed, s.Totals.Refused = p.met.routed.Load(), p.met.refused.Load()
	s.Hits = Hits{p.met.queried.Load(), p.met.best.Load(), p.met.selected.Load()}
	x := p.fleet.Index.Stats()
	s.Index = IndexState{x.Blocks, x.Dead, x.Runs, x.Bytes, append([]int{}, x.Sizes...), x.Evicted, x.Expired}
}

func (p *Picker) podState(v *view.View, x *pod.Pod, now int64) PodState {
	st := PodState{
		Name: x.Spec.Name, Addr: x.Target, Engine: x.Spec.Engine.String(), Role: x.Spec.Role.String(),
		Model: x.Spec.Model, Adapters: append([]string{}, x.Spec.Adapters...),
		State: p.stateWord(v, x, now), Draining: x.Draining, Ranks: []Rank{},
		Telemetry: p.telemetryState(v.Telemetry.Get(x.ID), now),
	}
	for i, m := range x.Members {
		st.Ranks = append(st.Ranks, rankState(v, i, m, now))
	}
	if v.Silent(x, v.Telemetry.Get(x.ID), now, p.rules.Load().limits()) {
		st.Filter = pick.NotAnswering.String()
	}
	l := v.Load.Load(x, now)
	if st.Filter == "" && l.Faults.Out {
		st.Filter = pick.Failing.String()
	}
	st.Load = PodLoad{l.InFlight, l.Waiting, ms(int64(l.Queue)), l.Held}
	return st
}

func rankState(v *view.View, i int, m pod.Member, now int64) Rank {
	y := v.Sync.Get(m)
	r := Rank{
		Rank: i, Sync: y.State.String(), Why: y.Why, LastSeq: y.LastSeq, Lost: y.Lost, Connected: y.Connected,
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

func (p *Picker) telemetryState(e telemetry.Entry, now int64) Telemetry {
	t := Telemetry{State: e.State(now, p.rules.Load().limits()).String(), Error: e.Err}
	if s := e.Sample; s != nil {
		t.AgeMs = age(now, s.At)
		t.Waiting, t.Running, t.KVUsage = number(s.Waiting), number(s.Running), number(s.KVUsage)
	}
	return t
}

// stateWord is one word for a pod, the worst that applies.
func (p *Picker) stateWord(v *view.View, x *pod.Pod, now int64) string {
	r := p.rules.Load()
	e := v.Telemetry.Get(x.ID)
	st := e.State(now, r.limits())
	switch {
	case x.Target == "", v.Silent(x, e, now, r.limits()):
		return "down"
	case st != telemetry.Fresh && (x.Spec.Metrics != "" || e.Err != ""):
		return "stale"
	case v.Load.Load(x, now).Waiting >= r.policy.Breaker.Depth, v.Load.Load(x, now).Faults.Out:
		return "open"
	case e.Sample != nil && e.Sample.Device.Known && (e.Sample.Device.Throttled || e.Sample.Device.Critical || e.Sample.Device.Fatal):
		return "slow"
	}
	return "ok"
}

func sortPods(pods []PodState, by string) {
	slices.SortStableFunc(pods, func(a, b PodState) int {
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
