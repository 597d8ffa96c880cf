package telemetry

import "github.com/eppctl/eppctl/internal/core/pod"

// trtllm reads the pages of trtllm-serve (/prometheus/metrics). Releases around
// 1.1 export request latencies only: then queue and KV usage stay unknown.
type trtllm struct{}

const (
	trtWaiting   = "trtllm_num_requests_waiting"
	trtRunning   = "trtllm_num_requests_running"
	trtUsage     = "trtllm_kv_cache_utilization"
	trtMaxBlocks = "trtllm_kv_cache_max_blocks"
	trtUsed      = "trtllm_kv_cache_used_blocks"
	trtBlockSize = "trtllm_kv_cache_tokens_per_block"
	trtReused    = "trtllm_kv_cache_reused_blocks_total"
	trtMissed    = "trtllm_kv_cache_missed_blocks_total"
)

func (trtllm) engine() pod.Engine { return pod.EngineTRTLLM }
func (trtllm) stem() string       { return "trtllm" }

func (trtllm) wants() []string {
	return []string{trtWaiting, trtRunning, trtUsage, trtMaxBlocks, trtUsed, trtBlockSize, trtReused, trtMissed}
}

func (trtllm) read(p page, _ *ParseOptions, s *Sample) error {
	s.Waiting = p[trtWaiting].sum()
	s.Running = p[trtRunning].sum()
	s.KVBlocks = positive(p[trtMaxBlocks].max())
	s.KVBlockSize = positive(p[trtBlockSize].max())
	s.KVUsage = either(p[trtUsage].max(), ratio(p[trtUsed].max(), s.KVBlocks))

	// The engine counts blocks; the Sample counts tokens.
	reused, missed, size := p[trtReused].sum(), p[trtMissed].sum(), s.KVBlockSize
	if reused.Known && size.Known {
		s.CacheHit = Value{V: reused.V * size.V, Known: true, Metric: reused.Metric}
		if missed.Known {
			s.CacheQueried = Value{V: (reused.V + missed.V) * size.V, Known: true, Metric: missed.Metric}
		}
	}
	return nil
}
