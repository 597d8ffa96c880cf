package sim

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// state is what the metrics page shows, read at one instant.
type state struct {
	running, waiting int
	usage            float64
	free, cachedIdle int
	stats            counters
	adapters         [2][]string // running, waiting; sorted
	ttft, e2e        histogram
}

func (e *Engine) state() state {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := state{running: len(e.sched.running), waiting: len(e.sched.waiting), usage: e.sched.pool.usage(),
		free: e.sched.pool.free, cachedIdle: e.sched.pool.cachedIdle(), stats: e.sched.stats,
		ttft: e.ttft.clone(), e2e: e.e2e.clone()}
	for i, list := range [][]*sequence{e.sched.running, e.sched.waiting} {
		for _, q := range list {
			if a := q.ns.adapter; a != "" && !slices.Contains(s.adapters[i], a) {
				s.adapters[i] = append(s.adapters[i], a)
			}
		}
		slices.Sort(s.adapters[i])
	}
	return s
}

func (e *Engine) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	p := page{}
	if s := e.state(); e.opt.Kind == pod.EngineSGLang {
		e.sglangPage(&p, s)
	} else {
		e.vllmPage(&p, s)
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Write(p.Bytes())
}

// vllmPage has the names, labels and order of a page of vLLM 0.32.0; families
// nobody reads for routing are left out.
func (e *Engine) vllmPage(p *page, s state) {
	l := fmt.Sprintf(`engine="0",model_name=%q`, e.opt.Model)
	p.gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", "", float64(e.started.UnixMilli())/1e3)
	p.gauge("vllm:num_requests_running", "Number of requests in model execution batches.", l, float64(s.running))
	p.gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.", l, float64(s.waiting))
	p.family("vllm:num_requests_waiting_by_reason", "gauge", "Number of waiting requests by reason.")
	p.value("vllm:num_requests_waiting_by_reason", l+`,reason="capacity"`, float64(s.waiting))
	p.value("vllm:num_requests_waiting_by_reason", l+`,reason="deferred"`, 0)
	p.family("vllm:engine_sleep_state", "gauge", "Engine sleep state.")
	p.value("vllm:engine_sleep_state", l+`,sleep_state="awake"`, 1)
	p.value("vllm:engine_sleep_state", l+`,sleep_state="weights_offloaded"`, 0)
	p.value("vllm:engine_sleep_state", l+`,sleep_state="discard_all"`, 0)
	p.gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", l, s.usage)
	p.counter("vllm:prefix_cache_queries_total", "Prefix cache queries, in terms of number of queried tokens.", l, s.stats.queried)
	p.counter("vllm:prefix_cache_hits_total", "Prefix cache hits, in terms of number of cached tokens.", l, s.stats.hit)
	p.counter("vllm:num_preemptions_total", "Cumulative number of preemption from the engine.", l, s.stats.preempted)
	p.counter("vllm:prompt_tokens_total", "Number of prefill tokens processed.", l, s.stats.prompt)
	p.counter("vllm:generation_tokens_total", "Number of generation tokens processed.", l, s.stats.output)
	p.family("vllm:request_success_total", "counter", "Count of successfully processed requests.")
	p.value("vllm:request_success_total", `engine="0",finished_reason="length",model_name="`+e.opt.Model+`"`, float64(s.stats.finished))
	p.value("vllm:request_success_total", `engine="0",finished_reason="abort",model_name="`+e.opt.Model+`"`, float64(s.stats.aborted))
	p.histogram("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.", l, s.ttft)
	p.histogram("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", l, s.e2e)
	p.gauge("vllm:cache_config_info", "Information of the LLMEngine CacheConfig", fmt.Sprintf(
		`block_size="%d",cache_dtype="auto",enable_prefix_caching="True",engine="0",num_gpu_blocks="%d",sliding_window="None"`,
		e.opt.BlockSize, e.opt.Blocks), 1)
	if len(e.opt.Adapters) > 0 {
		p.gauge("vllm:lora_requests_info", "Running stats on lora requests.", fmt.Sprintf(
			`max_lora="%d",running_lora_adapters=%q,waiting_lora_adapters=%q`, max(e.opt.MaxAdapters, 1),
			strings.Join(s.adapters[0], ","), strings.Join(s.adapters[1], ",")), float64(time.Now().UnixNano())/1e9)
	}
}

// sglangPage has the names, labels and order of a page of SGLang 0.5.23.
func (e *Engine) sglangPage(p *page, s state) {
	l := fmt.Sprintf(`engine_type="unified",model_name=%q,moe_ep_rank="0",pp_rank="0",tp_rank="0"`, e.opt.Model)
	short := fmt.Sprintf(`engine_type="unified",is_streaming="true",model_name=%q`, e.opt.Model)
	p.histogram("sglang:time_to_first_token_seconds", "Histogram of time to first token in seconds.", short, s.ttft)
	p.histogram("sglang:e2e_request_latency_seconds", "Histogram of End-to-end request latency in seconds", short, s.e2e)
	p.gauge("sglang:max_total_num_tokens", "Maximum total number of tokens in the KV cache pool.", l, float64(e.opt.Blocks*e.opt.BlockSize))
	p.gauge("sglang:page_size", "KV cache page size in tokens.", l, float64(e.opt.BlockSize))
	p.gauge("sglang:num_pages", "Number of KV cache pages.", l, float64(e.opt.Blocks))
	p.gauge("sglang:context_len", "Maximum context length.", l, float64(e.opt.MaxModelLen))
	p.gauge("sglang:num_running_reqs", "The number of running requests.", l, float64(s.running))
	p.gauge("sglang:num_queue_reqs", "The number of requests in the waiting queue.", l, float64(s.waiting))
	p.gauge("sglang:num_grammar_queue_reqs", "The number of requests in the grammar waiting queue.", l, 0)
	p.gauge("sglang:token_usage", "The token usage.", l, s.usage)
	p.gauge("sglang:kv_evictable_tokens", "The number of evictable tokens.", l, float64(s.cachedIdle*e.opt.BlockSize))
	p.gauge("sglang:kv_available_tokens", "The number of free tokens.", l, float64((s.free-s.cachedIdle)*e.opt.BlockSize))
	p.gauge("sglang:fwd_occupancy", "Forward pass occupancy.", l, math.NaN())
	p.counter("sglang:num_retracted_requests_total", "Total number of retracted requests.", l, s.stats.preempted)
	p.counter("sglang:prompt_tokens_total", "Number of prefill tokens processed.", short, s.stats.prompt)
	p.counter("sglang:generation_tokens_total", "Number of generation tokens processed.", short, s.stats.output)
	p.family("sglang:cached_tokens_total", "counter", "Number of cached prompt tokens.")
	p.value("sglang:cached_tokens_total", `cache_source="device",`+l, float64(s.stats.hit))
	if len(e.opt.Adapters) > 0 {
		p.gauge("sglang:lora_pool_slots_used", "The number of used LoRA slots.", l, float64(len(s.adapters[0])))
		p.gauge("sglang:lora_pool_slots_total", "The number of LoRA slots.", l, float64(max(e.opt.MaxAdapters, 1)))
	}
}

// page writes the Prometheus text format 0.0.4.
type page struct{ bytes.Buffer }

func (p *page) family(name, kind, help string) {
	fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func (p *page) value(name, labels string, v float64) {
	if labels != "" {
		labels = "{" + labels + "}"
	}
	fmt.Fprintf(p, "%s%s %v\n", name, labels, v)
}

func (p *page) gauge(name, help, labels string, v float64) {
	p.family(name, "gauge", help)
	p.value(name, labels, v)
}

func (p *page) counter(name, help, labels string, v int) {
	p.family(name, "counter", help)
	p.value(name, labels, float64(v))
}

func (p *page) histogram(name, help, labels string, h histogram) {
	p.family(name, "histogram", help)
	total := 0
	for i, n := range h.counts {
		total += n
		le := "+Inf"
		if i < len(latencyBounds) {
			le = fmt.Sprint(latencyBounds[i])
		}
		p.value(name+"_bucket", labels+`,le="`+le+`"`, float64(total))
	}
	p.value(name+"_count", labels, float64(total))
	p.value(name+"_sum", labels, h.sum)
}

// latencyBounds are in seconds.
var latencyBounds = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40}

type histogram struct {
	counts []int // per bound, and above the last
	sum    float64
}

func newHistogram() histogram { return histogram{counts: make([]int, len(latencyBounds)+1)} }

func (h *histogram) observe(d time.Duration) {
	i, _ := slices.BinarySearch(latencyBounds, d.Seconds())
	h.counts[i]++
	h.sum += d.Seconds()
}

func (h *histogram) clone() histogram {
	return histogram{counts: slices.Clone(h.counts), sum: h.sum}
}
