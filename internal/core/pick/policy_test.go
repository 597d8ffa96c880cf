package pick

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	for _, name := range []string{"", "pool", "fixed"} {
		p, err := Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Validate(); err != nil {
			t.Errorf("preset %q: %v", name, err)
		}
	}
	if _, err := Preset("fastest"); err == nil {
		t.Error("an unknown preset is taken")
	}
}

func TestValidateNamesTheKey(t *testing.T) {
	t.Run("SC-13", func(t *testing.T) {
		for key, field := range map[string]func(*Policy) *float64{
			"alpha":                     func(p *Policy) *float64 { return &p.Alpha },
			"beta":                      func(p *Policy) *float64 { return &p.Beta },
			"upsilon":                   func(p *Policy) *float64 { return &p.Upsilon },
			"crowding":                  func(p *Policy) *float64 { return &p.Crowding },
			"delay":                     func(p *Policy) *float64 { return &p.Delay },
			"pool":                      func(p *Policy) *float64 { return &p.Pool },
			"pool_cap":                  func(p *Policy) *float64 { return &p.PoolCap },
			"breaker.weight":            func(p *Policy) *float64 { return &p.Breaker.Weight },
			"breaker.ratio":             func(p *Policy) *float64 { return &p.Breaker.Ratio },
			"breaker.cooldown":          func(p *Policy) *float64 { return &p.Breaker.Cooldown },
			"breaker.cooldown_max":      func(p *Policy) *float64 { return &p.Breaker.CooldownMax },
			"tie_window":                func(p *Policy) *float64 { return &p.TieWindow },
			"stale_trust":               func(p *Policy) *float64 { return &p.StaleTrust },
			"prefill_tokens_per_second": func(p *Policy) *float64 { return &p.TokensPerSecond },
			"prefill_constant":          func(p *Policy) *float64 { return &p.Constant },
			"prefill_quadratic":         func(p *Policy) *float64 { return &p.Quadratic },
			"kv_bytes_per_token":        func(p *Policy) *float64 { return &p.BytesPerToken },
			"kv_pool_tokens":            func(p *Policy) *float64 { return &p.PoolTokens },
			"tiers.host.bandwidth":      func(p *Policy) *float64 { return &p.Tiers.Host.Bandwidth },
			"tiers.disk.latency":        func(p *Policy) *float64 { return &p.Tiers.Disk.Latency },
			"tiers.remote.bandwidth":    func(p *Policy) *float64 { return &p.Tiers.Remote.Bandwidth },
			"learn.noise":               func(p *Policy) *float64 { return &p.Learn.Noise },
			"lora.load":                 func(p *Policy) *float64 { return &p.LoRA.Load },
			"lora.slot_wait":            func(p *Policy) *float64 { return &p.LoRA.SlotWait },
			"hardware.slow_from":        func(p *Policy) *float64 { return &p.Hardware.SlowFrom },
			"hardware.slow_max":         func(p *Policy) *float64 { return &p.Hardware.SlowMax },
			"hardware.impaired":         func(p *Policy) *float64 { return &p.Hardware.Impaired },
			"hardware.severe":           func(p *Policy) *float64 { return &p.Hardware.Severe },
			"energy.weight":             func(p *Policy) *float64 { return &p.Energy.Weight },
			"energy.from":               func(p *Policy) *float64 { return &p.Energy.From },
			"fresh_for":                 func(p *Policy) *float64 { return &p.FreshFor },
			"known_for":                 func(p *Policy) *float64 { return &p.KnownFor },
		} {
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
				p := DefaultPolicy()
				*field(p) = bad
				var wrong *KeyError
				if err := p.Validate(); !errors.As(err, &wrong) || wrong.Key != key {
					t.Errorf("%s = %v: %v", key, bad, err)
				}
			}
		}
	})
	large := DefaultPolicy()
	large.Alpha = 1e300
	if err := large.Validate(); err == nil || !strings.Contains(err.Error(), "up to 1e+15") {
		t.Errorf("the bound above is not named: %v", err)
	}
	for _, depth := range []int{-1, 0, 1000} {
		p := DefaultPolicy()
		p.Breaker.Depth = depth
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "breaker.depth") {
			t.Errorf("depth %d: %v", depth, err)
		}
	}
	p := DefaultPolicy()
	p.Models = map[string]Calibration{"llama": {TokensPerSecond: math.NaN()}}
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "models.llama.prefill_tokens_per_second: NaN") {
		t.Errorf("model's calibration: %v", err)
	}
}

// Whatever passes Validate keeps every score finite, at the ends of the ranges
// too.
func TestScoresStayFinite(t *testing.T) {
	ends := []func(*Policy){
		func(p *Policy) { p.Alpha, p.Delay, p.Pool, p.Beta, p.Upsilon = large, large, large, large, large },
		func(p *Policy) { p.TokensPerSecond, p.Quadratic, p.Constant = small, large, large },
		func(p *Policy) { p.Breaker.Weight, p.Breaker.Ratio, p.Breaker.Depth = large, 16, 250 },
		func(p *Policy) { p.Breaker.Weight, p.Breaker.Ratio, p.Breaker.Depth = large, 1+small, 1 },
		func(p *Policy) { p.PoolCap = 1 - small; p.PoolTokens = 1 },
		func(p *Policy) { p.Tiers.Disk = Link{Bandwidth: 1, Latency: large}; p.BytesPerToken = large },
	}
	for i, end := range ends {
		p := DefaultPolicy()
		ends[0](p)
		end(p)
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		b := basisFor(p, 1_000_000)
		b.means.Residence = 1 << 62
		b.settle()
		g := given{gpu: 10, disk: 999_000, queue: 1e9, depth: 1 << 40, inFlight: 1 << 40, usage: 1, slow: 256, severe: large}
		r := g.row(b)
		r.PoolSize, r.PoolAdds, r.PoolShare = 1, 1e9, p.PoolCap
		b.score(r)
		if math.IsNaN(r.Total) || math.IsInf(r.Total, 0) {
			t.Errorf("end %d: %s", i, fmt.Sprint(r.Terms))
		}
	}
}
