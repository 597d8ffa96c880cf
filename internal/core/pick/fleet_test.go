package pick

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

const (
	ms        = int64(1e6)
	start     = 1_000_000 * ms // now of a test that does not care
	model     = "llama"
	blockSize = 16
)

// fleet is the real parts around a decision: table, index, ledger, boards.
type fleet struct {
	view.Fleet
	tb     testing.TB
	policy *Policy
	ids    int
}

// newFleet has n idle pods, synced and never scraped.
func newFleet(tb testing.TB, n int) *fleet {
	f := &fleet{tb: tb, policy: DefaultPolicy(), Fleet: view.Fleet{
		Pods: pod.NewTable(), Index: index.New(index.Options{Seed: 1}),
		Telemetry: &telemetry.Board{}, Sync: &view.SyncBoard{}, Load: view.NewLedger(),
	}}
	for i := range n {
		f.add(pod.Spec{Name: fmt.Sprintf("pod-%d", i), Model: model, Engine: pod.EngineVLLM},
			fmt.Sprintf("10.0.%d.%d:8000", i/250, i%250+1))
	}
	return f
}

func (f *fleet) add(spec pod.Spec, addr string) *pod.Pod {
	f.tb.Helper()
	var a netip.AddrPort
	if addr != "" {
		a = netip.MustParseAddrPort(addr)
	}
	p, err := f.Pods.Add(spec, a)
	if err != nil {
		f.tb.Fatal(err)
	}
	for _, m := range p.Members {
		f.Index.Register(m, index.Owner{Model: spec.Model, Engine: spec.Engine, BlockSize: blockSize})
		f.Sync.Put(m, view.Sync{State: view.Live, Connected: true, LastEvent: start - 20*ms})
	}
	return p
}

func (f *fleet) pod(i int) *pod.Pod { return f.Pods.Snapshot().Pods[i] }

// tokens is a prompt of n tokens that shares no block with one of another seed.
func tokens(seed, n int) []uint32 {
	t := make([]uint32, n)
	for i := range t {
		t[i] = uint32(seed*7919+i*31) % 150_000
	}
	return t
}

// store announces full blocks of a prompt, from block `from` on, as an engine
// that has just computed or moved them.
func (f *fleet) store(m pod.Member, tier event.Tier, prompt []uint32, from, to int) {
	f.tb.Helper()
	e := event.Event{
		Kind: event.Stored, Tier: tier, BlockSize: blockSize, LoRAID: -1,
		Tokens: prompt[from*blockSize : to*blockSize],
	}
	for i := from; i < to; i++ {
		e.Hashes = append(e.Hashes, engineHash(prompt, i))
	}
	if from > 0 {
		e.Parent, e.HasParent = engineHash(prompt, from-1), true
	}
	f.Index.Apply(m, &e, start)
}

// engineHash stands for the engine's own chained hash of a block.
func engineHash(prompt []uint32, i int) uint64 {
	h := uint64(14695981039346656037)
	for _, x := range prompt[:(i+1)*blockSize] {
		h = (h ^ uint64(x)) * 1099511628211
	}
	return h
}

func (f *fleet) query(prompt []uint32, now int64) *Query {
	f.ids++
	return &Query{
		RequestID: fmt.Sprintf("req-%04d", f.ids), Now: now, Model: model, Base: model,
		Prompt: block.Prompt{Model: model, Tokens: prompt, Cut: -1}, PromptTokens: len(prompt),
	}
}

func (f *fleet) decide(q *Query) *Card {
	f.tb.Helper()
	if err := f.policy.Validate(); err != nil {
		f.tb.Fatal(err)
	}
	v, c := f.View(), &Card{}
	Decide(&v, q, f.policy, c)
	f.supposeNothing(c)
	return c
}

// supposeNothing: a decision in which nothing is supposed is the same again.
func (f *fleet) supposeNothing(c *Card) {
	f.tb.Helper()
	again := Card{Rows: make([]Row, 3)} // used before
	if err := Suppose(c, &WhatIf{}, &again); err != nil {
		f.tb.Fatal(err)
	}
	if was, is := wire(f.tb, c), wire(f.tb, &again); was != is {
		f.tb.Errorf("decided:\n%s\nsupposing nothing:\n%s", was, is)
	}
}

func wire(tb testing.TB, c *Card) string {
	tb.Helper()
	b, err := json.MarshalIndent(c.Explanation(), "", " ")
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

// place decides and places, as serve does.
func (f *fleet) place(q *Query) (*Card, *view.Placement) {
	f.tb.Helper()
	c := f.decide(q)
	if c.Winner < 0 {
		f.tb.Fatalf("no pod for %s:\n%s", q.RequestID, c)
	}
	return c, f.Fleet.Place(c.WinnerRow().Pod, c.Work(q), q.Now)
}

// fill puts n requests of unknown prompt before their first token on a pod.
func (f *fleet) fill(p *pod.Pod, n int, seconds float64) (all []*view.Placement) {
	for range n {
		all = append(all, f.Fleet.Place(p, view.Work{Prefill: duration(seconds), Rank: -1}, start))
	}
	return all
}

// prove lets a pod answer as many requests as end its slow start, a second ago.
func (f *fleet) prove(p *pod.Pod) {
	for range f.policy.Breaker.Depth {
		r := f.Fleet.Place(p, view.Work{Rank: -1}, start-1000*ms)
		r.FirstByte(start - 1000*ms)
		r.End(start - 1000*ms)
	}
}

func known(v float64) telemetry.Value { return telemetry.Value{V: v, Known: true, Metric: "test"} }

func winner(c *Card) string {
	if r := c.WinnerRow(); r != nil {
		return r.Pod.Spec.Name
	}
	return "none"
}
