package index

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// rig drives an index in the terms of the acceptance cases: hashes are small
// numbers, blocks 16 tokens, members r1 and r2.
type rig struct {
	*testing.T
	ix   *Index
	size int
	now  int64
	out  Result
}

const r1, r2 = pod.Member(0), pod.Member(1)

func newRig(t *testing.T, o Options) *rig {
	r := &rig{T: t, ix: New(o), size: 16, now: int64(time.Hour)}
	for _, m := range []pod.Member{r1, r2} {
		r.ix.Register(m, Owner{Model: "m", Engine: pod.EngineVLLM})
	}
	return r
}

// tokens are n tokens that depend on the seed.
func tokens(seed uint64, n int) []uint32 {
	r := rand.New(rand.NewPCG(seed, 1))
	t := make([]uint32, n)
	for i := range t {
		t[i] = r.Uint32N(128000)
	}
	return t
}

// hashes are from..to.
func hashes(from, to uint64) (h []uint64) {
	for ; from <= to; from++ {
		h = append(h, from)
	}
	return h
}

const top = ^uint64(0) // no parent

func (r *rig) event(tier event.Tier, parent uint64, h []uint64, toks []uint32) *event.Event {
	return &event.Event{Kind: event.Stored, Tier: tier, Hashes: h, Tokens: toks, BlockSize: r.size,
		Parent: parent, HasParent: parent != top, LoRAID: -1}
}

func (r *rig) apply(m pod.Member, e *event.Event, want Verdict) Outcome {
	r.Helper()
	o := r.ix.Apply(m, e, r.now)
	if o.Verdict != want {
		r.Errorf("verdict %v, want %v", o.Verdict, want)
	}
	return o
}

func (r *rig) store(m pod.Member, tier event.Tier, parent uint64, h []uint64, toks []uint32) {
	r.Helper()
	r.apply(m, r.event(tier, parent, h, toks), Applied)
}

func (r *rig) remove(m pod.Member, tier event.Tier, h ...uint64) (unknown int) {
	r.Helper()
	return r.apply(m, &event.Event{Kind: event.Removed, Tier: tier, Hashes: h}, Applied).Unknown
}

func (r *rig) lookup(p block.Prompt) map[pod.Member]Match {
	if p.Model == "" {
		p.Model = "m"
	}
	r.ix.Lookup(&p, &r.out)
	got := map[pod.Member]Match{}
	for _, x := range r.out.Matches {
		if x.Depth == 0 {
			r.Errorf("member %d is reported with nothing", x.Member)
		}
		got[x.Member] = x
	}
	return got
}

func (r *rig) match(m pod.Member, toks []uint32) Match {
	return r.lookup(block.Prompt{Tokens: toks, Cut: -1})[m]
}

// depth checks how many blocks of toks the member holds.
func (r *rig) depth(m pod.Member, toks []uint32, want int) {
	r.Helper()
	if got := int(r.match(m, toks).Depth); got != want {
		r.Errorf("member %d: depth %d, want %d", m, got, want)
	}
}

func (r *rig) tiers(m pod.Member, toks []uint32, want ...int) {
	r.Helper()
	var w [event.NumTiers]int32
	for t, n := range want {
		w[t] = int32(n)
	}
	if got := r.match(m, toks); got.Fastest != w || got.Announced != w[0]+w[1]+w[2]+w[3] {
		r.Errorf("member %d: %+v, want tiers %v", m, got, w)
	}
}

func (r *rig) stats(m pod.Member) MemberStats {
	s, _ := r.ix.Member(m)
	return s
}

func (r *rig) wait(d time.Duration) {
	r.now += int64(d)
	r.ix.Sweep(r.now)
}
