package pick

import (
	"fmt"
	"math"
	"slices"
)

// KeyError names the key of a policy that cannot be used.
type KeyError struct {
	Key   string // as the configuration writes it: "breaker.weight"
	Value float64
	Want  string
}

func (e *KeyError) Error() string {
	return fmt.Sprintf("weights: %s: %v: want %s", e.Key, e.Value, e.Want)
}

// bound is one constant and the range it must lie in.
type bound struct {
	key    string
	v      float64
	lo, hi float64
	want   string
}

const (
	notNegative = "a finite number, 0 or greater"
	positive    = "a finite number above 0"
	atLeastOne  = "a finite number, 1 or greater"
	share       = "a number from 0 to below 1"
	wholeShare  = "a number from 0 to 1"
)

// The ends of "above 0" and "finite". Between them no product or quotient of
// constants and inputs overflows, so no score is ever infinite.
const (
	small = 1e-6
	large = 1e15
	// maxSeconds fits into a time.Duration with room to add.
	maxSeconds = 1e9
)

// Validate returns a *KeyError for the first constant that is not a number, not
// finite or out of range. A single NaN would make every comparison of scores
// false and pick an arbitrary pod.
func (p *Policy) Validate() error {
	bounds := []bound{
		{"alpha", p.Alpha, 0, large, notNegative},
		{"delay", p.Delay, 0, large, notNegative},
		{"pool", p.Pool, 0, large, notNegative},
		{"pool_cap", p.PoolCap, 0, 1 - small, share},
		{"beta", p.Beta, 0, large, notNegative},
		{"crowding", p.Crowding, 0, large, notNegative},
		{"upsilon", p.Upsilon, 0, large, notNegative},
		{"breaker.weight", p.Breaker.Weight, 0, large, notNegative},
		{"breaker.ratio", p.Breaker.Ratio, 1 + small, 16, "a number above 1, up to 16"},
		{"breaker.depth", float64(p.Breaker.Depth), 1, 250, "a whole number from 1 to 250"},
		{"breaker.start", float64(p.Breaker.Start), 0, 250, "a whole number from 0 to 250"},
		{"breaker.errors", float64(p.Breaker.Errors), 1, 1000, "a whole number from 1 to 1000"},
		{"breaker.cooldown", p.Breaker.Cooldown, small, maxSeconds, positive},
		{"breaker.cooldown_max", p.Breaker.CooldownMax, p.Breaker.Cooldown, maxSeconds, "cooldown or greater"},
		{"breaker.probes", float64(p.Breaker.Probes), 1, 250, "a whole number from 1 to 250"},
		{"tie_window", p.TieWindow, 0, large, notNegative},
		{"stale_trust", p.StaleTrust, 0, 1, wholeShare},
		{"learn.noise", p.Learn.Noise, 1, large, atLeastOne},
		{"lora.load", p.LoRA.Load, 0, large, notNegative},
		{"lora.slot_wait", p.LoRA.SlotWait, 0, large, notNegative},
		{"hardware.slow_from", p.Hardware.SlowFrom, 1, large, atLeastOne},
		{"hardware.slow_max", p.Hardware.SlowMax, 1, large, atLeastOne},
		{"hardware.impaired", p.Hardware.Impaired, 1, large, atLeastOne},
		{"hardware.severe", p.Hardware.Severe, 0, large, notNegative},
		{"energy.weight", p.Energy.Weight, 0, large, notNegative},
		{"energy.from", p.Energy.From, 0, 1 - small, share},
		{"fresh_for", p.FreshFor, 0, maxSeconds, notNegative},
		{"known_for", p.KnownFor, p.FreshFor, maxSeconds, "fresh_for or greater"},
	}
	bounds = append(bounds, p.Tiers.Host.bounds("tiers.host")...)
	bounds = append(bounds, p.Tiers.Disk.bounds("tiers.disk")...)
	bounds = append(bounds, p.Tiers.Remote.bounds("tiers.remote")...)
	bounds = append(bounds, p.Calibration.bounds("")...)
	for _, name := range sortedKeys(p.Models) {
		c := p.Models[name]
		bounds = append(bounds, c.bounds("models."+name+".")...)
	}
	for _, b := range bounds {
		if !(b.v >= b.lo && b.v <= b.hi) { // also catches NaN
			return &KeyError{Key: b.key, Value: b.v, Want: b.wanted()}
		}
	}
	return nil
}

// wanted names the upper bound to who is above one that goes without saying.
func (b bound) wanted() string {
	if b.hi >= maxSeconds && b.v > b.hi && !math.IsInf(b.v, 1) {
		return fmt.Sprintf("%s, up to %g", b.want, b.hi)
	}
	return b.want
}

func (l Link) bounds(key string) []bound {
	return []bound{
		{key + ".bandwidth", l.Bandwidth, 1, large, positive},
		{key + ".latency", l.Latency, 0, large, notNegative},
	}
}

func (c Calibration) bounds(prefix string) []bound {
	return []bound{
		{prefix + "prefill_tokens_per_second", c.TokensPerSecond, small, large, positive},
		{prefix + "prefill_constant", c.Constant, 0, large, notNegative},
		{prefix + "prefill_quadratic", c.Quadratic, 0, large, notNegative},
		{prefix + "kv_bytes_per_token", c.BytesPerToken, 0, large, notNegative},
		{prefix + "kv_pool_tokens", c.PoolTokens, 0, large, notNegative},
	}
}

func sortedKeys(m map[string]Calibration) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
