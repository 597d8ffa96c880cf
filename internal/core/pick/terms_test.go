package pick

import (
	"math"
	"math/rand"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

// given is what a pod looks like in a scorecard case; tokens by tier.
type given struct {
	gpu, host, disk, remote int
	queue                   float64
	depth, inFlight         int
	usage                   float64
	slow                    float64 // 0 = 1
	severe                  float64
	adapter                 AdapterState

	poolSize, poolAdds, poolShare float64
}

// row is the row that observing such a pod would give.
func (g given) row(b *basis) *Row {
	r := &Row{
		Sync: &noSync, Device: &noDevice, Pod: &pod.Pod{},
		Cached: g.gpu + g.host + g.disk + g.remote,
		Queue:  g.queue, Depth: g.depth, Load: view.Load{InFlight: g.inFlight},
		Usage: g.usage, Slow: max(1, g.slow), Severe: g.severe, Trust: 1, Adapter: g.adapter,
		PoolSize: g.poolSize, PoolAdds: g.poolAdds, PoolShare: g.poolShare,
		Fetched: [event.NumTiers]int{event.TierGPU: g.gpu, event.TierHost: g.host, event.TierDisk: g.disk, event.TierRemote: g.remote},
	}
	r.Uncached = b.prompt - r.Cached
	r.Prefill = b.computed(r.Cached)
	b.score(r)
	return r
}

func fixed(t *testing.T) *Policy {
	t.Helper()
	p, err := Preset("fixed")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// basisFor is the basis of a prompt of this length.
func basisFor(p *Policy, prompt int) *basis {
	q := &Query{PromptTokens: prompt}
	b := newBasis(&view.View{Load: view.NewLedger()}, q, p)
	return &b
}

func near(a, b, eps float64) bool { return math.Abs(a-b) <= eps }

// expect names the terms that are not zero.
type expect map[int]float64

func checkTerms(t *testing.T, name string, r *Row, want expect, total float64) {
	t.Helper()
	for i, got := range r.Terms {
		if !near(got, want[i], 1e-4) {
			t.Errorf("%s: %s = %.6f, want %.4f", name, terms[i].name, got, want[i])
		}
	}
	if !near(r.Total, total, 1e-4) {
		t.Errorf("%s: total = %.6f, want %.4f", name, r.Total, total)
	}
}

func TestScorecards(t *testing.T) {
	type pod struct {
		name  string
		given given
		want  expect
		total float64
	}
	const kv, queue, brk, conc, util, lora, hw, tier = TermKV, TermQueue, TermBreaker, TermConcurrency, TermUtilisation, TermLoRA, TermHardware, TermTier
	for _, c := range []struct {
		id     string
		prompt int
		pods   []pod
		winner string
	}{
		{"SC-01", 4096, []pod{
			{"A", given{gpu: 3392, queue: 0.25, depth: 3, inFlight: 11, usage: 0.38}, expect{kv: 0.848, queue: -0.25, conc: -0.22, util: -0.019}, 0.3590},
			{"B", given{gpu: 1600, inFlight: 6, usage: 0.19}, expect{kv: 0.4, conc: -0.12, util: -0.0095}, 0.2705},
			{"C", given{usage: 0.07}, expect{util: -0.0035}, -0.0035},
		}, "A"},
		{"SC-02", 4096, []pod{
			{"A", given{gpu: 4080, queue: 1.2, depth: 6, inFlight: 30, usage: 0.9}, expect{kv: 1.02, queue: -1.2, conc: -0.6, util: -0.045}, -0.825},
			{"B", given{inFlight: 2, usage: 0.1}, expect{conc: -0.04, util: -0.005}, -0.045},
		}, "B"},
		{"SC-03", 4096, []pod{
			{"A", given{gpu: 4080, queue: 0.6, depth: 4, inFlight: 12, usage: 0.5}, expect{kv: 1.02, queue: -0.6, conc: -0.24, util: -0.025}, 0.155},
			{"B", given{inFlight: 2, usage: 0.1}, expect{conc: -0.04, util: -0.005}, -0.045},
		}, "A"},
		{"SC-04", 4096, []pod{
			{"A", given{gpu: 4080, queue: 0.1, depth: 31, inFlight: 31, usage: 0.5}, expect{kv: 1.02, queue: -0.1, brk: -2, conc: -0.62, util: -0.025}, -1.725},
			{"B", given{queue: 0.1, depth: 2, inFlight: 4, usage: 0.5}, expect{queue: -0.1, conc: -0.08, util: -0.025}, -0.205},
		}, "B"},
		{"SC-05", 4096, []pod{
			{"gpu", given{gpu: 3200}, expect{kv: 0.8}, 0.8},
			{"host", given{host: 3200}, expect{kv: 0.8, tier: -0.0338}, 0.7662},
			{"network", given{remote: 3200}, expect{kv: 0.8, tier: -0.0859}, 0.7141},
			{"nvme", given{disk: 3200}, expect{kv: 0.8, tier: -0.1688}, 0.6312},
			{"none", given{}, nil, 0},
			{"half", given{gpu: 1600, disk: 1600}, expect{kv: 0.8, tier: -0.0849}, 0.7151},
		}, "gpu"},
		{"SC-06", 4096, []pod{
			{"A", given{gpu: 3200, queue: 0.2, slow: 2}, expect{kv: 0.8, queue: -0.2, hw: -0.424}, 0.176},
			{"B", given{gpu: 1600, queue: 0.2}, expect{kv: 0.4, queue: -0.2}, 0.2},
		}, "B"},
		{"SC-07", 8192, []pod{
			{"A", given{gpu: 16, inFlight: 1}, expect{kv: 0.004, conc: -0.02}, -0.016},
			{"B", given{}, nil, 0},
		}, "B"},
		{"SC-08", 1024, []pod{
			{"active", given{inFlight: 5, adapter: AdapterResident}, expect{conc: -0.1}, -0.1},
			{"free", given{adapter: AdapterLoadable}, expect{lora: -0.5}, -0.5},
			{"saturated", given{adapter: AdapterSaturated}, expect{lora: -2.5}, -2.5},
			{"unknown", given{adapter: AdapterUnknown}, expect{lora: -0.5}, -0.5},
		}, "active"},
		{"critical", 4096, []pod{
			{"A", given{gpu: 4080, slow: 2, severe: 30}, expect{kv: 1.02, hw: -30.004}, -28.984},
			{"B", given{}, nil, 0},
		}, "B"},
	} {
		t.Run(c.id, func(t *testing.T) {
			b := basisFor(fixed(t), c.prompt)
			best, winner := math.Inf(-1), ""
			for _, p := range c.pods {
				r := p.given.row(b)
				checkTerms(t, p.name, r, p.want, p.total)
				if r.Total > best {
					best, winner = r.Total, p.name
				}
			}
			if winner != c.winner {
				t.Errorf("winner %s, want %s", winner, c.winner)
			}
		})
	}
}

func TestBreakerCurve(t *testing.T) {
	t.Run("SC-09", func(t *testing.T) {
		b := basisFor(fixed(t), 4096)
		for depth, want := range map[int]float64{
			0: 0, 1: 0, 16: -0.0001, 20: -0.0010, 24: -0.0156, 28: -0.25, 30: -1, 32: -4, 40: -4, 1 << 30: -4,
		} {
			if got := (given{depth: depth}).row(b).Terms[TermBreaker]; !near(got, want, 1e-4) {
				t.Errorf("depth %d: %.6f, want %.4f", depth, got, want)
			}
		}
	})
}

// cost is what the simulations minimised, written down independently of the
// terms: the score must be its mirror image for every pod.
func cost(b *basis, g given) float64 {
	p := b.policy
	L := float64(b.prompt)
	H := float64(g.gpu + g.host + g.disk + g.remote)
	T := func(u, c float64) float64 {
		return b.cal.Constant + u/b.cal.TokensPerSecond + b.cal.Quadratic*u*(c+u/2)
	}
	own := T(L-H, H)
	k := max(1, g.slow)
	d := math.Min(float64(g.depth), float64(p.Breaker.Depth))
	sum := k*g.queue + p.Alpha*k*own
	sum += p.Breaker.Weight * (math.Pow(p.Breaker.Ratio, d) - 1) / (math.Pow(p.Breaker.Ratio, float64(p.Breaker.Depth)) - 1)
	sum += p.Delay * k * float64(g.depth) * own
	sum += p.Beta*float64(g.inFlight) + p.Upsilon*g.usage + g.severe
	switch g.adapter {
	case AdapterLoadable, AdapterUnknown:
		sum += p.LoRA.Load
	case AdapterSaturated:
		sum += p.LoRA.Load + p.LoRA.SlotWait
	}
	if g.poolSize > 0 {
		sum += p.Pool * g.poolAdds / g.poolSize * b.means.Residence.Seconds() * g.poolShare / (1 - g.poolShare)
	}
	move := 0.0
	for _, x := range []struct {
		tokens int
		link   Link
	}{{g.host, p.Tiers.Host}, {g.disk, p.Tiers.Disk}, {g.remote, p.Tiers.Remote}} {
		if x.tokens > 0 {
			move += x.link.Latency + float64(x.tokens)*b.cal.BytesPerToken/x.link.Bandwidth
		}
	}
	slow := float64(g.host + g.disk + g.remote)
	return sum + math.Min(move, p.Alpha*(T(L-H+slow, H-slow)-own))
}

func TestScoreMirrorsCost(t *testing.T) {
	t.Run("SC-10", func(t *testing.T) {
		rnd := rand.New(rand.NewSource(1))
		for range 10_000 {
			p := fixed(t)
			p.Alpha, p.Constant, p.Quadratic = rnd.Float64()*8, rnd.Float64(), rnd.Float64()*1e-8
			p.TokensPerSecond, p.Pool, p.Delay = 1000+rnd.Float64()*40_000, rnd.Float64()*3, rnd.Float64()*2
			b := basisFor(p, 1+rnd.Intn(100_000))
			b.means.Residence = time.Duration(rnd.Intn(30e9))
			b.settle()
			bestScore, bestCost := -1, -1
			var scores, costs [8]float64
			for i := range scores {
				g := someGiven(rnd, b.prompt)
				scores[i], costs[i] = g.row(b).Total, cost(b, g)
				if !near(scores[i]+costs[i], p.Alpha*b.cold, 1e-9*max(1, costs[i])) {
					t.Fatalf("score %v + cost %v != alpha T0 %v for %+v", scores[i], costs[i], p.Alpha*b.cold, g)
				}
				if bestScore < 0 || scores[i] > scores[bestScore] {
					bestScore = i
				}
				if bestCost < 0 || costs[i] < costs[bestCost] {
					bestCost = i
				}
			}
			if bestScore != bestCost && !near(scores[bestScore], scores[bestCost], 1e-9) {
				t.Fatalf("score picks %d, cost picks %d", bestScore, bestCost)
			}
		}
	})
}

func someGiven(rnd *rand.Rand, prompt int) given {
	left := prompt - 1
	part := func() int {
		n := rnd.Intn(left + 1)
		left -= n
		if rnd.Intn(2) == 0 {
			left += n
			return 0
		}
		return n
	}
	return given{
		gpu: part(), host: part(), disk: part(), remote: part(),
		queue: rnd.Float64() * 5, depth: rnd.Intn(40), inFlight: rnd.Intn(60), usage: rnd.Float64(),
		slow: 1 + 3*rnd.Float64(), severe: float64(rnd.Intn(2)) * 30, adapter: AdapterState(rnd.Intn(5)),
		poolSize: float64(rnd.Intn(2)) * (1000 + rnd.Float64()*1e6), poolAdds: rnd.Float64() * 1e5, poolShare: rnd.Float64() * 0.9,
	}
}

func TestWholePromptHeld(t *testing.T) {
	t.Run("SC-11", func(t *testing.T) {
		for _, c := range []struct{ size, depth, prompt, want int }{
			{1, 4096, 4096, 4095}, // one token is left to compute
			{16, 256, 4096, 4080}, // its whole block is: vLLM 0.32.0 and SGLang 0.5.23
			{16, 256, 4097, 4096}, // unless the prompt goes on
			{16, 300, 4096, 4080}, // deeper than asked for: never more than the prompt
			{16, 1, 16, 0},        // one block in all
			{528, 3, 1584, 1056},  // hybrid model
			{16, 0, 4096, 0},      //
			{0, 0, 4096, 0},       // nothing matched
			{16, 5, 0, 0},         // empty prompt
			{1 << 20, 1, 1 << 20, 0},
		} {
			m := Match{Size: int32(c.size), Depth: int32(c.depth)}
			if got := m.reusable(c.prompt); got != c.want {
				t.Errorf("%d blocks of %d in a prompt of %d: %d tokens, want %d", c.depth, c.size, c.prompt, got, c.want)
			}
		}
	})
}

func TestSlowTierIsCapped(t *testing.T) {
	t.Run("SC-12", func(t *testing.T) {
		p := fixed(t)
		p.BytesPerToken = 320 << 10 // 70B
		p.Tiers.Remote = Link{Bandwidth: 1e9, Latency: 0.020}
		b := basisFor(p, 4096)
		r, none := given{remote: 3200}.row(b), given{}.row(b)
		if transfer := b.transfer(r); transfer < p.Alpha*(b.cold-r.Prefill) {
			t.Fatalf("the case needs a transfer dearer than the compute, not %v s", transfer)
		}
		if !near(r.Total, none.Total, 1e-12) {
			t.Errorf("total %v, without a copy %v", r.Total, none.Total)
		}
		r.Trust = p.StaleTrust
		b.score(r)
		if r.Total < none.Total-1e-12 {
			t.Errorf("a doubted copy stands below none: %v < %v", r.Total, none.Total)
		}
	})
}

// Each way for a term to be 0 has its own word: what costs nothing, what nobody knows,
// and what the configuration leaves out.
func TestWhyATermIsZero(t *testing.T) {
	told := &telemetry.Device{Known: true, Envelope: telemetry.Value{V: 0.3, Known: true}}
	weighed := func(p *Policy) { p.Energy.Weight = 1 }
	doubted := func(r *Row) { r.Trust = 0 }
	for _, tc := range []struct {
		name   string
		term   int
		given  given
		policy func(*Policy)
		row    func(*Row)
		want   reason.Code
	}{
		{"a hit", TermKV, given{gpu: 3200}, nil, nil, reason.None},
		{"no hit", TermKV, given{}, nil, func(r *Row) { r.Reason = reason.NotCached }, reason.NotCached},
		{"a hit in doubt", TermKV, given{gpu: 3200}, nil, doubted, reason.NotTrusted},
		{"a hit without weight", TermKV, given{gpu: 3200}, func(p *Policy) { p.Alpha = 0 }, nil, reason.WeightZero},
		{"no queue", TermQueue, given{}, nil, nil, reason.Idle},
		{"a queue that is due", TermQueue, given{depth: 3}, nil, nil, reason.Overdue},
		{"no pool", TermPool, given{}, nil, nil, reason.PoolUnknown},
		{"a pool that nothing has left", TermPool, given{poolSize: 1 << 16, poolAdds: 1024, poolShare: 0.5}, nil, nil, reason.NoResidence},
		{"no adapter", TermLoRA, given{}, nil, nil, reason.AdapterNone},
		{"a loaded adapter", TermLoRA, given{adapter: AdapterResident}, nil, nil, reason.AdapterResident},
		{"loading for nothing", TermLoRA, given{adapter: AdapterLoadable}, func(p *Policy) { p.LoRA.Load = 0 }, nil, reason.WeightZero},
		{"a device nobody tells of", TermHardware, given{}, nil, nil, reason.HardwareUnknown},
		{"a device that is well", TermHardware, given{}, nil, func(r *Row) { r.Device = told }, reason.HardwareNormal},
		{"watts nobody tells of", TermEnergy, given{}, weighed, nil, reason.HardwareUnknown},
		{"watts to spare", TermEnergy, given{}, weighed, func(r *Row) { r.Device = told }, reason.BelowLimit},
		{"blocks on the GPU", TermTier, given{gpu: 3200}, nil, nil, reason.OnGPU},
		{"blocks on the GPU without weight", TermTier, given{gpu: 3200}, func(p *Policy) { p.Alpha = 0 }, nil, reason.OnGPU},
		{"blocks on the host", TermTier, given{host: 3200}, nil, nil, reason.None},
		{"blocks on the host without weight", TermTier, given{host: 3200}, func(p *Policy) { p.Alpha = 0 }, nil, reason.WeightZero},
		{"blocks on the host in doubt", TermTier, given{host: 3200}, nil, doubted, reason.NotTrusted},
	} {
		p := DefaultPolicy()
		if tc.policy != nil {
			tc.policy(p)
		}
		b := basisFor(p, 4096)
		r := tc.given.row(b)
		if tc.row != nil {
			tc.row(r)
		}
		b.score(r)
		if got := b.zero(r, tc.term); got != tc.want {
			t.Errorf("%s: %q, want %q, at %v s", tc.name, got, tc.want, r.Terms[tc.term])
		}
	}
}

// φ = 0.75, R = 8 s, 1,024 of 65,536 tokens added: 8/64 s at three times the
// price.
func TestPoolTerm(t *testing.T) {
	b := basisFor(DefaultPolicy(), 4096)
	b.means.Residence = 8e9
	b.settle()
	r := &Row{Slow: 1, Trust: 1, PoolSize: 65_536, PoolAdds: 1024, PoolShare: 0.75}
	if got := poolSeconds(b, r); !near(got, -0.375, 1e-12) {
		t.Errorf("pool term %v, want -0.375", got)
	}
	r.Load.Held = 1 << 40
	b.fillPool(r)
	if r.PoolShare != 0.9 {
		t.Errorf("share %v is not capped", r.PoolShare)
	}
	r.PoolSize = 0
	if got := poolSeconds(b, r); got != 0 {
		t.Errorf("a pool of unknown size costs %v", got)
	}
	if got := poolSeconds(basisFor(fixed(t), 4096), &Row{PoolSize: 1, PoolAdds: 1, PoolShare: 0.9}); got != 0 {
		t.Errorf("preset fixed has a pool term: %v", got)
	}
}

func TestTiersOfAMatch(t *testing.T) {
	for _, c := range []struct {
		name   string
		match  Match
		cached int
		want   [event.NumTiers]int
	}{
		{"all used", Match{Size: 16, Depth: 10, Announced: 10, Fastest: [4]int32{6, 3, 1, 0}}, 160, [4]int{96, 48, 16, 0}},
		{"last block computed again", Match{Size: 16, Depth: 10, Announced: 10, Fastest: [4]int32{6, 3, 1, 0}}, 144, [4]int{96, 48, 0, 0}},
		{"expected counts as gpu", Match{Size: 16, Depth: 10, Announced: 4, Fastest: [4]int32{2, 2, 0, 0}}, 144, [4]int{112, 32, 0, 0}},
		{"withheld", Match{Size: 16, Depth: 10, Announced: 10, Fastest: [4]int32{0, 10, 0, 0}}, 0, [4]int{}},
	} {
		r := &Row{Match: c.match, Cached: c.cached}
		observeTiers(r)
		if r.Fetched != c.want {
			t.Errorf("%s: %v, want %v", c.name, r.Fetched, c.want)
		}
	}
}

func TestPower(t *testing.T) {
	for n := range 64 {
		if got := power(2, n); got != math.Pow(2, float64(n)) {
			t.Errorf("2^%d = %v", n, got)
		}
		if got, want := power(1.5, n), math.Pow(1.5, float64(n)); !near(got/want, 1, 1e-12) {
			t.Errorf("1.5^%d = %v, want %v", n, got, want)
		}
	}
}

// Each term has all that its file is asked for, and its row in the README.
func TestTermsAreWhole(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range terms {
		if x.name == "" || x.inputs == nil {
			t.Errorf("%q has no name or no inputs", x.name)
		}
		if (x.factor == nil) == (x.setBy == "") {
			t.Errorf("%s: want either a weight or what sets it instead", x.name)
		}
		if _, is := termWeights[x.name]; is != (x.factor != nil) {
			t.Errorf("%s: its weight is no constant of the configuration", x.name)
		}
		if row := "\n| " + x.name + " | "; !strings.Contains(string(readme), row) {
			t.Errorf("%s has no row in README.md", x.name)
		}
		if _, err := os.Stat(x.name + ".go"); err != nil {
			t.Errorf("%s has no file of its own: %v", x.name, err)
		}
	}
}
