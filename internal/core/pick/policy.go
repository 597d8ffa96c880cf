package pick

import (
	"fmt"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

// Policy holds every constant of a decision. Times are in seconds throughout,
// because the score is. A Policy is immutable once a decision has used it; a
// change of the configuration makes a new one.
//
// "Simulated" below means a deterministic fleet in virtual time: 16 pods on the
// Mooncake conversation trace (conv), a tool-agent workload of the same shape
// (tool), 8 pods on a shared-prefix burst past their KV capacity (b2b), 16 on
// multi-turn coding sessions (agent). Figures are mean seconds to first token.
type Policy struct {
	// Alpha values prefill time saved. 1 is the request's own time; above it
	// stands what recomputing a prefix costs others whose blocks it evicts.
	// Without the pool term 4 was best (b2b 2.9 s against 8.0 s at 1); with it 1
	// is (agent 0.43 s against 2.5 s).
	Alpha float64 `yaml:"alpha" json:"alpha"`
	// Delay weighs the delay term; 0 leaves it out. 1 is its derivation; from 0.5 to
	// 2 no simulated workload moves by more than 8 %.
	Delay float64 `yaml:"delay" json:"delay"`
	// Pool weighs the KV-pool term; 0 leaves it out. It has the dimension of
	// nothing and needs no tuning: 0.3 and 3 differ from 1 by less than 10 % on
	// every simulated workload.
	Pool float64 `yaml:"pool" json:"pool"`
	// PoolCap bounds the share of a pool that counts as taken, and with it the
	// price of the last block (0.9: ninefold). 0.95 costs b2b 14 %.
	PoolCap float64 `yaml:"pool_cap" json:"pool_cap"`
	// Beta is charged per request in flight, for the steps that it makes longer. All
	// other terms are nearly nothing where every pod holds the prompt, and then the
	// few that began with it kept the traffic: one shared prefix at 60 requests per
	// second took 0.151 s at 0, 0.071 at 2 ms, 0.059 at 5 ms and 0.057 at 10 ms (least
	// in flight 0.060), while none of the simulated workloads moves by more than 3.5 %
	// from 0 to 10 ms. Without the pool term it stands in for that (0.02: conv 0.93 s
	// against 1.05 s at 0).
	Beta float64 `yaml:"beta" json:"beta"`
	// Crowding is what a copy of a shared prefix saves each of those who will use it, for
	// each request that the pods with one have in flight beyond this pod. One of them
	// makes every step of an answer longer and not the first alone, so that it is worth
	// more than Beta. Of one prefix of 2,000 to 32,000 tokens on 2 to 16 pods the worst
	// took 1.86 times as long as under least in flight at 0, 1.07 at 5 ms, 1.05 at 10 ms
	// and 1.06 at 20 ms; a burst past what the fleet can do took 1.11 times as long at
	// 10 ms as at 0, and 1.18 at 20 ms.
	Crowding float64 `yaml:"crowding" json:"crowding"`
	// Upsilon is charged at full utilisation of the device where an exporter tells
	// it, else at full KV usage. 0.05 could not be told from 0.
	Upsilon float64 `yaml:"upsilon" json:"upsilon"`

	Breaker Breaker `yaml:"breaker" json:"breaker"`

	// TieWindow is how close to the best a pod must be to tie with it: below a
	// millisecond no estimate here means anything.
	TieWindow float64 `yaml:"tie_window" json:"tie_window"`
	// ScrapedLoad lets a gauge raise queue, depth and pool share above our own
	// accounting. It is what sees other routers and clients (conv with four
	// routers: 1.41 s against 1.85 s, by the rule before view's past counts); gauges never lower anything.
	ScrapedLoad bool `yaml:"scraped_load" json:"scraped_load"`
	// StaleTrust scales affinity on a pod whose event stream is not live: blocks
	// it removed meanwhile would still count. An estimate.
	StaleTrust float64 `yaml:"stale_trust" json:"stale_trust"`

	Learn Learn `yaml:"learn" json:"learn"`
	// Calibration is that of models without one of their own in Models.
	Calibration `yaml:",inline"`
	Models      map[string]Calibration `yaml:"-" json:"models,omitempty"`

	Tiers    Tiers    `yaml:"tiers" json:"tiers"`
	LoRA     LoRA     `yaml:"lora" json:"lora"`
	Hardware Hardware `yaml:"hardware" json:"hardware"`

	Energy Energy `yaml:"energy" json:"energy"`

	// FreshFor and KnownFor are the ages at which scraped values turn stale and
	// unknown. Peers take 0.2 to 2 s for the first; nothing here depends on
	// it much, as local accounting carries the load.
	FreshFor float64 `yaml:"fresh_for" json:"fresh_for"`
	KnownFor float64 `yaml:"known_for" json:"known_for"`
}

// Breaker is the geometric penalty on requests before their first token, and the
// depth at which a pod is left out while another is not.
type Breaker struct {
	Weight float64 `yaml:"weight" json:"weight"` // seconds at Depth; conv, tool and b2b do not move with it
	Ratio  float64 `yaml:"ratio" json:"ratio"`   // growth per request
	// Depth opens the breaker. 64 costs nothing, nor does more. Less pushes traffic
	// off warm pods, and the others copy their prefixes: past what the fleet can do
	// 32 takes b2b from 10.0 s to 11.7 s and 24 to 12.7 s (1.15 times its load, 8
	// seeds). No other workload gets so deep.
	Depth int `yaml:"depth" json:"depth"`
	// Start is how many requests a pod that has answered none may have before
	// their first token while half of the pods have answered. 0 leaves slow start
	// out. A new pod is idle and empty, so a burst would all go there before anything
	// shows that it works. TCP opens with a small window for the same reason; 4
	// prompts of 4,000 tokens are a second of work at 16,000 tokens per second.
	Start int `yaml:"start" json:"start"`
	// Errors in a row leave a pod out: server errors, or requests that end
	// unanswered on a pod that had filled up. 5 is Envoy's consecutive_5xx.
	Errors int `yaml:"errors" json:"errors"`
	// Cooldown is the wait until a probe may be placed there, CooldownMax the most
	// that failed probes double it to. An engine that restarts takes longer than
	// one second and Envoy's base ejection time is 30 s.
	Cooldown    float64 `yaml:"cooldown" json:"cooldown"`
	CooldownMax float64 `yaml:"cooldown_max" json:"cooldown_max"`
	// Probes is how many requests may be at risk at one time.
	Probes int `yaml:"probes" json:"probes"`
}

// limits are the breaker's part that the ledger keeps.
func (b *Breaker) limits() view.Limits {
	return view.Limits{
		Depth: b.Depth, Errors: b.Errors, Probes: b.Probes,
		Cooldown: duration(b.Cooldown), Longest: duration(b.CooldownMax),
	}
}

// Learn says what is made of the times to first byte that were observed. See
// view.Rate for how they become rates.
type Learn struct {
	// On takes what was learned for the configured rate, as far as it is sure: of
	// each model beside its configuration, of each pod beside its model.
	On bool `yaml:"on" json:"on"`
	// Noise is the factor up to which one pod's pace counts as that of all: the
	// median of nine prefills is off by up to a tenth, and a difference that is
	// none would send a cold fleet's traffic to one pod.
	Noise float64 `yaml:"noise" json:"noise"`
}

// Calibration is what a model costs on healthy hardware.
type Calibration struct {
	// TokensPerSecond is the peak prefill rate of one pod. Published peaks lie
	// between 15,360 (Qwen3-32B, SGLang, H100) and 39,065 (gpt-oss-120B, H100).
	// When in doubt guess slow: conv 0.92 s at half the true rate, 1.32 s at
	// twice.
	TokensPerSecond float64 `yaml:"prefill_tokens_per_second" json:"prefill_tokens_per_second"`
	// Constant and Quadratic complete T(u, c) = Constant + u/TokensPerSecond +
	// Quadratic·u·(c + u/2). Seconds, and seconds per squared token.
	Constant  float64 `yaml:"prefill_constant" json:"prefill_constant"`
	Quadratic float64 `yaml:"prefill_quadratic" json:"prefill_quadratic"`
	// BytesPerToken of KV cache = 2 · layers · KV heads · head size · bytes per
	// element. 256 KiB is Qwen3-32B; Llama-3 8B has 128 KiB, 70B 320 KiB.
	BytesPerToken float64 `yaml:"kv_bytes_per_token" json:"kv_bytes_per_token"`
	// PoolTokens is the KV pool of one pod where no metrics page tells it;
	// 0 = not known, and then the pool term is 0.
	PoolTokens float64 `yaml:"kv_pool_tokens" json:"kv_pool_tokens"`
}

// Tiers are the ways from a slower tier to the GPU, per pod. Estimates from the
// links' nominal rates; with tensor parallelism every GPU may have its own.
type Tiers struct {
	Host   Link `yaml:"host" json:"host"`     // PCIe 4.0 x16; 5.0 doubles it
	Disk   Link `yaml:"disk" json:"disk"`     // one local NVMe drive
	Remote Link `yaml:"remote" json:"remote"` // 100 GbE with RDMA; an object store is ten times slower
}

// Link is one way.
type Link struct {
	Bandwidth float64 `yaml:"bandwidth" json:"bandwidth"` // bytes per second
	Latency   float64 `yaml:"latency" json:"latency"`     // seconds, once per transfer
}

// LoRA are the seconds until an adapter can compute. Estimates.
type LoRA struct {
	Load     float64 `yaml:"load" json:"load"`           // fetch and activate
	SlotWait float64 `yaml:"slot_wait" json:"slot_wait"` // until a slot is free, when all are taken
}

// Hardware says what a degraded device costs. Estimates.
type Hardware struct {
	SlowFrom float64 `yaml:"slow_from" json:"slow_from"` // factor below which a slow-down is noise
	SlowMax  float64 `yaml:"slow_max" json:"slow_max"`   // greatest factor believed
	Impaired float64 `yaml:"impaired" json:"impaired"`   // least factor while throttling or critical
	Severe   float64 `yaml:"severe" json:"severe"`       // flat seconds while critical
}

// Energy says what a pod at its power or thermal limit costs. Estimates: nothing
// here was simulated, and so it is off.
type Energy struct {
	Weight float64 `yaml:"weight" json:"weight"` // seconds at the limit, 0 = off
	// From is the share of the envelope up to which nothing is charged. Prefill runs
	// an H100 at its 700 W for as long as it lasts, so what counts is the rest of
	// the time; below four fifths of the limit clocks do not move.
	From float64 `yaml:"from" json:"from"`
}

// DefaultPolicy is the preset "pool". A pod is two servers, its prefill and its KV
// pool, and each is charged in the seconds it takes; beside them Beta and Crowding
// stand for what sharing steps costs.
func DefaultPolicy() *Policy {
	return &Policy{
		Alpha: 1, Delay: 1, Pool: 1, PoolCap: 0.9, Beta: 0.005, Crowding: 0.01,
		Breaker: Breaker{
			Weight: 4, Ratio: 2, Depth: 64, Start: 4,
			Errors: 5, Cooldown: 1, CooldownMax: 30, Probes: 1,
		},
		TieWindow:   0.001,
		ScrapedLoad: true,
		StaleTrust:  0.5,
		Calibration: Calibration{TokensPerSecond: 16_000, BytesPerToken: 256 << 10},
		Tiers: Tiers{
			Host:   Link{Bandwidth: 25e9, Latency: 0.0002},
			Disk:   Link{Bandwidth: 5e9, Latency: 0.001},
			Remote: Link{Bandwidth: 10e9, Latency: 0.002},
		},
		LoRA:     LoRA{Load: 0.5, SlotWait: 2},
		Hardware: Hardware{SlowFrom: 1.05, SlowMax: 4, Impaired: 2, Severe: 30},
		Energy:   Energy{From: 0.8},
		Learn:    Learn{On: true, Noise: 1.25},
		FreshFor: 2, KnownFor: 5,
	}
}

// Preset returns a named policy: "pool" (also ""), or "fixed", the best without
// the delay, the pool and the copy term.
func Preset(name string) (*Policy, error) {
	p := DefaultPolicy()
	switch name {
	case "", "pool":
	case "fixed":
		p.Alpha, p.Delay, p.Pool, p.Beta, p.Crowding, p.Upsilon, p.Breaker.Depth = 4, 0, 0, 0.020, 0, 0.05, 32
	default:
		return nil, fmt.Errorf("preset %q: want pool or fixed", name)
	}
	return p, nil
}

// calibration returns the one reference for all candidates of a request.
func (p *Policy) calibration(model string) Calibration {
	if c, ok := p.Models[model]; ok {
		return c
	}
	return p.Calibration
}

func (p *Policy) limits() telemetry.Limits {
	return telemetry.Limits{FreshNs: nanos(p.FreshFor), KnownNs: nanos(p.KnownFor)}
}

// link returns the way from a tier to the GPU; the zero Link for the GPU itself.
func (t *Tiers) link(tier event.Tier) Link {
	switch tier {
	case event.TierHost:
		return t.Host
	case event.TierDisk:
		return t.Disk
	case event.TierRemote:
		return t.Remote
	}
	return Link{}
}

// scale makes everything take x times as long.
func (c *Calibration) scale(x float64) {
	c.TokensPerSecond /= x
	c.Constant *= x
	c.Quadratic *= x
}

// prefill is T(u, c): the seconds to compute u tokens behind c cached ones.
func (c *Calibration) prefill(u, cached float64) float64 {
	return c.Constant + u/c.TokensPerSecond + c.Quadratic*u*(cached+u/2)
}
