package telemetry

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/testdata"
)

func known(v float64) Value { return Value{V: v, Known: true} }

// wantValue compares number and knowledge, not the metric's name.
func wantValue(t *testing.T, what string, got, want Value) {
	t.Helper()
	if got.Known != want.Known || got.V != want.V {
		t.Errorf("%s = %+v, want %+v", what, got, want)
	}
}

func mustParse(t *testing.T, text string, o ParseOptions) *Sample {
	t.Helper()
	s, err := Parse([]byte(text), o)
	if err != nil {
		t.Fatal(err)
	}
	checkSane(t, s)
	return s
}

func metricsPage(tb testing.TB, name string) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(testdata.Dirs(tb, "metrics")[0], name))
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// load is what the pick needs of a sample.
type load struct{ waiting, running, usage Value }

func TestParse(t *testing.T) {
	unknown := Value{}
	const twoRanks = `# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0"} 9
vllm:num_requests_waiting{engine="1"} 0
vllm:kv_cache_usage_perc{engine="0"} 0.2
vllm:kv_cache_usage_perc{engine="1"} 0.9
`
	for _, c := range []struct {
		name, text string
		want       load
	}{
		{"EM-08 underscores", strings.ReplaceAll(metricsPage(t, "sglang_docs_sample.prom"), "sglang:", "sglang_"),
			load{known(2826), known(162), known(0.28)}},
		{"EM-22 both KV names", "vllm:gpu_cache_usage_perc 0.2\nvllm:kv_cache_usage_perc 0.3\n", load{unknown, unknown, known(0.3)}},
		{"EM-22 old alone", "vllm:gpu_cache_usage_perc 0.2\n", load{unknown, unknown, known(0.2)}},
		{"EM-22 new alone", "vllm:kv_cache_usage_perc 0.3\n", load{unknown, unknown, known(0.3)}},
		{"EM-23 two ranks", twoRanks, load{known(9), unknown, known(0.9)}},
		{"EM-24 priorities", `sglang:num_queue_reqs{model_name="m"} 5
sglang:num_queue_reqs{model_name="m",priority="1"} 3
sglang:num_queue_reqs{model_name="m",priority="None"} 2
`, load{known(5), unknown, unknown}},
		{"EM-24 total with an empty priority", "sglang:num_queue_reqs{priority=\"\"} 5\nsglang:num_queue_reqs{priority=\"0\"} 5\n",
			load{known(5), unknown, unknown}},
		{"a priority's series that lingers", "sglang:num_queue_reqs 5\nsglang:num_queue_reqs{priority=\"1\"} 9\n",
			load{known(5), unknown, unknown}},
		{"EM-25 second TYPE", `# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0"} 4
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="1"} 5
`, load{known(9), unknown, unknown}},
		{"EM-25 TYPE after samples", "vllm:num_requests_waiting 4\n# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_running 1\n",
			load{known(4), known(1), unknown}},
		{"EM-25 second HELP", "# HELP vllm:num_requests_waiting a\n# HELP vllm:num_requests_waiting b\nvllm:num_requests_waiting 4\n",
			load{known(4), unknown, unknown}},
		{"EM-25 CRLF", strings.ReplaceAll(twoRanks, "\n", "\r\n"), load{known(9), unknown, known(0.9)}},
		{"EM-25 no final newline", "vllm:num_requests_running 3\nvllm:num_requests_waiting 7", load{known(7), known(3), unknown}},
		{"EM-25 EOF mark", twoRanks + "# EOF\n", load{known(9), unknown, known(0.9)}},
		{"EM-26 exemplar on another family", "vllm:ttft_bucket{le=\"1\"} 3 # {trace_id=\"a\"} 0.5\nvllm:num_requests_waiting 2\n",
			load{known(2), unknown, unknown}},
		{"EM-27 NaN", "vllm:num_requests_waiting 1\nvllm:kv_cache_usage_perc NaN\n", load{known(1), unknown, unknown}},
		{"EM-27 +Inf", "vllm:num_requests_waiting 1\nvllm:kv_cache_usage_perc +Inf\n", load{known(1), unknown, unknown}},
		{"EM-27 -1", "vllm:num_requests_waiting 1\nvllm:kv_cache_usage_perc -1\n", load{known(1), unknown, unknown}},
		{"one rank of two is no number", "vllm:num_requests_waiting{engine=\"0\"} 9\nvllm:num_requests_waiting{engine=\"1\"} NaN\nvllm:num_requests_running 1\n",
			load{unknown, known(1), unknown}},
		{"sum beyond any number", "vllm:num_requests_waiting{engine=\"0\"} 1e308\nvllm:num_requests_waiting{engine=\"1\"} 1e308\nvllm:num_requests_running 1\n",
			load{unknown, known(1), unknown}},
		{"EM-33 comma in a label", `vllm:num_requests_waiting{model_name="m"} 3
vllm:num_requests_waiting_by_reason{reason="a, b"} 3
`, load{known(3), unknown, unknown}},
		{"EM-34 plain page gauges", "sglang:page_size 16\nsglang:num_pages 192\n", load{}},
		{"EM-37 histograms only", `trtllm_request_success_total{finished_reason="stop"} 4
trtllm_e2e_request_latency_seconds_bucket{le="1"} 4
`, load{}},
		{"EM-38 Ray names", "ray_vllm_num_requests_waiting{ReplicaId=\"x\"} 4\n", load{known(4), unknown, unknown}},
		{"quoted name", `{"vllm:num_requests_waiting",engine="0"} 4` + "\n", load{known(4), unknown, unknown}},
		{"same series twice: the last", "vllm:num_requests_waiting{a=\"1\",b=\"2\"} 4\nvllm:num_requests_waiting{b=\"2\",a=\"1\"} 6\n",
			load{known(6), unknown, unknown}},
		{"tensor ranks describe one replica", `sglang:num_queue_reqs{dp_rank="0",tp_rank="0"} 3
sglang:num_queue_reqs{dp_rank="0",tp_rank="1"} 4
sglang:num_queue_reqs{dp_rank="1",tp_rank="0"} 2
sglang:token_usage{dp_rank="0",tp_rank="0"} 0.5
sglang:token_usage{dp_rank="1",tp_rank="0"} 0.25
`, load{known(6), unknown, known(0.5)}},
		{"SGLang queues add up", `sglang:num_queue_reqs 1
sglang:num_grammar_queue_reqs 2
sglang:num_prefill_bootstrap_queue_reqs 4
sglang:num_decode_prealloc_queue_reqs 8
sglang:num_decode_transfer_queue_reqs 16
sglang:num_prefill_inflight_queue_reqs 32
`, load{known(31), unknown, unknown}},
		{"SGLang queue of unknown length", "sglang:num_queue_reqs 1\nsglang:num_grammar_queue_reqs NaN\n", load{}},
		{"Triton hosts vLLM", "nv_inference_count 9\nvllm:num_requests_waiting 1\n", load{known(1), unknown, unknown}},
		{"Triton pending without backend metrics", "nv_inference_pending_request_count{model=\"m\"} 3\n", load{known(3), unknown, unknown}},
		{"trtllm-serve", `trtllm_num_requests_running 5
trtllm:num_requests_waiting 6
trtllm_kv_cache_max_blocks 100
trtllm_kv_cache_used_blocks 25
`, load{known(6), known(5), known(0.25)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustParse(t, c.text, ParseOptions{})
			wantValue(t, "waiting", s.Waiting, c.want.waiting)
			wantValue(t, "running", s.Running, c.want.running)
			wantValue(t, "usage", s.KVUsage, c.want.usage)
		})
	}
}

func TestParseFails(t *testing.T) {
	for _, c := range []struct {
		name, text string
		engine     pod.Engine
		says       string
	}{
		{"empty page", "", 0, "no known engine"},
		{"JSON list", "[]", 0, "no known engine"},
		{"HTML", "<html><body>vllm:num_requests_waiting</body></html>", 0, "no known engine"},
		{"another program", "go_goroutines 12\n", 0, "no known engine"},
		{"another engine", "sglang:num_queue_reqs 1\n", pod.EngineVLLM, "configured vllm, found sglang"},
		{"EM-26 exemplar on a wanted line", "vllm:num_requests_waiting 2 # {trace_id=\"a\"} 0.5\n", 0, "metrics page"},
		{"cut inside a label", "vllm:num_requests_running 1\nvllm:num_requests_waiting{engine=\"", 0, "metrics page"},
		{"cut before the value", "vllm:num_requests_running 1\nvllm:num_requests_waiting ", 0, "metrics page"},
		{"value is no number", "vllm:num_requests_waiting many\n", 0, "metrics page"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Parse([]byte(c.text), ParseOptions{Engine: c.engine})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("sample %+v, error %v, want one that says %q", s, err, c.says)
			}
			if strings.Contains(c.says, "found") && !errors.Is(err, ErrNoMetrics) {
				t.Error("not ErrNoMetrics")
			}
		})
	}
}

func TestEM21DifferenceBetweenScrapes(t *testing.T) {
	a := mustParse(t, metricsPage(t, "llmd_sim_loaded.prom"), ParseOptions{})
	b := mustParse(t, metricsPage(t, "llmd_sim_idle.prom"), ParseOptions{Prev: a})
	wantValue(t, "running", b.Running, known(0))
	wantValue(t, "usage", b.KVUsage, known(0))
	if dq, dh := b.CacheQueried.V-a.CacheQueried.V, b.CacheHit.V-a.CacheHit.V; dq != 240 || dh != 240 {
		t.Errorf("hit/queried = %v/%v, want 240/240", dh, dq)
	}
	if why := b.Restarted(a); why != "" {
		t.Errorf("restart seen: %s", why)
	}
}

func TestEM27ClampedAndCounted(t *testing.T) {
	s := mustParse(t, "vllm:kv_cache_usage_perc 1.02\n", ParseOptions{})
	wantValue(t, "usage", s.KVUsage, known(1))
	if s.Clamped != 1 {
		t.Errorf("clamped %d, want 1", s.Clamped)
	}
}

func TestEM33AdapterSets(t *testing.T) {
	const text = `vllm:lora_requests_info{max_lora="4",running_lora_adapters="b,a",waiting_lora_adapters="a, b,a"} 5` + "\n"
	l := mustParse(t, text, ParseOptions{}).LoRA
	if !slices.Equal(l.Running, []string{"a", "b"}) || !slices.Equal(l.Running, l.Waiting) {
		t.Errorf("running %q, waiting %q: want the same set of a and b", l.Running, l.Waiting)
	}
}

func TestEM34PagesWithoutConfigInfo(t *testing.T) {
	s := mustParse(t, "sglang:page_size 16\nsglang:num_pages 192\n", ParseOptions{})
	wantValue(t, "block size", s.KVBlockSize, known(16))
	wantValue(t, "blocks", s.KVBlocks, known(192))
	s = mustParse(t, "sglang:cache_config_info{page_size=\"32\",num_pages=\"64\"} 1\nsglang:page_size 16\n", ParseOptions{})
	wantValue(t, "block size", s.KVBlockSize, known(32))
	wantValue(t, "blocks", s.KVBlocks, known(64))
}

func TestEM35Asleep(t *testing.T) {
	for value, want := range map[string]bool{"0": true, "1": false} {
		s := mustParse(t, `vllm:engine_sleep_state{sleep_state="awake"} `+value+`
vllm:engine_sleep_state{sleep_state="discard_all"} 0
`, ParseOptions{})
		if s.Asleep != want {
			t.Errorf("awake %s: asleep %v", value, s.Asleep)
		}
	}
}

func TestEM36TimesAddedUp(t *testing.T) {
	l := mustParse(t, `vllm:lora_requests_info{max_lora="2",running_lora_adapters="new",waiting_lora_adapters=""} 3.5e9
vllm:lora_requests_info{max_lora="2",running_lora_adapters="old",waiting_lora_adapters=""} 3.4e9
`, ParseOptions{}).LoRA
	if !slices.Equal(l.Running, []string{"new"}) {
		t.Errorf("running %q, want the series of 3.5e9", l.Running)
	}
}

func TestConfiguredEngineWins(t *testing.T) {
	const text = "vllm:num_requests_waiting 1\nnv_inference_pending_request_count{model=\"m\"} 3\n"
	for engine, want := range map[pod.Engine]float64{pod.EngineUnknown: 1, pod.EngineVLLM: 1, pod.EngineTriton: 3} {
		s := mustParse(t, text, ParseOptions{Engine: engine})
		wantValue(t, engine.String()+": waiting", s.Waiting, known(want))
	}
}

func TestEM37EngineIsTold(t *testing.T) {
	s := mustParse(t, "trtllm_request_success_total 4\n", ParseOptions{})
	if s.Engine != pod.EngineTRTLLM {
		t.Errorf("engine %s", s.Engine)
	}
}

func TestOldCounterNames(t *testing.T) {
	s := mustParse(t, "vllm:gpu_prefix_cache_queries_total 64\nvllm:gpu_prefix_cache_hits_total 32\nvllm:gpu_prefix_cache_hits_created 1.7e9\n", ParseOptions{})
	wantValue(t, "queried", s.CacheQueried, known(64))
	wantValue(t, "hit", s.CacheHit, known(32))
}

// TestRankOfUnlabelledSeries: what has no rank describes all of them.
func TestRankOfUnlabelledSeries(t *testing.T) {
	const text = "vllm:num_requests_waiting{engine=\"0\"} 4\nvllm:num_requests_waiting{engine=\"1\"} 5\nvllm:num_requests_running 3\n"
	s := mustParse(t, text, ParseOptions{Rank: "1"})
	wantValue(t, "waiting", s.Waiting, known(5))
	wantValue(t, "running", s.Running, known(3))
	wantValue(t, "waiting of a rank that is not there", mustParse(t, text, ParseOptions{Rank: "7"}).Waiting, Value{})
}

func TestTRTLLMCountsTokens(t *testing.T) {
	s := mustParse(t, `trtllm_kv_cache_tokens_per_block 32
trtllm_kv_cache_reused_blocks_total 3
trtllm_kv_cache_missed_blocks_total 1
`, ParseOptions{})
	wantValue(t, "hit", s.CacheHit, known(96))
	wantValue(t, "queried", s.CacheQueried, known(128))
}

func TestLoRASlotsWithoutNames(t *testing.T) {
	l := mustParse(t, "sglang:lora_pool_slots_used 1\nsglang:lora_pool_slots_total 4\n", ParseOptions{}).LoRA
	if l.Known {
		t.Error("SGLang tells no names")
	}
	wantValue(t, "used", l.SlotsUsed, known(1))
	wantValue(t, "total", l.SlotsTotal, known(4))
}
