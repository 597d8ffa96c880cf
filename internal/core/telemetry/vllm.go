package telemetry

import (
	"math"
	"slices"
	"strings"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// vllm reads pages of vLLM V0 and V1. Each data-parallel rank is a value of the
// label engine since V1; V0 has none.
type vllm struct{}

// Names in order of preference: where an old name stands behind a new one the
// two were published side by side for some releases and must not be added up.
const (
	vllmWaiting = "vllm:num_requests_waiting"
	vllmRunning = "vllm:num_requests_running"
	vllmUsage   = "vllm:kv_cache_usage_perc"  // a ratio despite its name; vLLM PR 18354
	vllmUsageV0 = "vllm:gpu_cache_usage_perc" // removed by vLLM PR 29330
	vllmQueries = "vllm:prefix_cache_queries_total"
	vllmQueryV0 = "vllm:gpu_prefix_cache_queries_total"
	vllmHits    = "vllm:prefix_cache_hits_total"
	vllmHitsV0  = "vllm:gpu_prefix_cache_hits_total"
	vllmPreempt = "vllm:num_preemptions_total"
	vllmSleep   = "vllm:engine_sleep_state"
	vllmLoRA    = "vllm:lora_requests_info"
	vllmConfig  = "vllm:cache_config_info"
)

func (vllm) engine() pod.Engine { return pod.EngineVLLM }
func (vllm) stem() string       { return "vllm" }

func (vllm) wants() []string {
	return []string{
		vllmWaiting, vllmRunning, vllmUsage, vllmUsageV0, vllmQueries, vllmQueryV0,
		vllmHits, vllmHitsV0, vllmPreempt, vllmSleep, vllmLoRA, vllmConfig,
	}
}

func (vllm) read(p page, o *ParseOptions, s *Sample) error {
	get := func(names ...string) *family { return ofRank(p.first(names...), "engine", o.Rank) }
	s.Waiting = get(vllmWaiting).sum()
	s.Running = get(vllmRunning).sum()
	s.KVUsage = get(vllmUsage, vllmUsageV0).max()
	s.CacheQueried = get(vllmQueries, vllmQueryV0).sum()
	s.CacheHit = get(vllmHits, vllmHitsV0).sum()
	s.Preempted = get(vllmPreempt).sum()

	config := get(vllmConfig)
	s.KVBlockSize = labelNumber(config, "block_size")
	s.KVBlocks = vllmBlocks(p[vllmConfig])
	s.CacheOff = config.any(func(m series) bool { return m.label("enable_prefix_caching") == "False" })
	s.Asleep = get(vllmSleep).is("sleep_state", "awake").any(func(m series) bool { return m.value == 0 })
	s.LoRA = vllmAdapters(p[vllmLoRA])
	return nil
}

// vllmBlocks is the pool of one rank. Every rank's row of the info metric tells
// the sum over all of them: 194 for two ranks of 97, vLLM 0.32.0 measured.
func vllmBlocks(config *family) Value {
	v := labelNumber(config, "num_gpu_blocks")
	if v.Known {
		v.V /= float64(len(config.series))
	}
	return v
}

// vllmAdapters reads the LoRA gauge: its value is the time of the update, so of
// all the label combinations ever seen the greatest is the present one. Times
// are compared with each other only: several API servers add theirs up.
func vllmAdapters(f *family) LoRA {
	if f == nil {
		return LoRA{}
	}
	var newest *series
	for i := range f.series {
		if m := &f.series[i]; usable(m.value) && (newest == nil || m.value >= newest.value) {
			newest = m
		}
	}
	if newest == nil {
		return LoRA{}
	}
	return LoRA{
		Known:   true,
		Max:     int(min(labelNumber(&family{series: []series{*newest}}, "max_lora").V, math.MaxInt32)),
		Running: nameSet(newest.label("running_lora_adapters")),
		Waiting: nameSet(newest.label("waiting_lora_adapters")),
	}
}

// nameSet splits a comma list into sorted, distinct names; "" has none. A list beyond
// all reason is cut, and no name keeps the rest of it in memory.
func nameSet(list string) []string {
	var names []string
	room := roster{maxActive, maxNames}
	whole := len(list) <= maxNames
	for n := range strings.SplitSeq(list, ",") {
		if n = strings.TrimSpace(n); n == "" {
			continue
		}
		if !room.take(n) {
			if room.names == 0 {
				break
			}
			continue
		}
		if !whole {
			n = strings.Clone(n)
		}
		names = append(names, n)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
