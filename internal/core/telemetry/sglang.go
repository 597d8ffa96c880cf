package telemetry

import "github.com/eppctl/eppctl/internal/core/pod"

// sglang reads SGLang's pages. A data-parallel rank (label dp_rank) is one
// replica; within it the tensor, pipeline and expert ranks each describe that
// same replica, so of those the greatest value stands for it.
type sglang struct{}

const (
	sglRunning   = "sglang:num_running_reqs"
	sglUsage     = "sglang:token_usage" // running requests only: 0 when idle, however full the cache
	sglQueue     = "sglang:num_queue_reqs"
	sglHits      = "sglang:cached_tokens_total"
	sglRetracted = "sglang:num_retracted_requests_total"
	sglConfig    = "sglang:cache_config_info"
	sglPageSize  = "sglang:page_size"
	sglPages     = "sglang:num_pages"
	sglSlotsUsed = "sglang:lora_pool_slots_used"
	sglSlots     = "sglang:lora_pool_slots_total"
)

// sglQueues hold accepted requests that do not execute yet, beside sglQueue.
// Grammar compilation is a queue of its own; the others exist only where
// prefill and decode are separate and are 0 elsewhere. Requests in flight
// between the two (num_prefill_inflight_queue_reqs) have run: they do not wait.
var sglQueues = [][]string{
	{"sglang:num_grammar_queue_reqs"},
	{"sglang:num_prefill_bootstrap_queue_reqs", "sglang:num_prefill_prealloc_queue_reqs"}, // new name, old name
	{"sglang:num_decode_prealloc_queue_reqs"},
	{"sglang:num_decode_transfer_queue_reqs"},
}

func (sglang) engine() pod.Engine { return pod.EngineSGLang }
func (sglang) stem() string       { return "sglang" }

func (sglang) wants() []string {
	names := []string{
		sglRunning, sglUsage, sglQueue, sglHits, sglRetracted, sglConfig,
		sglPageSize, sglPages, sglSlotsUsed, sglSlots,
	}
	for _, q := range sglQueues {
		names = append(names, q...)
	}
	return names
}

func (sglang) read(p page, o *ParseOptions, s *Sample) error {
	get := func(names ...string) *family {
		f := ofRank(p.first(names...), "dp_rank", o.Rank)
		// With priority scheduling the series per priority repeat the total.
		return f.is("priority", "")
	}
	s.Running = perReplica(get(sglRunning)).sum()
	s.KVUsage = get(sglUsage).max()
	s.Waiting = perReplica(get(sglQueue)).sum()
	for _, q := range sglQueues {
		if f := get(q...); s.Waiting.Known && f != nil {
			more := perReplica(f).sum()
			s.Waiting.V += more.V
			if !more.Known {
				s.Waiting = Value{}
			}
		}
	}
	s.CacheHit = get(sglHits).sum()
	s.Preempted = perReplica(get(sglRetracted)).sum()
	s.KVBlockSize = either(labelNumber(p[sglConfig], "page_size"), positive(get(sglPageSize).max()))
	s.KVBlocks = either(labelNumber(p[sglConfig], "num_pages"), positive(get(sglPages).max()))
	s.LoRA.SlotsUsed = perReplica(get(sglSlotsUsed)).max()
	s.LoRA.SlotsTotal = perReplica(get(sglSlots)).max()
	return nil
}

// perReplica keeps the series with the greatest value of each dp_rank.
func perReplica(f *family) *family {
	if f == nil {
		return nil
	}
	out := &family{name: f.name}
	at := map[string]int{}
	for _, m := range f.series {
		rank := m.label("dp_rank")
		i, ok := at[rank]
		switch {
		case !ok:
			at[rank] = len(out.series)
			out.series = append(out.series, m)
		case !usable(m.value) || m.value > out.series[i].value:
			out.series[i] = m // one that is no number makes the sum unknown
		}
	}
	return out
}
