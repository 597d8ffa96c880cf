package telemetry

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// triton reads Triton Inference Server with the TensorRT-LLM backend. Several
// models share one page, and an ensemble's request metrics repeat those of the
// models inside it, so exactly one model is read.
type triton struct{}

const (
	tritonRequests = "nv_trt_llm_request_metrics"
	tritonBlocks   = "nv_trt_llm_kv_cache_block_metrics"
	tritonPending  = "nv_inference_pending_request_count"
	// Triton's response cache: whole answers by model and input. Its counters
	// say nothing about KV blocks and are never prefix affinity; without the
	// real block metrics their miss share is the only sign of pressure at all.
	tritonHits   = "nv_cache_num_hits_per_model"
	tritonMisses = "nv_cache_num_misses_per_model"
)

func (triton) engine() pod.Engine { return pod.EngineTriton }
func (triton) stem() string       { return "nv" }

func (triton) wants() []string {
	return []string{tritonRequests, tritonBlocks, tritonPending, tritonHits, tritonMisses}
}

func (triton) read(p page, o *ParseOptions, s *Sample) error {
	model, err := tritonModel(p, o.Model)
	if err != nil {
		return err
	}
	get := func(name string) *family { return p[name].is("model", model) }

	requests := get(tritonRequests)
	ofType := func(t string) Value { return requests.is("request_type", t).sum() }
	// In-flight batching empties the server's own pending queue at once.
	s.Waiting = either(ofType("waiting"), get(tritonPending).sum())
	s.Running = either(ofType("scheduled"), ofType("active"))

	blocks := get(tritonBlocks)
	ofBlocks := func(t string) Value { return blocks.is("kv_cache_block_type", t).max() }
	s.KVBlockSize = positive(ofBlocks("tokens_per"))
	s.KVBlocks = positive(ofBlocks("max"))
	// The backend's own fraction disagrees with its counts: its README prints
	// 0.4875 beside 1 used of 6239.
	s.KVUsage = either(ratio(ofBlocks("used"), s.KVBlocks), ofBlocks("fraction"))
	if !s.KVUsage.Known {
		s.estimate(get(tritonHits).sum(), get(tritonMisses).sum(), o.Prev)
	}
	return nil
}

// tritonModel picks the model to read: the configured one if the page has it,
// else the only one there is.
func tritonModel(p page, configured string) (string, error) {
	for _, group := range [][]string{{tritonRequests, tritonBlocks}, {tritonHits, tritonMisses}, {tritonPending}} {
		models := map[string]bool{}
		for _, name := range group {
			p[name].any(func(m series) bool {
				models[m.label("model")] = true
				return false
			})
		}
		names := slices.Sorted(maps.Keys(models))
		switch {
		case models[configured]:
			return configured, nil
		case len(names) == 1:
			return names[0], nil
		case len(names) > 1:
			return "", fmt.Errorf("page has models %s: name the model to read", strings.Join(names, ", "))
		}
	}
	return configured, nil
}

// lookups are the response cache's counters at one scrape and the pressure
// derived from them.
type lookups struct {
	known        bool
	hits, misses float64
	pressure     float64
}

// estimate sets KVUsage to the share of response-cache lookups since prev that
// missed: every cacheable request makes one lookup. The first scrape, and one
// after the counters went back, use the counters' whole life; without new
// lookups the last estimate stands.
func (s *Sample) estimate(hits, misses Value, prev *Sample) {
	if !hits.Known || !misses.Known || hits.V+misses.V == 0 {
		return
	}
	now := lookups{known: true, hits: hits.V, misses: misses.V}
	dh, dm := now.hits, now.misses
	if prev != nil && prev.lookups.known && dh >= prev.lookups.hits && dm >= prev.lookups.misses {
		dh, dm = dh-prev.lookups.hits, dm-prev.lookups.misses
	}
	if now.pressure = prev.pressure(); dh+dm > 0 {
		now.pressure = dm / (dh + dm)
	}
	s.lookups = now
	s.KVUsage = Value{V: now.pressure, Known: true, Metric: misses.Metric}
	s.KVEstimate = true
}

func (s *Sample) pressure() float64 {
	if s == nil {
		return 0
	}
	return s.lookups.pressure
}
