package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/sim"
)

// build makes the binary under test and finds an Envoy.
func build(t *testing.T) options {
	t.Helper()
	dir := t.TempDir()
	models, err := filepath.Abs("../../testdata/engines/models")
	if err != nil {
		t.Fatal(err)
	}
	o := options{models: models, eppctl: filepath.Join(dir, "eppctl"), out: filepath.Join(dir, "out.json"), quiet: 100 * time.Millisecond, listen: 5 * time.Second}
	if out, err := exec.Command("go", "build", "-o", o.eppctl, "../../cmd/eppctl").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	out, err := exec.Command("../envoy.sh").Output()
	if err != nil {
		t.Fatalf("this test needs an Envoy: run `make deps`, or set ENVOY=/path/to/envoy: %v", err)
	}
	o.envoy = strings.TrimSpace(string(out))
	return o
}

// TestDriver runs the driver with the simulator in the engine's place, all
// scenarios, through a real serve and Envoy.
func TestDriver(t *testing.T) {
	o := build(t)
	o.env, o.hasty = "sim", true // three minutes less; TestDriverSaysNo is patient
	var out bytes.Buffer
	if err := run(t.Context(), o, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if !regexp.MustCompile(`ok +engine +stream +rank 0: [1-9]`).Match(out.Bytes()) {
		t.Errorf("no stream was checked:\n%s", &out)
	}
	for _, s := range scenarios {
		if !strings.Contains(out.String(), "\n  "+s.name) {
			t.Errorf("no scenario %q:\n%s", s.name, &out)
		}
	}
	var r struct {
		Rows []struct {
			Name  string
			Value float64
		}
	}
	b, err := os.ReadFile(o.out)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, x := range r.Rows {
		got[x.Name] = x.Value
	}
	if got["compared"] != 4 || got["compared_as_expected"] != 4 || got["requests"] != 85 || got["comparable"] != 78 || got["exact"] != 78 || got["cached_tokens_predicted"] < 5000 {
		t.Errorf("%v\n%s", got, &out)
	}
}

// mixedUp is an engine whose configuration names the event ports of another one.
type mixedUp struct {
	*simulated
	other *sim.Engine
}

func (m mixedUp) entry() string {
	return fmt.Sprintf("{name: engine, address: %q, events: %q, replay: %q}", m.addr(), m.other.EventsEndpoint(), m.other.ReplayEndpoint())
}

// TestDriverSaysNo: hits that the events do not tell of are mismatches, request by
// request, and the configuration at fault is found by the check.
func TestDriverSaysNo(t *testing.T) {
	o := build(t)
	encoder, err := encoder(o.models)
	if err != nil {
		t.Fatal(err)
	}
	options := sim.EngineOptions{Model: modelName, Encoder: encoder, BlockSize: 32, Blocks: poolSize/32 + 1, MaxModelLen: maxLength, Speedup: 20}
	other, err := sim.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	e := mixedUp{&simulated{options: options}, other}
	all := scenarios
	defer func() { scenarios = all }()
	scenarios = []scenario{{"twice", func(ctx context.Context, d *drive) error {
		p := d.ids(163)
		for _, name := range []string{"cold", "repeat", "again"} {
			if err := d.completion(ctx, name, body{"prompt": p}); err != nil {
				return err
			}
		}
		return nil
	}}}
	var out bytes.Buffer
	err = through(t.Context(), o, e, t.TempDir(), &out)
	if !errors.Is(err, errNegative) {
		t.Errorf("error %v\n%s", err, &out)
	}
	for _, want := range []string{"MISMATCH", "3 of them to be predicted: 1 exact", "events-differ", "connected-silent"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q:\n%s", want, &out)
		}
	}
}

func TestFind(t *testing.T) {
	empty := t.TempDir()
	if _, err := find(empty, "", empty); err == nil || !strings.Contains(err.Error(), "bin/vllm") {
		t.Errorf("error %v", err)
	}
	vllm := filepath.Join(empty, "bin", "vllm")
	if err := os.MkdirAll(filepath.Dir(vllm), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(vllm, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	e, err := find(empty, "models", empty)
	if err != nil || e.about() != "vllm of "+empty {
		t.Errorf("%v, error %v", e, err)
	}
}
