package telemetry

import (
	"fmt"
	"strings"
	"testing"
)

func gpus(t *testing.T, text string, prev []GPU) []GPU {
	t.Helper()
	g, err := ParseGPUs([]byte(text), prev, 1)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// device parses a page of one device that belongs to pod ns/p.
func device(t *testing.T, lines string) Device {
	t.Helper()
	text := strings.ReplaceAll(lines, "{", `{UUID="GPU-1",namespace="ns",pod="p",`)
	return NewDevices(gpus(t, text, nil)).Of("ns/p")
}

func TestEM16NobodysDevice(t *testing.T) {
	g := gpus(t, metricsPage(t, "dcgm_readme.prom")+"DCGM_FI_DEV_XID_ERRORS{UUID=\"GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52\",pod=\"\"} 79\n", nil)
	if d := NewDevices(g).Of("/"); d.Known || d.Fatal {
		t.Errorf("joined to the pod without a name: %+v", d)
	}
}

func TestEM17LabelForms(t *testing.T) {
	for _, host := range []string{"hostname", "Hostname"} {
		for _, form := range [][2]string{{"pod_namespace", "pod_name"}, {"namespace", "pod"}} {
			t.Run("EM-17 "+host+" "+form[1], func(t *testing.T) {
				g := gpus(t, fmt.Sprintf(`DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",%s="node-a",%s="ns",%s="p"} 40`+"\n", host, form[0], form[1]), nil)
				if len(g) != 1 || g[0].Host != "node-a" {
					t.Fatalf("devices %+v", g)
				}
				wantValue(t, "utilisation", NewDevices(g).Of("ns/p").Utilisation, known(0.4))
			})
		}
	}
}

func TestDeviceHealth(t *testing.T) {
	for _, c := range []struct {
		name, text                        string
		known, throttled, critical, fatal bool
	}{
		{"EM-18 XID 31", "DCGM_FI_DEV_XID_ERRORS{} 31\n", true, false, false, false},
		{"EM-18 XID 79", "DCGM_FI_DEV_XID_ERRORS{} 79\n", true, false, false, true},
		{"EM-18 absent", "DCGM_FI_DEV_SM_CLOCK{} 1400\n", false, false, false, false},
		{"the count forgives what the gauge remembers", "DCGM_FI_DEV_XID_ERRORS{} 79\nDCGM_EXP_XID_ERRORS_COUNT{xid=\"79\"} 0\n", true, false, false, false},
		{"XID count", "DCGM_EXP_XID_ERRORS_COUNT{xid=\"94\"} 1\n", true, false, false, true},
		{"EM-19 power_cap", "DCGM_EXP_CLOCK_EVENTS_COUNT{clock_event=\"power_cap\"} 40\n", true, false, false, false},
		{"EM-19 hw_thermal", "DCGM_EXP_CLOCK_EVENTS_COUNT{clock_event=\"power_cap\"} 40\nDCGM_EXP_CLOCK_EVENTS_COUNT{clock_event=\"hw_thermal\"} 2\n", true, true, false, false},
		{"row remap failure", "DCGM_FI_DEV_ROW_REMAP_FAILURE{} 1\n", true, false, false, true},
		{"failing health watch", "DCGM_EXP_GPU_HEALTH_STATUS{health_watch=\"NVLINK\"} 20\n", true, false, true, false},
		{"double-bit ECC error", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{} 1\n", true, false, true, false},
		{"no double-bit ECC error", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{} 0\n", true, false, false, false},
		{"row remapping worked", "DCGM_FI_DEV_ROW_REMAP_FAILURE{} 0\nDCGM_FI_DEV_XID_ERRORS{} 63\n", true, false, false, false},
		{"the last XID is an application's", "DCGM_FI_DEV_XID_ERRORS{err_code=\"13\",err_msg=\"Graphics Engine Exception\"} 13\n", true, false, false, false},
		{"an XID out of the count's window", "DCGM_EXP_XID_ERRORS_COUNT{window_size_in_ms=\"300000\"} 0\nDCGM_FI_DEV_XID_ERRORS{} 79\n", true, false, false, false},
		{"no clock events in the window", "DCGM_EXP_CLOCK_EVENTS_COUNT{window_size_in_ms=\"300000\"} 0\n", true, false, false, false},
		{"the device is gone", "DCGM_EXP_GPU_HEALTH_STATUS{health_watch=\"ALL\"} 20\n", true, false, true, true},
		{"warning health watch", "DCGM_EXP_GPU_HEALTH_STATUS{health_watch=\"NVLINK\"} 10\n", true, false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := device(t, c.text)
			if d.Known != c.known || d.Throttled != c.throttled || d.Critical != c.critical || d.Fatal != c.fatal {
				t.Errorf("%+v, want known %v throttled %v critical %v fatal %v", d, c.known, c.throttled, c.critical, c.fatal)
			}
			if bad := c.throttled || c.critical || c.fatal; bad != (d.Why != "") {
				t.Errorf("why %q", d.Why)
			}
			if len(d.Missing) == 0 {
				t.Error("signals that are off are not named")
			}
		})
	}
}

// TestThermalTimeGrows: the exporter reads its devices every 30 s, so the counter
// stands still for scrapes although the device is hot.
func TestThermalTimeGrows(t *testing.T) {
	var prev []GPU
	for i, c := range []struct {
		at      int64 // s
		counter string
		hot     bool
		told    bool
	}{
		{0, "2e15", false, false}, {5, "2e15", false, true}, {10, "2.1e15", true, true}, {15, "2.1e15", true, true},
		{40, "2.1e15", true, true}, {69, "2.1e15", true, true}, {70, "2.1e15", false, true}, {75, "0", false, true}, {80, "1e9", true, true},
	} {
		page := fmt.Sprintf(`DCGM_FI_DEV_THERMAL_VIOLATION{gpu="0",pod="p"} %s`+"\n", c.counter)
		g, err := ParseGPUs([]byte(page), prev, 1+c.at*1e9)
		if err != nil {
			t.Fatal(err)
		}
		if d := NewDevices(g).Of("/p"); d.Throttled != c.hot || d.Known != c.told {
			t.Errorf("scrape %d at %d s: throttled %v, known %v", i, c.at, d.Throttled, d.Known)
		}
		prev = g
	}
}

func TestSlowDown(t *testing.T) {
	var text strings.Builder
	for i, d := range []struct{ clock, util int }{{1980, 90}, {1980, 95}, {1950, 80}, {990, 90}, {210, 0}, {1980, 90}} {
		fmt.Fprintf(&text, "DCGM_FI_DEV_SM_CLOCK{UUID=\"%d\",pod=\"p%d\",modelName=\"H100\"} %d\n", i, i, d.clock)
		fmt.Fprintf(&text, "DCGM_FI_DEV_GPU_UTIL{UUID=\"%d\",pod=\"p%d\",modelName=\"H100\"} %d\n", i, i, d.util)
	}
	g := gpus(t, text.String(), nil)
	devices := NewDevices(g)
	for pod, want := range map[string]Value{
		"p0": known(1), "p2": known(1980.0 / 1950), "p3": known(2),
		"p4": {}, // an idle device lowers its clock on purpose
	} {
		wantValue(t, pod, devices.Of("/"+pod).SlowDown, want)
	}
}

func TestWorstOfSeveralDevices(t *testing.T) {
	g := gpus(t, `DCGM_FI_DEV_GPU_UTIL{UUID="a",pod="p"} 20
DCGM_FI_DEV_GPU_UTIL{UUID="b",pod="p"} 90
DCGM_FI_DEV_XID_ERRORS{UUID="a",pod="p"} 79
DCGM_FI_DEV_XID_ERRORS{UUID="b",pod="p"} 0
`, nil)
	d := NewDevices(g).Of("/p")
	wantValue(t, "utilisation", d.Utilisation, known(0.9))
	if !d.Fatal || d.Why != "XID 79" {
		t.Errorf("%+v", d)
	}
}
