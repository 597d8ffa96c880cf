package telemetry

import (
	"fmt"
	"strings"
	"testing"
)

// TestDevicesOfOneExporter: one page serves many pods, a pod's name, a UUID, a
// MIG instance and a host each find theirs, and the worst of several counts.
func TestDevicesOfOneExporter(t *testing.T) {
	d := NewDevices(gpus(t, metricsPage(t, "dcgm_k8s_mig.prom"), nil))
	const hot, chip = "GPU-22222222-0000-0000-0000-000000000000", "GPU-33333333-0000-0000-0000-000000000000"
	for _, c := range []struct {
		names             string
		util, temp        Value
		throttled, severe bool
		why               string
	}{
		{"ml/vllm-0", known(0.9873), known(88), true, false, "clock event sw_thermal"},
		{hot, known(0.9873), known(88), true, false, "clock event sw_thermal"},
		{"GPU-11111111-0000-0000-0000-000000000000", known(0.9512), known(61), false, false, ""},
		{"ml/small-0", known(0.812), known(55), false, true, "double-bit ECC error"},
		{chip + "/2", known(0.02), known(55), false, true, "double-bit ECC error"},
		{chip, known(0.812), known(55), false, true, "double-bit ECC error"},
		{"GPU-44444444-0000-0000-0000-000000000000", known(0), known(31), false, false, ""},
		{hot + "," + chip, known(0.9873), known(88), true, true, "double-bit ECC error"},
		{"host:gpu-node-1", known(0.9873), known(88), true, true, "double-bit ECC error"},
	} {
		t.Run(c.names, func(t *testing.T) {
			got := d.Of(c.names)
			wantValue(t, "utilisation", got.Utilisation, c.util)
			wantValue(t, "temperature", got.Temp, c.temp)
			if !got.Known || got.At != 1 || got.Throttled != c.throttled || got.Critical != c.severe || got.Fatal || got.Why != c.why {
				t.Errorf("%+v", got)
			}
		})
	}
	for _, nobody := range []string{"", "/", ",", "ml", "ml/", "vllm-0", "other/vllm-0", "GPU-1", chip + "/3", "gpu-node-1", "host:gpu-node-2"} {
		if got := d.Of(nobody); got.Known || got.At != 0 || got.Missing != nil {
			t.Errorf("%q: %+v", nobody, got)
		}
	}
}

func TestNameDevices(t *testing.T) {
	for list, want := range map[string]bool{
		"ns/pod": true, "GPU-1": true, "GPU-1/3": true, "host:n": true, "ns/a,ns/b": true, "GPU-1, host:n": true,
		"": false, ",": false, "pod": false, "/pod": false, "ns/": false, "a/b/c": false, "host:": false, "ns/pod,pod": false,
	} {
		if NameDevices(list) != want {
			t.Errorf("%q: %v", list, !want)
		}
	}
	for i := range gpus(t, metricsPage(t, "dcgm_k8s_mig.prom"), nil) {
		g := gpus(t, metricsPage(t, "dcgm_k8s_mig.prom"), nil)[i]
		if n := strings.Join(g.Names(), ","); !NameDevices(n) {
			t.Errorf("%q is refused", n)
		}
	}
}

// TestSharedDevice: time-sliced, a device has one row for each of its pods, and
// all of them have its faults.
func TestSharedDevice(t *testing.T) {
	d := NewDevices(gpus(t, `DCGM_FI_DEV_GPU_UTIL{UUID="a",namespace="ns",pod="p"} 20
DCGM_FI_DEV_GPU_UTIL{UUID="a",namespace="ns",pod="q"} 60
DCGM_FI_DEV_XID_ERRORS{UUID="a",namespace="ns",pod="p"} 79
`, nil))
	for _, user := range []string{"ns/p", "ns/q"} {
		if got := d.Of(user); !got.Fatal {
			t.Errorf("%s: %+v", user, got)
		}
		wantValue(t, user, d.Of(user).Utilisation, known(0.6))
	}
}

// TestExporterWithoutPods: outside Kubernetes rows have no pods; host and UUID
// find them, old label names too.
func TestExporterWithoutPods(t *testing.T) {
	d := NewDevices(gpus(t, `DCGM_FI_DEV_XID_ERRORS{gpu="0",uuid="GPU-a",Hostname="n1"} 0
DCGM_FI_DEV_XID_ERRORS{gpu="1",uuid="GPU-b",Hostname="n1"} 48
DCGM_FI_DEV_XID_ERRORS{gpu="0",Hostname="n2"} 0
`, nil))
	for names, fatal := range map[string]bool{"GPU-a": false, "GPU-b": true, "host:n1": true, "host:n2": false, "GPU-a, host:n2": false} {
		if got := d.Of(names); !got.Known || got.Fatal != fatal {
			t.Errorf("%s: %+v", names, got)
		}
	}
}

// TestOldestPage: what is known of several devices is as old as the oldest.
func TestOldestPage(t *testing.T) {
	d := NewDevices([]GPU{{UUID: "a", At: 9, told: sigXID}, {UUID: "b", At: 4, told: sigXID | sigECC}, {UUID: "c", At: 6}})
	got := d.Of("a,b,c")
	if got.At != 4 || !got.Known {
		t.Errorf("%+v", got)
	}
	if m := strings.Join(d.Of("a,b").Missing, ", "); m != "throttling, health watches, double-bit ECC, row remap" {
		t.Errorf("missing %q: what one of two does not tell is missing", m)
	}
}

// TestClockReasons decodes the mask: 0x8 hw_slowdown, 0x20 sw_thermal, 0x40
// hw_thermal and 0x80 hw_power_brake slow a device down, the others do not.
func TestClockReasons(t *testing.T) {
	for _, metric := range []string{"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"} {
		for mask, why := range map[int]string{
			0: "", 0x1: "", 0x2: "", 0x4: "", 0x10: "", 0x100: "", 0x117: "",
			0x8: "clock event hw_slowdown", 0x20: "clock event sw_thermal", 0x40: "clock event hw_thermal",
			0x80: "clock event hw_power_brake", 0x44: "clock event hw_thermal", 0x1ff: "clock event hw_slowdown",
		} {
			d := device(t, fmt.Sprintf("%s{} %d\n", metric, mask))
			if !d.Known || d.Throttled != (why != "") || d.Why != why {
				t.Errorf("%s %#x: %+v, want %q", metric, mask, d, why)
			}
		}
	}
}

// TestBlanks: DCGM's stand-ins for "not available" are no values and no faults.
func TestBlanks(t *testing.T) {
	for _, blank := range []string{"9223372036854775794", "9223372036854775792", "140737488355328.0", "2147483632", "NaN", "+Inf", "-1"} {
		var text strings.Builder
		for own := range dcgmNames {
			fmt.Fprintf(&text, "%s{xid=\"79\",health_watch=\"ALL\",clock_event=\"hw_thermal\"} %s\n", own, blank)
		}
		g := gpus(t, text.String(), nil)
		for i := range g {
			if g[i].severity() != 0 || g[i].told != 0 || g[i].Temp.Known || g[i].Utilisation.Known || g[i].SMClock.Known {
				t.Errorf("%s: %+v", blank, g[i])
			}
		}
	}
}

// TestEnvelope: how much of the power or the heat that a device may have is taken,
// the worst of several; without a limit it is unknown, and watts add up.
func TestEnvelope(t *testing.T) {
	for page, want := range map[string]struct{ power, envelope float64 }{
		"DCGM_FI_DEV_POWER_USAGE{} 350\n":                                                                                                    {350, 0},
		"DCGM_FI_DEV_POWER_USAGE{} 350\nDCGM_FI_DEV_POWER_MGMT_LIMIT{} 700\n":                                                                {350, 0.5},
		"DCGM_FI_DEV_POWER_USAGE{} 350\nDCGM_FI_DEV_POWER_MGMT_LIMIT{} 9223372036854775794\n":                                                {350, 0},
		"DCGM_FI_DEV_GPU_TEMP{} 72\nDCGM_FI_DEV_SLOWDOWN_TEMP{} 90\n":                                                                        {0, 0.8},
		"DCGM_FI_DEV_POWER_USAGE{} 630\nDCGM_FI_DEV_ENFORCED_POWER_LIMIT{} 700\nDCGM_FI_DEV_GPU_TEMP{} 45\nDCGM_FI_DEV_SLOWDOWN_TEMP{} 90\n": {630, 0.9},
	} {
		d := device(t, page)
		if d.Power.V != want.power || d.Envelope.V != want.envelope || d.Envelope.Known != (want.envelope > 0) {
			t.Errorf("%s: %+v %+v, want %v", page, d.Power, d.Envelope, want)
		}
	}
	two := NewDevices(gpus(t, `DCGM_FI_DEV_POWER_USAGE{UUID="GPU-1"} 100
DCGM_FI_DEV_POWER_USAGE{UUID="GPU-2"} 600
DCGM_FI_DEV_ENFORCED_POWER_LIMIT{UUID="GPU-1"} 400
DCGM_FI_DEV_ENFORCED_POWER_LIMIT{UUID="GPU-2"} 800
`, nil)).Of("GPU-1,GPU-2")
	if two.Power.V != 700 || two.Envelope.V != 0.75 {
		t.Errorf("two devices: %+v %+v", two.Power, two.Envelope)
	}
}
