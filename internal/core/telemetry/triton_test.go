package telemetry

import (
	"fmt"
	"strings"
	"testing"
)

func cachePage(hits, misses int) string {
	return fmt.Sprintf("nv_cache_num_hits_per_model{model=\"m\",version=\"1\"} %d\nnv_cache_num_misses_per_model{model=\"m\",version=\"1\"} %d\n", hits, misses)
}

// TestTritonEstimate follows one pod over its scrapes: EM-11 the first two,
// EM-12 the next.
func TestTritonEstimate(t *testing.T) {
	var prev *Sample
	for i, c := range []struct {
		name         string
		hits, misses int
		want         float64
	}{
		{"EM-11 lifetime at first", 30, 10, 0.25},
		{"EM-11 difference", 60, 70, 60.0 / 90},
		{"EM-12 unchanged", 60, 70, 60.0 / 90},
		{"EM-12 restart", 1, 1, 0.5},
		{"only hits", 10, 1, 0},
		{"restart seen by one counter", 5, 5, 0.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustParse(t, cachePage(c.hits, c.misses), ParseOptions{Prev: prev})
			wantValue(t, fmt.Sprintf("usage of scrape %d", i+1), s.KVUsage, known(c.want))
			if !s.KVEstimate {
				t.Error("not marked as an estimate")
			}
			if s.CacheHit.Known || s.CacheQueried.Known {
				t.Error("the response cache passed for a prefix cache")
			}
			prev = s
		})
	}
}

func TestTritonBlockMetrics(t *testing.T) {
	readme := metricsPage(t, "triton_trtllm_backend_readme.prom")
	var noUsed strings.Builder
	for line := range strings.Lines(readme) {
		if !strings.Contains(line, `kv_cache_block_type="used"`) {
			noUsed.WriteString(line)
		}
	}
	for _, c := range []struct {
		name, text string
		want       Value
	}{
		{"EM-10 fraction without the count", noUsed.String(), known(0.4875)},
		{"EM-13 block metrics beside the response cache", readme + cachePage(30, 10), known(1.0 / 6239)},
		{"EM-14 no lookups yet", cachePage(0, 0), Value{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustParse(t, c.text, ParseOptions{})
			wantValue(t, "usage", s.KVUsage, c.want)
			if s.KVEstimate {
				t.Error("marked as an estimate")
			}
		})
	}
}

func TestTritonModels(t *testing.T) {
	const text = `nv_trt_llm_request_metrics{model="ensemble",request_type="waiting"} 7
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="waiting"} 3
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="active"} 2
`
	t.Run("EM-15 none named", func(t *testing.T) {
		_, err := Parse([]byte(text), ParseOptions{})
		if err == nil || !strings.Contains(err.Error(), "ensemble, tensorrt_llm: name the model") {
			t.Fatalf("error %v", err)
		}
	})
	t.Run("EM-15 one named", func(t *testing.T) {
		s := mustParse(t, text, ParseOptions{Model: "tensorrt_llm"})
		wantValue(t, "waiting", s.Waiting, known(3))
		wantValue(t, "running", s.Running, known(2))
	})
	t.Run("served name differs from the only model", func(t *testing.T) {
		s := mustParse(t, metricsPage(t, "triton_trtllm_backend_readme.prom"), ParseOptions{Model: "llama"})
		wantValue(t, "waiting", s.Waiting, known(1))
	})
}
