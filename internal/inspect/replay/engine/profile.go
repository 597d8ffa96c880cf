package engine

import (
	"fmt"
	"slices"
	"strings"
)

// Profile is a model on its hardware. A step takes, in seconds,
//
//	Base + PerToken·prefill tokens + Quadratic·Σ chunk·(computed + chunk/2)
//	     + PerContext·Σ decode context + PerSequence·sequences
type Profile struct {
	Name        string
	Base        float64
	PerToken    float64
	Quadratic   float64
	PerContext  float64
	PerSequence float64

	PoolTokens   int // KV pool
	StepTokens   int // token budget of one step
	MaxSequences int // running at once

	BytesPerToken float64 // of KV cache
	HostTokens    int     // host memory behind the pool; 0 = none
	HostBandwidth float64 // bytes per second between the two
	HostLatency   float64 // seconds, once per admission

	AdapterSlots int     // LoRA adapters that fit at once; 0 = any number
	AdapterLoad  float64 // seconds to load one
}

// profiles: 32b-tp2-h100 is Qwen3-32B on two H100, fitted so that a chunk of 8,192
// tokens takes the 0.40 s that llm-d measured. The other two are estimates.
var profiles = []Profile{
	{
		Name: "32b-tp2-h100", Base: 0.015, PerToken: 36e-6, Quadratic: 2.6e-9, PerContext: 56e-9, PerSequence: 20e-6,
		PoolTokens: 282_000, StepTokens: 8192, MaxSequences: 256, BytesPerToken: 256 << 10,
	},
	{
		Name: "8b-h100", Base: 0.0065, PerToken: 24e-6, Quadratic: 1.2e-9, PerContext: 43e-9, PerSequence: 15e-6,
		PoolTokens: 430_000, StepTokens: 8192, MaxSequences: 256, BytesPerToken: 128 << 10,
	},
	{
		Name: "70b-tp4-h100", Base: 0.016, PerToken: 62e-6, Quadratic: 1.6e-9, PerContext: 32e-9, PerSequence: 20e-6,
		PoolTokens: 400_000, StepTokens: 8192, MaxSequences: 256, BytesPerToken: 320 << 10,
	},
}

// Links and adapters are the same for all profiles: PCIe 4.0 x16, and half a
// second to fetch and activate an adapter, which are estimates.
const (
	hostBandwidth = 25e9
	hostLatency   = 0.0002
	adapterLoad   = 0.5
)

// Profiles lists the names.
func Profiles() []string {
	var names []string
	for _, p := range profiles {
		names = append(names, p.Name)
	}
	return names
}

// ProfileByName returns a profile.
func ProfileByName(name string) (Profile, error) {
	i := slices.IndexFunc(profiles, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{}, fmt.Errorf("profile %q: want one of %s", name, strings.Join(Profiles(), ", "))
	}
	p := profiles[i]
	p.HostBandwidth, p.HostLatency, p.AdapterLoad = hostBandwidth, hostLatency, adapterLoad
	return p, nil
}

// Scaled is an engine on which every step takes x times as long.
func (p Profile) Scaled(x float64) Profile {
	for _, v := range []*float64{&p.Base, &p.PerToken, &p.Quadratic, &p.PerContext, &p.PerSequence} {
		*v *= x
	}
	return p
}

// Prefill is the time to compute tokens behind cached ones, alone on the engine
// and without the fixed cost of its steps.
func (p *Profile) Prefill(tokens, cached int) float64 {
	n, c := float64(tokens), float64(cached)
	return p.PerToken*n + p.Quadratic*n*(c+n/2)
}

// Blocks is how many blocks the pool has.
func (p *Profile) Blocks(size int) int { return p.PoolTokens / size }
