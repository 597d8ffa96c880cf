package pick

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestParseWeight(t *testing.T) {
	for text, want := range map[string]Weight{
		"alpha=2": {"alpha", 2}, "kv=2": {"alpha", 2}, "kv=0": {"alpha", 0}, "breaker=4.5": {"breaker.weight", 4.5},
		"breaker.depth=16": {"breaker.depth", 16}, "concurrency=0.02": {"beta", 0.02}, "learn.on=false": {"learn.on", 0},
		"scraped_load=true": {"scraped_load", 1}, "tiers.host.latency=1e-3": {"tiers.host.latency", 1e-3},
		"prefill_tokens_per_second=8000": {"prefill_tokens_per_second", 8000}, "weights.alpha=2": {"alpha", 2},
	} {
		if got, err := ParseWeight(text); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "KEY=VALUE", "alpha": "KEY=VALUE", "=2": "KEY=VALUE", "alpha=": "KEY=VALUE",
		"alpa=2": "; did you mean alpha?", "brekaer.depth=2": "; did you mean breaker.depth?", "cooldown=2": "; did you mean breaker.cooldown or breaker.cooldown_max?",
		"foo=2":     `no weight is called "foo"; docs/config.md lists them`,
		"alpha=two": "a number", "alpha=NaN": "a number", "alpha=Inf": "a number",
		"breaker.depth=1.5": "a whole number", "learn.on=maybe": "true or false", "models=1": "no weight is called",
		"queue=2": "has no weight", "lora=1": "lora.load", "tier=1": "tiers.host", "hardware=1": "hardware.slow_from",
	} {
		_, err := ParseWeight(text)
		var bad *WeightError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q in it", text, err, want)
		}
	}
}

// TestWeightKeys: the keys are those of Validate, and the switches.
func TestWeightKeys(t *testing.T) {
	keys := WeightKeys()
	for _, key := range []string{"alpha", "pool_cap", "breaker.errors", "learn.noise", "tiers.remote.bandwidth", "kv_pool_tokens", "known_for", "learn.on"} {
		if !slices.Contains(keys, key) {
			t.Errorf("%s is missing in %v", key, keys)
		}
	}
	for _, key := range keys {
		if _, ok := DefaultPolicy().Weight(key); !ok {
			t.Errorf("%s has no value", key)
		}
		// Every number is bounded: none of them takes a NaN or a negative one.
		p := DefaultPolicy()
		if key == "scraped_load" || key == "learn.on" {
			continue
		}
		if _, err := p.With(Weight{key, -1}); err == nil {
			t.Errorf("%s=-1 is valid", key)
		}
	}
}

func TestWith(t *testing.T) {
	p := DefaultPolicy()
	p.Models = map[string]Calibration{"llama": {TokensPerSecond: 9000, BytesPerToken: 1}}
	q, err := p.With(Weight{"alpha", 3}, Weight{"prefill_tokens_per_second", 5000}, Weight{"learn.on", 0}, Weight{"breaker.depth", 8})
	if err != nil {
		t.Fatal(err)
	}
	if q.Alpha != 3 || q.TokensPerSecond != 5000 || q.Models["llama"].TokensPerSecond != 5000 || q.Learn.On || q.Breaker.Depth != 8 {
		t.Errorf("%+v", q)
	}
	if q.Models["llama"].BytesPerToken != 1 {
		t.Error("what was not changed of a model has changed")
	}
	if p.Alpha != 1 || p.Models["llama"].TokensPerSecond != 9000 || !p.Learn.On || p.Breaker.Depth != 64 {
		t.Errorf("the policy itself has changed: %+v", p)
	}
	var bad *KeyError
	if _, err := p.With(Weight{"breaker.depth", 0}); !errors.As(err, &bad) || bad.Key != "breaker.depth" {
		t.Errorf("a depth of 0: %v", err)
	}
	if v, ok := q.Weight("breaker.depth"); !ok || v != 8 {
		t.Errorf("breaker.depth is %v, %v", v, ok)
	}
	if _, ok := q.Weight("nothing"); ok {
		t.Error("there is a weight called nothing")
	}
}

// FuzzParseWeight: whatever is taken has a key, is finite, and makes either a valid
// policy or an error.
func FuzzParseWeight(f *testing.F) {
	for _, text := range []string{"kv=2", "breaker.depth=16", "learn.on=true", "tiers.host.bandwidth=1e9", "a=b=c", "=", "kv=-0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w, err := ParseWeight(text)
		if err != nil {
			return
		}
		if math.IsNaN(w.Value) || math.IsInf(w.Value, 0) {
			t.Fatalf("%q: %v", text, w)
		}
		p, err := DefaultPolicy().With(w)
		if err != nil {
			return
		}
		if v, ok := p.Weight(w.Key); !ok || v != w.Value {
			t.Fatalf("%q: set to %v, is %v", text, w.Value, v)
		}
	})
}
