package telemetry

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestCarry(t *testing.T) {
	const s1 = int64(time.Second)
	full := mustParse(t, "vllm:num_requests_waiting 9\nvllm:kv_cache_usage_perc 0.7\n", ParseOptions{At: 1 * s1})
	var prev *Sample
	for at, want := range map[int64]Value{2: known(9), 6: known(9), 7: {}} {
		// The metric is missing from every page after the first.
		prev = full
		for now := int64(2); now <= at; now++ {
			s := mustParse(t, "vllm:kv_cache_usage_perc 0.1\n", ParseOptions{At: now * s1, Prev: prev})
			s.Carry(prev, 5*s1)
			prev = s
		}
		wantValue(t, "waiting", prev.Waiting, want)
		wantValue(t, "usage", prev.KVUsage, known(0.1))
		if want.Known && prev.Waiting.At != 1*s1 {
			t.Errorf("at %d s: value is dated %d", at, prev.Waiting.At)
		}
	}
}

func TestCarryKeepsTheMarkOfAnEstimate(t *testing.T) {
	a := mustParse(t, cachePage(30, 10), ParseOptions{At: 1})
	b := mustParse(t, "nv_inference_count 1\n", ParseOptions{At: 2, Prev: a})
	b.Carry(a, 10)
	wantValue(t, "usage", b.KVUsage, known(0.25))
	if !b.KVEstimate {
		t.Error("a carried estimate passes for exact")
	}
}

func TestRestarted(t *testing.T) {
	const page = "process_start_time_seconds 100\nvllm:prefix_cache_queries_total 50\nvllm:num_preemptions_total 2\n"
	for _, c := range []struct{ name, now, why string }{
		{"same process", page, ""},
		{"new start time", strings.Replace(page, " 100", " 101", 1), "process start time changed"},
		{"counter back", strings.Replace(page, " 50", " 3", 1), "vllm:prefix_cache_queries_total went back"},
		{"identity unknown", "vllm:num_requests_waiting 1\n", ""},
		{"another name of the counter", "vllm:gpu_prefix_cache_queries_total 3\n", ""},
		{"another engine", "sglang:cached_tokens_total 0\nprocess_start_time_seconds 7\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := mustParse(t, page, ParseOptions{})
			if got := mustParse(t, c.now, ParseOptions{}).Restarted(before); got != c.why {
				t.Errorf("%q, want %q", got, c.why)
			}
		})
	}
	if got := mustParse(t, page, ParseOptions{}).Restarted(nil); got != "" {
		t.Errorf("first sample: %q", got)
	}
}

// TestSignalsTellSourceAndTime: every number says which metric it came from, and
// a carried one keeps the time of its own page.
func TestSignalsTellSourceAndTime(t *testing.T) {
	a := mustParse(t, "vllm:num_requests_waiting 9\nray_vllm_kv_cache_usage_perc 0.7\n", ParseOptions{At: 1})
	b := mustParse(t, "ray_vllm_kv_cache_usage_perc 0.8\n", ParseOptions{At: 5})
	b.Carry(a, 10)
	b.Device = NewDevices(gpus(t, "DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-a\"} 88\n", nil)).Of("GPU-a")
	got := map[string]Signal{}
	for _, s := range b.Signals() {
		got[s.Name] = s
	}
	for name, want := range map[string]Signal{
		"waiting":     {"waiting", Value{V: 9, Known: true, Metric: "vllm:num_requests_waiting", At: 1}, 1},
		"kv_usage":    {"kv_usage", Value{V: 0.8, Known: true, Metric: "ray_vllm_kv_cache_usage_perc"}, 5},
		"running":     {"running", Value{}, 5},
		"device_temp": {"device_temp", Value{V: 88, Known: true, Metric: "DCGM_FI_DEV_GPU_TEMP"}, 1},
	} {
		if got[name] != want {
			t.Errorf("%s: %+v, want %+v", name, got[name], want)
		}
	}
	if n := len(b.values()) + 7; len(got) != n { // those that do not age, and the device's
		t.Errorf("%d signals, want %d", len(got), n)
	}
}

// A page may say any number.
func TestCount(t *testing.T) {
	for v, want := range map[float64]int{0: 0, 3.9: 3, math.MaxInt32: math.MaxInt32, 99999999999999999999: math.MaxInt32, 1e308: math.MaxInt32} {
		if got := (Value{V: v, Known: true}).Count(); got != want {
			t.Errorf("%g: %d, want %d", v, got, want)
		}
	}
}

// A page may name as many adapters as it has room for. What is kept of them is bounded in
// names and in bytes, on the page and in the history: decisions walk the names, and recent
// ones keep the pages that they read.
func TestAdaptersAreBounded(t *testing.T) {
	list := func(n, length int) string {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("%0*d", length, i)
		}
		return strings.Join(names, ",")
	}
	for name, c := range map[string]struct {
		running     string
		names, seen int
	}{
		"as many as there may be": {list(maxActive, 64), maxActive, maxActive},
		"one more":                {list(maxActive+1, 8), maxActive, maxActive},
		"half a million":          {list(500_000, 7), maxActive, maxActive},
		"long ones":               {list(1000, maxSeenName), maxNames / maxSeenName, maxNames / maxSeenName},
		"longer than any request": {list(1000, maxSeenName+1) + ",a", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			page := `vllm:lora_requests_info{running_lora_adapters="` + c.running + `",waiting_lora_adapters="` + c.running + `"} 1` + "\n"
			s := mustParse(t, page, ParseOptions{At: 1})
			if len(s.LoRA.Running) != c.names || len(s.LoRA.Waiting) != c.names {
				t.Errorf("%d running and %d waiting, want %d", len(s.LoRA.Running), len(s.LoRA.Waiting), c.names)
			}
			next := mustParse(t, page, ParseOptions{At: 2})
			next.Carry(s, 1e9)
			if len(next.LoRA.Seen) != c.seen {
				t.Errorf("%d seen, want %d", len(next.LoRA.Seen), c.seen)
			}
		})
	}
}

// A name that is kept keeps nothing of a list beyond all reason.
func TestAdaptersKeepNoPage(t *testing.T) {
	page := []byte(`vllm:lora_requests_info{running_lora_adapters="` + strings.Repeat("a,", 2<<20) + `",waiting_lora_adapters=""} 1` + "\n")
	const pages = 16
	var before, after runtime.MemStats
	kept := make([]*Sample, pages)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range kept {
		s, err := Parse(page, ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		kept[i] = s
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > pages<<16 {
		t.Errorf("%d samples keep %d bytes, want less than 64 KiB each", pages, grown)
	}
	runtime.KeepAlive(kept)
}
