package route

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/inspect/replay/engine"
)

// product is eppctl: its index is fed the events, its board the scrapes, its ledger
// the placements, and pick.Decide chooses. What serve does around that with sockets
// is left out; nothing of the decision is.
type product struct {
	fleet    view.Fleet
	policy   *pick.Policy
	card     pick.Card
	pods     []*pod.Pod // by number in the replay; nil while down
	number   map[pod.ID]int
	down     []bool
	placed   map[int]*view.Placement
	text     text
	events   text
	hashes   []uint64
	size     int
	adapters int // slots of the engines
}

// replayModel names the one model that all pods of a replay serve.
const replayModel = "replay"

func newProduct(f *Fleet, pol *pick.Policy) *product {
	p := &product{
		fleet: view.Fleet{
			Pods: pod.NewTable(), Index: index.New(index.Options{Seed: f.Seed, TTL: -1}),
			Telemetry: &telemetry.Board{}, Sync: &view.SyncBoard{}, Load: view.NewLedger(),
		},
		policy: pol, pods: make([]*pod.Pod, f.Pods), number: map[pod.ID]int{}, down: make([]bool, f.Pods),
		placed: map[int]*view.Placement{}, text: text{size: f.BlockSize}, events: text{size: f.BlockSize},
		size: f.BlockSize, adapters: f.Profile.AdapterSlots,
	}
	for i := range p.pods {
		p.Up(i, 0)
	}
	return p
}

// text makes token ids of block numbers: a block begins with its number, and the
// rest is the same in all. Engines and routers read the same text, and equal blocks
// are equal tokens, as with the trace's own prompts.
type text struct {
	size   int
	tokens []uint32
}

func (t *text) of(blocks []uint32, n int) []uint32 {
	if need := len(blocks) * t.size; len(t.tokens) < need {
		t.tokens = make([]uint32, 2*need) // zeroes, and only first tokens are ever written
	}
	for i, b := range blocks {
		t.tokens[i*t.size] = b + 1
	}
	return t.tokens[:n]
}

// hash stands for the engine's own hash of a block and all before it.
func hash(b uint32) uint64 {
	x := (uint64(b) + 1) * 0x9e3779b97f4a7c15
	x ^= x >> 29
	x *= 0xbf58476d1ce4e5b9
	return x ^ x>>32
}

func (p *product) Pick(r *Request, now int64) int {
	q := pick.Query{
		RequestID: r.ID, Now: now, Model: replayModel, Base: replayModel, Adapter: r.Adapter,
		Prompt:       block.Prompt{Model: replayModel, LoRA: r.Adapter, Tokens: p.text.of(r.Blocks, r.Prompt), Cut: -1},
		PromptTokens: r.Prompt,
	}
	v := p.fleet.View()
	if pick.Decide(&v, &q, p.policy, &p.card) != pick.Picked {
		return -1
	}
	to := p.card.WinnerRow().Pod
	p.placed[r.Index] = p.fleet.Place(to, p.card.Work(&q), now)
	return p.number[to.ID]
}

func (p *product) First(r *Request, now int64) {
	p.placed[r.Index].Status(false, now)
	p.placed[r.Index].FirstByte(now)
}

func (p *product) End(r *Request, failed bool, now int64) {
	if failed {
		p.placed[r.Index].Status(true, now)
	}
	p.placed[r.Index].End(now)
	delete(p.placed, r.Index)
}

func (p *product) Announce(i int, changes []engine.Change, now int64) {
	if p.down[i] {
		return
	}
	m := p.pods[i].Members[0]
	for k := range changes {
		p.apply(m, &changes[k], now)
	}
}

func (p *product) apply(m pod.Member, c *engine.Change, now int64) {
	e := event.Event{Kind: event.Removed, Tier: event.TierGPU, LoRAID: -1}
	if c.Tier == engine.Host {
		e.Tier = event.TierHost
	}
	p.hashes = p.hashes[:0]
	for _, b := range c.Blocks {
		p.hashes = append(p.hashes, hash(b))
	}
	e.Hashes = p.hashes
	if c.Stored {
		e.Kind = event.Stored
		if !c.Moved {
			e.BlockSize, e.Tokens = p.size, p.events.of(c.Blocks, len(c.Blocks)*p.size)
			e.LoRA = c.Adapter
			if !c.Root {
				e.Parent, e.HasParent = hash(c.Parent), true
			}
		}
	}
	p.fleet.Index.Apply(m, &e, now)
}

func (p *product) Scrape(i int, g engine.Gauges, now int64) {
	if p.down[i] {
		return
	}
	known := func(v float64) telemetry.Value { return telemetry.Value{V: v, Known: true, Metric: "replay"} }
	next := &telemetry.Sample{
		Engine: pod.EngineVLLM, At: now, Waiting: known(float64(g.Waiting)), Running: known(float64(g.Running)),
		KVUsage: known(g.Usage), KVBlockSize: known(float64(p.size)), KVBlocks: known(float64(g.Blocks)),
		LoRA: telemetry.LoRA{Known: true, Max: p.adapters, Running: g.ActiveAdapters, Waiting: g.QueuedAdapters},
	}
	next.Carry(p.fleet.Telemetry.Get(p.pods[i].ID).Sample, int64(5*time.Second))
	p.fleet.Telemetry.Put(p.pods[i].ID, next)
}

func (p *product) Stream(i int, s StreamState, now int64) {
	if p.down[i] {
		return
	}
	x := view.Sync{State: view.Live, Since: now, LastEvent: now, Connected: true}
	switch s {
	case Gap:
		x.State, x.Why, x.Missing = view.Gap, reason.EventsLost, 1
	case Partial: // what was lost cannot be told from what is held
		x.State, x.Why = view.Partial, reason.HistoryLost
		for _, m := range p.pods[i].Members {
			p.fleet.Index.Purge(m)
		}
	}
	p.fleet.Sync.Put(p.pods[i].Members[0], x)
}

func (p *product) Down(i int, _ int64) {
	if p.down[i] {
		return
	}
	x := p.pods[i]
	p.down[i] = true
	p.fleet.Pods.Remove(x.ID)
	for _, m := range x.Members {
		p.fleet.Index.Purge(m)
		p.fleet.Sync.Drop(m)
	}
	p.fleet.Telemetry.Drop(x.ID)
	delete(p.number, x.ID)
	p.fleet.Pods.Free(x)
}

func (p *product) Up(i int, now int64) {
	addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i / 250), byte(i%250 + 1)}), 8000)
	spec := pod.Spec{Name: fmt.Sprintf("pod-%d", i), Model: replayModel, Engine: pod.EngineVLLM, BlockSize: p.size}
	x, err := p.fleet.Pods.Add(spec, addr)
	if err != nil {
		panic(err) // the number of pods is checked before
	}
	p.pods[i], p.down[i], p.number[x.ID] = x, false, i
	for _, m := range x.Members {
		p.fleet.Index.Register(m, index.Owner{Model: replayModel, Engine: pod.EngineVLLM, BlockSize: p.size})
	}
	p.Stream(i, Live, now)
}

func (p *product) Second(now int64) { p.fleet.Index.Sweep(now) }
