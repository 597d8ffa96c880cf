package telemetry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/testdata"
)

// Every metrics page under testdata/metrics and testdata/engines is parsed. A
// page NAME.prom may have a NAME.expect.json beside it that states what must come out,
// so that a new page needs no code:
//
//	{"engine": "vllm", "waiting": 3, "kv_usage": null, "asleep": false,
//	 "lora": {"max": 2, "running": ["a"], "waiting": []},
//	 "metric": {"kv_usage": "vllm:gpu_cache_usage_perc"},
//	 "ranks": {"0": {"waiting": 5}},
//	 "gpus": [{"uuid": "GPU-…", "users": "ns/pod", "sm_clock": 139, "mem_temp": null}]}
//
// A number must be known and equal, null means that the field must be unknown
// (lora: no list of names), a key left out is not looked at. "metric" names the
// metric a value came from, "ranks" reads the page once more per rank.

func TestPages(t *testing.T) {
	n := 0
	for _, path := range promFiles(t) {
		text, want := readGolden(t, path)
		name := pageName(path)
		if id, ok := want["note"].(string); ok { // the acceptance case it is
			name = id + " " + name
		}
		t.Run(name, func(t *testing.T) {
			if gpus, ok := want["gpus"]; ok || strings.Contains(filepath.Base(path), "dcgm") {
				checkGPUs(t, text, gpus)
				return
			}
			s, err := Parse(text, ParseOptions{At: 7})
			if err != nil {
				t.Fatal(err)
			}
			checkSane(t, s)
			checkSample(t, s, want)
			ranks, _ := want["ranks"].(map[string]any)
			for rank, w := range ranks {
				s, err := Parse(text, ParseOptions{Rank: rank})
				if err != nil {
					t.Fatal(err)
				}
				checkSample(t, s, w.(map[string]any))
			}
		})
		n++
	}
	if n == 0 {
		t.Fatal("no metrics pages found")
	}
}

// TestPagesStated keeps the project's own pages from losing what they must give.
func TestPagesStated(t *testing.T) {
	for _, kind := range []string{"metrics", "engines"} {
		own := testdata.Dirs(t, kind)[0]
		for _, path := range promUnder(t, own) {
			if _, err := os.Stat(expectBeside(path)); err != nil {
				t.Errorf("%s: nothing states what must come out: %v", pageName(path), err)
			}
		}
	}
}

func promFiles(tb testing.TB) (paths []string) {
	tb.Helper()
	for _, kind := range []string{"metrics", "engines"} {
		for _, dir := range testdata.Dirs(tb, kind) {
			paths = append(paths, promUnder(tb, dir)...)
		}
	}
	return paths
}

func promUnder(tb testing.TB, dir string) (paths []string) {
	tb.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".prom") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return paths
}

func pageName(path string) string {
	dir, file := filepath.Split(path)
	up := filepath.Dir(filepath.Clean(dir))
	return filepath.Base(up) + "/" + filepath.Base(filepath.Clean(dir)) + "/" + file
}

func expectBeside(path string) string { return strings.TrimSuffix(path, ".prom") + ".expect.json" }

func readGolden(tb testing.TB, path string) (text []byte, want map[string]any) {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	stated, err := os.ReadFile(expectBeside(path))
	if errors.Is(err, fs.ErrNotExist) {
		return text, nil
	}
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(stated, &want); err != nil {
		tb.Fatalf("%s: %v", expectBeside(path), err)
	}
	return text, want
}

// checkSane holds for every page of every engine.
func checkSane(t *testing.T, s *Sample) {
	t.Helper()
	for _, v := range s.values() {
		if v.Known != (v.Metric != "") || (!v.Known && v.V != 0) || !usable(v.V) {
			t.Errorf("value %+v", *v)
		}
	}
	if s.KVUsage.V > 1 {
		t.Errorf("KVUsage %v > 1", s.KVUsage.V)
	}
	if s.KVEstimate && !s.KVUsage.Known {
		t.Error("estimate of an unknown usage")
	}
}

func numbers(s *Sample) map[string]Value {
	all := map[string]Value{}
	for _, sig := range s.Signals() {
		all[sig.Name] = sig.Value
	}
	return all
}

func checkSample(t *testing.T, s *Sample, want map[string]any) {
	t.Helper()
	nums := numbers(s)
	for key, w := range want {
		if v, ok := nums[key]; ok {
			checkValue(t, key, v, w)
			continue
		}
		switch key {
		case "engine":
			equal(t, key, s.Engine.String(), w)
		case "kv_estimate":
			equal(t, key, s.KVEstimate, w)
		case "asleep":
			equal(t, key, s.Asleep, w)
		case "cache_off":
			equal(t, key, s.CacheOff, w)
		case "clamped":
			equal(t, key, float64(s.Clamped), w)
		case "lora":
			equal(t, key, loraJSON(s.LoRA), w)
		case "metric":
			for field, name := range w.(map[string]any) {
				equal(t, "metric of "+field, nums[field].Metric, name)
			}
		case "ranks", "note":
		default:
			t.Errorf("unknown key %q in the stated result", key)
		}
	}
}

func checkValue(t *testing.T, key string, v Value, want any) {
	t.Helper()
	if want == nil {
		if v.Known {
			t.Errorf("%s = %v from %s, want unknown", key, v.V, v.Metric)
		}
		return
	}
	if !v.Known || v.V != want.(float64) {
		t.Errorf("%s = %+v, want %v", key, v, want)
	}
}

func loraJSON(l LoRA) any {
	if !l.Known {
		return nil
	}
	list := func(names []string) []any {
		out := []any{}
		for _, n := range names {
			out = append(out, n)
		}
		return out
	}
	return map[string]any{"max": float64(l.Max), "running": list(l.Running), "waiting": list(l.Waiting)}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func checkGPUs(t *testing.T, text []byte, want any) {
	t.Helper()
	gpus, err := ParseGPUs(text, nil, 7)
	if err != nil {
		t.Fatal(err)
	}
	if want == nil {
		return
	}
	list := want.([]any)
	if len(list) != len(gpus) {
		t.Fatalf("%d devices, want %d", len(gpus), len(list))
	}
	for i, g := range gpus {
		got := map[string]Value{
			"utilisation": g.Utilisation, "sm_clock": g.SMClock, "mem_clock": g.MemClock,
			"temp": g.Temp, "mem_temp": g.MemTemp,
		}
		for key, w := range list[i].(map[string]any) {
			if v, ok := got[key]; ok {
				checkValue(t, fmt.Sprintf("device %d %s", i, key), v, w)
				continue
			}
			switch key {
			case "uuid":
				equal(t, key, g.UUID, w)
			case "mig":
				equal(t, key, g.MIG, w)
			case "host":
				equal(t, key, g.Host, w)
			case "users":
				equal(t, key, strings.Join(g.Users, ","), w)
			case "throttled":
				equal(t, key, g.Throttled, w)
			case "critical":
				equal(t, key, g.Critical, w)
			case "fatal":
				equal(t, key, g.Fatal, w)
			case "why":
				equal(t, key, g.Why, w)
			case "missing":
				equal(t, key, strings.Join(g.told.missing(), ","), w)
			default:
				t.Errorf("unknown key %q in the stated result", key)
			}
		}
	}
}
