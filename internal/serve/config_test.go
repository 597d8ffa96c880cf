package serve

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/testdata"
)

// parse reads a file of which a test gives the rest: one without a pod is refused.
func parse(text string) (*Config, error) {
	if !strings.Contains(text, "pods") {
		text = "pods: [{name: a, address: 'h:1'}]\n" + text
	}
	return parseConfig("eppctl.yaml", []byte(text), nil)
}

func TestConfigDefaults(t *testing.T) {
	c, err := LoadConfig("")
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen.ExtProc != ":9002" || c.Listen.Health != ":9003" || c.Listen.Admin != "127.0.0.1:9004" || c.Listen.Metrics != ":9090" {
		t.Errorf("listeners = %+v, want the ports the field expects", c.Listen)
	}
	if c.Limits.RequestBytes != 32<<20 || c.Scrape.Interval != 250*time.Millisecond {
		t.Errorf("limits = %+v, scrape = %+v", c.Limits, c.Scrape)
	}
}

func TestConfigFull(t *testing.T) {
	c, err := LoadConfig("testdata/config/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := []pod.Spec{
		{
			Name: "a", Address: "10.0.0.1:8000", Engine: pod.EngineVLLM, Model: "llama", Adapters: []string{"sql"}, Ranks: 2,
			Events: []string{"tcp://10.0.0.1:5557", "tcp://10.0.0.1:5558"}, Replay: []string{"tcp://10.0.0.1:5657", "tcp://10.0.0.1:5658"},
			Metrics: "http://10.0.0.1:8000/metrics", MaxCPULoRAs: 8, MaxContext: 131072, BlockSize: 32,
			Device: "inference/vllm-a", PrefillRate: 24000,
		},
		{
			Name: "[fd00::1]:8000", Address: "[fd00::1]:8000", Engine: pod.EngineSGLang, Role: pod.RolePrefill, Ranks: 2,
			Events: []string{"tcp://[fd00::1]:5557", "tcp://[fd00::2]:6557"},
		},
		{Name: "c", Address: "vllm-c.pool.svc:8000", Role: pod.RoleDecode, Draining: true, Ranks: 1, Bind: "tcp://*:5600"},
		{Name: "d", Address: "vllm-d:8000", Ranks: 1, Events: []string{"tcp://vllm-d:5557"}},
		{Name: "e", Address: "trtllm-e:8000", Engine: pod.EngineTRTLLM, Ranks: 1, Pull: 200 * time.Millisecond},
	}
	if !reflect.DeepEqual(c.Pods, want) {
		t.Errorf("pods:\n got %+v\nwant %+v", c.Pods, want)
	}
	if !c.StrictModels || c.Drain != 40*time.Second || c.LogLevel != "warn" || c.Limits.RequestBytes != 64<<20 || c.Envoy.EndpointsFile != "/run/eppctl/eds.yaml" {
		t.Errorf("scalars: %+v", c)
	}
	if !slices.Equal(c.Scrape.Devices, []string{"http://10.0.0.1:9400/metrics"}) {
		t.Errorf("scrape.device_exporters: %q", c.Scrape.Devices)
	}
	if c.Limits.FrameBytes != 16<<20 {
		t.Errorf("limits.frame_bytes = %v, a key left out must keep its default", c.Limits.FrameBytes)
	}
}

// TestConfigErrors compares the whole message with a golden file: the text is
// what the operator works with. EP-42, UX-12.
func TestConfigErrors(t *testing.T) {
	files, err := filepath.Glob("testdata/config/bad-*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = parseConfig("eppctl.yaml", text, nil)
			if err == nil {
				t.Fatal("accepted")
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			got := []byte(err.Error() + "\n")
			testdata.Golden(t, golden, got)
		})
	}
}

func TestConfigForms(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		ok   bool
	}{
		"comments":                 {"# nothing more\n", true},
		"empty sections":           {"models:\nlimits:\n", true},
		"anchor and merge key":     {"pods:\n- &a {name: a, address: 'h:1', engine: vllm}\n- {<<: *a, name: b, address: 'h:2'}\n", true},
		"cycle of anchors":         {"pods: &p [*p]\n", false},
		"level of another log":     {"log_level: WARNING\n", false},
		"alias of nothing":         {"pods: *nowhere\n", false},
		"number as a name":         {"pods: [{name: 0, address: 'h:1'}]\n", true},
		"truth as a name":          {"pods: [{name: true, address: 'h:1'}]\n", false},
		"duration without unit":    {"scrape: {interval: 250}\n", false},
		"O-108 scraped too often":  {"scrape: {interval: 99ms}\n", false},
		"O-108 as often as may be": {"scrape: {interval: 100ms}\n", true},
		"negative duration":        {"scrape: {interval: -1s}\n", false},
		"not a number":             {"models: [{name: m, prefill_tokens_per_second: .nan}]\n", false},
		"infinite":                 {"models: [{name: m, prefill_tokens_per_second: .inf}]\n", false},
		"second document":          {"strict_models: true\n---\nstrict_models: false\n", false},
		"duplicate key":            {"strict_models: true\nstrict_models: false\n", false},
		"list at the top":          {"- a\n", false},
		"admin by unix socket":     {"listen: {admin: 'unix:/run/eppctl.sock'}\n", true},
		"admin off":                {"listen: {admin: ''}\n", true},
		"ADM-01 admin in public":   {"listen: {admin: ':9004'}\n", false},
		"ext_proc off":             {"listen: {ext_proc: ''}\n", false},
		"health on ext_proc":       {"listen: {ext_proc: ':9002', health: ':9002'}\n", true},
		"metrics on ext_proc":      {"listen: {ext_proc: ':9002', metrics: ':9002'}\n", false},
		"one port, all hosts":      {"listen: {ext_proc: ':9004'}\n", false}, // admin has 127.0.0.1:9004
		"one port, two hosts":      {"listen: {metrics: '[::1]:9004'}\n", true},
		"health beside ext_proc":   {"listen: {ext_proc: ':9002', health: '127.0.0.1:9002'}\n", false},
		"system's choice":          {"listen: {ext_proc: ':0', health: ':0', metrics: ':0'}\n", true},
		"weights not finite":       {"weights: {alpha: .inf}\n", false},
		"weights not a number":     {"weights: {alpha: .nan}\n", false},
		"a number with exponent":   {"weights: {tiers: {host: {bandwidth: 25e9}}}\n", true},
		"a number too large":       {"weights: {tiers: {host: {bandwidth: 1e999}}}\n", false},
		"a quoted number":          {"weights: {alpha: '3'}\n", false},
		"+inf by word":             {"weights: {alpha: +inf}\n", false},
		"empty text":               {"weights: {alpha: ''}\n", false},
		"weights negative":         {"weights: {breaker: {weight: -1}}\n", false},
		"weights of a model":       {"models: [{name: m, prefill_tokens_per_second: -1}]\n", false},
		"unknown preset":           {"weights: {preset: best}\n", false},
		"preset of a kind":         {"weights: {preset: [fixed]}\n", false},
		"decisions recorded":       {"decisions: {file: /tmp/a.eptap, rotate_size: 1MiB, keep: 1}\n", true},
		"decisions for ever":       {"decisions: {file: /tmp/a.eptap, keep: 0}\n", false},
		"decisions in crumbs":      {"decisions: {file: /tmp/a.eptap, rotate_size: 1KiB}\n", false},
		"IPv6 listener":            {"listen: {ext_proc: '[::1]:9002'}\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(tc.text); (err == nil) != tc.ok {
				t.Errorf("err = %v, want ok = %v", err, tc.ok)
			}
		})
	}
}

// TestConfigDepth: the parser recurses; no text may take it down.
func TestConfigDepth(t *testing.T) {
	for _, unit := range []string{"[", "{", "- ", "a: ", "? ", "&a ", "*a ", "!t ", "&a\n", "- [", "\"", "'", "|", "a:\n  "} {
		for _, n := range []int{40, 3000} {
			if _, err := parse(strings.Repeat(unit, n)); err == nil {
				t.Errorf("%d times %q was accepted", n, unit)
			}
		}
	}
	var json strings.Builder // the same language on one line
	for i := range 200 {
		fmt.Fprintf(&json, `%s{"name": "m%d", "aliases": ["a%d"]}`, strings.Repeat(", ", min(i, 1)), i, i)
	}
	if _, err := parse(`{"pods": [{"address": "h:1"}], "models": [` + json.String() + `]}`); err != nil {
		t.Error(err)
	}
}

func TestConfigFile(t *testing.T) {
	dir := t.TempDir()
	for name, prepare := range map[string]func(path string) error{
		"missing":   func(string) error { return nil },
		"directory": func(p string) error { return os.Mkdir(p, 0o755) },
		"too large": func(p string) error { return os.WriteFile(p, make([]byte, maxConfigBytes+1), 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			if err := prepare(path); err != nil {
				t.Fatal(err)
			}
			_, err := LoadConfig(path)
			if err == nil || !strings.HasPrefix(err.Error(), path+": ") {
				t.Errorf("err = %v, want it to name the file", err)
			}
		})
	}
}

// TestConfigOverride: a flag beats the file and is held to the same rules. UX-13.
func TestConfigOverride(t *testing.T) {
	admin := func(addr string) Override {
		return Override{"listen.admin", "--admin-addr", func(c *Config) { c.Listen.Admin = addr }}
	}
	text := []byte("pods: [{address: 'h:1'}]\nlisten: {admin: '127.0.0.1:1', metrics: ':7'}\n")
	c, err := parseConfig("eppctl.yaml", text, []Override{admin("127.0.0.1:2")})
	if err != nil || c.Listen.Admin != "127.0.0.1:2" {
		t.Errorf("admin = %v, err = %v", c.Listen.Admin, err)
	}
	metrics := Override{"listen.metrics", "EPPCTL_METRICS_ADDR", func(c *Config) { c.Listen.Metrics = "nowhere" }}
	_, err = parseConfig("eppctl.yaml", text, []Override{admin("0.0.0.0:2"), metrics})
	want := `--admin-addr: found "0.0.0.0:2", which is not a loopback address; expected 127.0.0.1:PORT, [::1]:PORT or unix:/PATH; the admin API has no authentication
EPPCTL_METRICS_ADDR: found "nowhere"; expected HOST:PORT or :PORT`
	if err == nil || err.Error() != want {
		t.Errorf("the file is blamed for a flag, or nothing is:\n%v\nwant:\n%s", err, want)
	}
	_, err = parseConfig("eppctl.yaml", text, []Override{admin("127.0.0.1:7"), {"listen.metrics", "--metrics-addr", func(c *Config) { c.Listen.Metrics = "127.0.0.1:7" }}})
	if want = `--metrics-addr: found "127.0.0.1:7", where --admin-addr listens too; expected an address of its own`; err == nil || err.Error() != want {
		t.Errorf("two listeners on one port: %v", err)
	}
}

// TestConfigWithoutPods: a file that names no pod is a slip, whatever else is in it.
func TestConfigWithoutPods(t *testing.T) {
	for _, text := range []string{"", "# nothing yet\n", "pods:\n", "pods: []\n", "models: [{name: m}]\n"} {
		_, err := parseConfig("eppctl.yaml", []byte(text), nil)
		if err == nil || !strings.Contains(err.Error(), "pods: found none; expected at least one") {
			t.Errorf("%q: %v", text, err)
		}
	}
	_, err := parseConfig("eppctl.yaml", []byte("podz: []\n"), nil)
	if err == nil || strings.Contains(err.Error(), "found none") {
		t.Errorf("the slip behind it is not told alone: %v", err)
	}
}

// TestConfigWording: every message but that of an unknown key says what was found
// and what was expected.
func TestConfigWording(t *testing.T) {
	files, err := filepath.Glob("testdata/config/*.golden")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if both := strings.Contains(line, ": found ") && strings.Contains(line, "; expected "); !both && !strings.Contains(line, "unknown key") {
				t.Errorf("%s: %s", file, line)
			}
		}
	}
}

func TestModelsResolve(t *testing.T) {
	c, err := LoadConfig("testdata/config/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, base, adapter string
		ok                  bool
	}{
		{"llama", "llama", "", true}, {"gpt", "llama", "", true}, {"sql", "llama", "sql", true},
		{"", "llama", "", true}, {"nobody", "", "", false}, {"qwen", "qwen", "", true},
	} {
		base, adapter, ok := c.Models.Resolve(tc.name)
		if base != tc.base || adapter != tc.adapter || ok != tc.ok {
			t.Errorf("Resolve(%q) = %q, %q, %v", tc.name, base, adapter, ok)
		}
	}
}

// TestConfigWeights: a preset is the ground, whichever order the keys have, and a
// model's own numbers lie over those of all models. O-59.
func TestConfigWeights(t *testing.T) {
	c, err := parse(`
models: [{name: m, kv_bytes_per_token: 128KiB}]
weights: {beta: 0.03, preset: fixed, breaker: {depth: 16}, prefill_tokens_per_second: 20480}
`)
	if err != nil {
		t.Fatal(err)
	}
	p := c.Weights
	if p.Alpha != 4 || p.Pool != 0 || p.Beta != 0.03 || p.Breaker.Depth != 16 || p.Breaker.Ratio != 2 {
		t.Errorf("policy %+v", p)
	}
	if m := p.Models["m"]; m.BytesPerToken != 128<<10 || m.TokensPerSecond != 20480 {
		t.Errorf("calibration of m %+v", m)
	}
}

// TestConfigReference: docs/config.md names every key of the file and no other,
// states the true default of each, and its example is a valid file.
func TestConfigReference(t *testing.T) {
	text, err := os.ReadFile("../../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	documented := map[string]string{} // key -> default column
	for line := range strings.Lines(page) {
		if cells := strings.Split(line, "|"); len(cells) > 3 && strings.HasPrefix(cells[1], " `") {
			documented[strings.Trim(cells[1], " `")] = cells[2]
		}
	}
	for _, k := range configKeys() {
		if _, ok := documented[k]; !ok {
			t.Errorf("docs/config.md has no row for %s", k)
		}
	}
	for k := range documented {
		if !slices.Contains(configKeys(), k) {
			t.Errorf("docs/config.md has a row for %s, which is no key", k)
		}
	}
	f := defaults()
	checkDefaults(t, documented, reflect.ValueOf(&f).Elem(), "")

	_, example, _ := strings.Cut(page, "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	if c, err := parse(example); err != nil || len(c.Pods) == 0 {
		t.Errorf("the example: %d pods, %v", len(c.Pods), err)
	}
}

// checkDefaults compares the first word in backquotes of each default column
// with what the program starts from; none stands for the zero value.
func checkDefaults(t *testing.T, documented map[string]string, v reflect.Value, prefix string) {
	t.Helper()
	for _, f := range fieldsOf(v.Type()) {
		key, at := join(prefix, f.name), v.FieldByIndex(f.index)
		switch {
		case at.Kind() == reflect.Struct:
			checkDefaults(t, documented, at, key)
			continue
		case at.Kind() == reflect.Slice:
			continue
		}
		said := reflect.New(at.Type())
		if parts := strings.Split(documented[key], "`"); len(parts) > 2 && key != "weights.preset" { // "" is the first preset
			n, err := parser.ParseBytes([]byte("x: "+strconv.Quote(parts[1])), 0)
			if err != nil {
				t.Fatal(err)
			}
			if number := at.Kind() != reflect.String && at.Type() != reflect.TypeFor[time.Duration]() && at.Type() != reflect.TypeFor[Bytes](); number {
				if n, err = parser.ParseBytes([]byte("x: "+parts[1]), 0); err != nil {
					t.Fatal(err)
				}
			}
			node := n.Docs[0].Body.(*ast.MappingNode).Values[0].Value
			if err := setScalar(node, said.Interface()); err != nil {
				t.Errorf("%s: default %q: %v", key, parts[1], err)
			}
		}
		if said.Elem().Interface() != at.Interface() {
			t.Errorf("docs/config.md says %s is %q, it is %v", key, strings.TrimSpace(documented[key]), at.Interface())
		}
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]Bytes{"32MiB": 32 << 20, "1.5GB": 1.5e9, "100": 100, "7 kB": 7000, "0B": 0} {
		if got, err := parseBytes(text); err != nil || got != want {
			t.Errorf("parseBytes(%q) = %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "MiB", "-1MiB", "1e300GiB", "NaN", "1TiBs"} {
		if got, err := parseBytes(text); err == nil {
			t.Errorf("parseBytes(%q) = %d, want an error", text, got)
		}
	}
	for b, want := range map[Bytes]string{32 << 20: "32MiB", 1 << 30: "1GiB", 1000: "1000B", 1536: "1536B", 2048: "2KiB"} {
		if b.String() != want {
			t.Errorf("%d = %s, want %s", int64(b), b, want)
		}
	}
}

func FuzzConfig(f *testing.F) {
	files, _ := filepath.Glob("testdata/config/*.yaml")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parseConfig("eppctl.yaml", text, nil)
		if err == nil && len(c.Pods) > pod.MaxMembers {
			t.Errorf("%d pods accepted", len(c.Pods))
		}
		if err != nil && err.Error() == "" {
			t.Error("an error without text")
		}
		if _, jsonErr := json.Marshal(c.Values()); err == nil && jsonErr != nil {
			t.Error(jsonErr)
		}
	})
}
