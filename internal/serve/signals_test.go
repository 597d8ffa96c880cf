package serve

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

// TestStateTellsSourceOfSignals: the admin API shows for each scraped number the
// metric it came from and its age, and what is unknown as null.
func TestStateTellsSourceOfSignals(t *testing.T) {
	r := newRig(t, rigOptions{pods: []pod.Spec{{Name: "a", Address: "10.0.0.1:80", Model: "m"}}})
	now := time.Now().UnixNano()
	s, err := telemetry.Parse([]byte("nv_cache_num_hits_per_model{model=\"m\"} 30\nnv_cache_num_misses_per_model{model=\"m\"} 10\n"), telemetry.ParseOptions{At: now})
	if err != nil {
		t.Fatal(err)
	}
	gpus, err := telemetry.ParseGPUs([]byte("DCGM_FI_DEV_XID_ERRORS{UUID=\"GPU-a\"} 79\nDCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-a\"} 88\n"), nil, now-int64(10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	s.Device = telemetry.NewDevices(gpus).Of("GPU-a")
	r.fleet.Telemetry.Put(r.pod("a").ID, s)

	var state view.Snapshot
	if err := json.Unmarshal(r.admin("GET", "/v1/state", "").Body.Bytes(), &state); err != nil {
		t.Fatal(err)
	}
	got := map[string]view.Signal{}
	for _, sig := range state.Pods[0].Telemetry.Signals {
		got[sig.Name] = sig
	}
	if u := got["kv_usage"]; u.Value == nil || *u.Value != 0.25 || u.Metric != "nv_cache_num_misses_per_model" || !u.Estimate || u.AgeMs == nil {
		t.Errorf("usage %+v", u)
	}
	if w := got["waiting"]; w.Value != nil || w.Metric != "" || w.AgeMs != nil {
		t.Errorf("unknown queue %+v", w)
	}
	if c := got["device_temp"]; c.Value == nil || *c.Value != 88 || c.Metric != "DCGM_FI_DEV_GPU_TEMP" || *c.AgeMs < 10_000 {
		t.Errorf("temperature %+v", c)
	}
	if d := state.Pods[0].Telemetry.Device; d == nil || !d.Fatal || d.Why != "XID 79" || len(d.Missing) != 4 || *d.AgeMs < 10_000 {
		t.Errorf("device %+v", d)
	}
}
