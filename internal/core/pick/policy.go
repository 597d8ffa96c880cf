package pick

import (
	"fmt"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/telemetry"
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
	// Pool weighs the KV-pool term; 0 leaves it out. It has the dimension of
	// nothing and needs no tuning: 0.3 and 3 differ from 1 by less than 10 % on
	// every simulated workload.
	Pool float64 `yaml:"pool" json:"pool"`
	// PoolCap bounds the share of a pool that counts as taken, and with it the
	// price of the last block (0.9: ninefold). 0.95 costs b2b 14 %.
	PoolCap float64 `yaml:"pool_cap" json:"pool_cap"`
	// Beta is charged per request in flight, about one decode step. It stands in
	// for the pool term (0.02 without it: conv 0.93 s against 1.05 s at 0).
	Beta float64 `yaml:"beta" json:"beta"`
	// Upsilon is charged at full KV usage. 0.05 could not be told from 0.
	Upsilon float64 `yaml:"upsilon" json:"upsilon"`

	Breaker Breaker `yaml:"breaker" json:"breaker"`

	// TieWindow is how close to the best a pod must be to tie with it: below a
	// millisecond no estimate here means anything.
	TieWindow float64 `yaml:"tie_window" json:"tie_window"`
	// ScrapedLoad lets a gauge raise queue, depth and pool share above our own
	// accounting. It is what sees other routers and clients (conv with four
	// routers: 1.41 s against 1.85 s); gauges never lower anything.
	ScrapedLoad bool `yaml:"scraped_load" json:"scraped_load"`
	// StaleTrust scales affinity on a pod whose event stream has a hole: blocks
	// it removed meanwhile would still count. An estimate.
	StaleTrust float64 `yaml:"stale_trust" json:"stale_trust"`
	// SilentAfter is how long a connected pod with requests in flight may send
	// no event before its depth 0 is explained by that. For display only.
	SilentAfter float64 `yaml:"silent_after" json:"silent_after"`

	// Calibration is that of models without one of their own in Models.
	Calibration `yaml:",inline"`
	Models      map[string]Calibration `yaml:"-" json:"models,omitempty"`

	Tiers    Tiers    `yaml:"tiers" json:"tiers"`
	LoRA     LoRA     `yaml:"lora" json:"lora"`
	Hardware Hardware `yaml:"hardware" json:"hardware"`

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
	// Depth opens the breaker. 32 costs nothing; 16 pushes traffic off warm pods
	// and makes them replicate prefixes (b2b 2.5 s against 2.0 s).
	Depth int `yaml:"depth" json:"depth"`
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

// DefaultPolicy is the preset "pool": no tuned weight. A pod is two servers, its
// prefill and its KV pool, and each is charged in the seconds it takes.
func DefaultPolicy() *Policy {
	return &Policy{
		Alpha: 1, Pool: 1, PoolCap: 0.9,
		Breaker:     Breaker{Weight: 4, Ratio: 2, Depth: 32},
		TieWindow:   0.001,
		ScrapedLoad: true,
		StaleTrust:  0.5,
		SilentAfter: 30,
		Calibration: Calibration{TokensPerSecond: 16_000, BytesPerToken: 256 << 10},
		Tiers: Tiers{
			Host:   Link{Bandwidth: 25e9, Latency: 0.0002},
			Disk:   Link{Bandwidth: 5e9, Latency: 0.001},
			Remote: Link{Bandwidth: 10e9, Latency: 0.002},
		},
		LoRA:     LoRA{Load: 0.5, SlotWait: 2},
		Hardware: Hardware{SlowFrom: 1.05, SlowMax: 4, Impaired: 2, Severe: 30},
		FreshFor: 2, KnownFor: 5,
	}
}

// Preset returns a named policy: "pool" (also ""), or "fixed", the best without
// the pool term.
func Preset(name string) (*Policy, error) {
	p := DefaultPolicy()
	switch name {
	case "", "pool":
	case "fixed":
		p.Alpha, p.Pool, p.Beta, p.Upsilon = 4, 0, 0.020, 0.05
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

// prefill is T(u, c): the seconds to compute u tokens behind c cached ones.
func (c *Calibration) prefill(u, cached float64) float64 {
	return c.Constant + u/c.TokensPerSecond + c.Quadratic*u*(cached+u/2)
}
