package telemetry

import (
	"cmp"
	"slices"
	"strings"
)

// GPU is one device row of a DCGM exporter page. The exporter is one per node,
// so a page has the devices of many pods; Join finds those of one.
type GPU struct {
	UUID, MIG, Model string
	Host             string
	Namespace, Pod   string // "" for a device nobody uses

	Utilisation Value // 0..1
	SMClock     Value // MHz
	MemClock    Value // MHz
	Temp        Value // °C
	MemTemp     Value // °C
	Thermal     Value // ns spent throttled for heat, counter

	Throttled, Critical, Fatal Verdict
	Why                        string // the signal behind the worst verdict
}

// Verdict is a yes-or-no signal that may be switched off in the exporter.
type Verdict uint8

// The verdicts; a signal that is not published is no clean bill of health.
const (
	VerdictUnknown Verdict = iota
	VerdictNo
	VerdictYes
)

const (
	dcgmUtil     = "DCGM_FI_DEV_GPU_UTIL"
	dcgmActive   = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
	dcgmSM       = "DCGM_FI_DEV_SM_CLOCK"
	dcgmMem      = "DCGM_FI_DEV_MEM_CLOCK"
	dcgmTemp     = "DCGM_FI_DEV_GPU_TEMP"
	dcgmMemTemp  = "DCGM_FI_DEV_MEMORY_TEMP"
	dcgmThermal  = "DCGM_FI_DEV_THERMAL_VIOLATION"
	dcgmClockEv  = "DCGM_EXP_CLOCK_EVENTS_COUNT"
	dcgmXID      = "DCGM_FI_DEV_XID_ERRORS" // the last one, for ever
	dcgmXIDCount = "DCGM_EXP_XID_ERRORS_COUNT"
	dcgmRemap    = "DCGM_FI_DEV_ROW_REMAP_FAILURE"
	dcgmHealth   = "DCGM_EXP_GPU_HEALTH_STATUS"
)

var dcgmWants = wantSet(func(add func(...string)) {
	add(dcgmUtil, dcgmActive, dcgmSM, dcgmMem, dcgmTemp, dcgmMemTemp, dcgmThermal,
		dcgmClockEv, dcgmXID, dcgmXIDCount, dcgmRemap, dcgmHealth)
})

// xidFatal are the errors after which a device cannot be trusted with work:
// double-bit ECC 48, bus and firmware 74 79 119 120, contained and uncontained
// memory errors 92 94 95. 63 and 64 (row remapping) count only beside a remap
// failure; 13, 31, 43 and 45 are mostly faults of the application.
var xidFatal = map[string]bool{"48": true, "74": true, "79": true, "92": true, "94": true, "95": true, "119": true, "120": true}

// clockFatigue are the clock events that mean a degraded device; power_cap is
// normal under load.
var clockFatigue = map[string]bool{"hw_slowdown": true, "hw_thermal": true, "sw_thermal": true, "hw_power_brake": true}

// healthFail is DCGM's code for a failing health watch; 10 is a warning.
const healthFail = 20

// ParseGPUs reads a DCGM exporter page. prev, the devices of the scrape before,
// serves the throttle-time counter and may be nil.
func ParseGPUs(text []byte, prev []GPU) ([]GPU, error) {
	p, err := readPage(text, dcgmWants)
	if err != nil {
		return nil, err
	}
	if len(p) == 0 {
		return nil, ErrNoMetrics
	}
	rows := newGPURows(p)
	rows.gauges(p)
	rows.verdicts(p, prev)
	return rows.list(), nil
}

// gpuRows collects the rows of a page by device.
type gpuRows struct {
	byID  map[string]*GPU
	order []string
}

func newGPURows(p page) *gpuRows {
	r := &gpuRows{byID: map[string]*GPU{}}
	for _, f := range p {
		for _, s := range f.series {
			r.add(s)
		}
	}
	slices.Sort(r.order)
	return r
}

func gpuID(s series) string {
	return cmp.Or(s.label("UUID"), s.label("uuid"), s.label("gpu")) + "/" + s.label("GPU_I_ID")
}

func (r *gpuRows) add(s series) {
	id := gpuID(s)
	g := r.byID[id]
	if g == nil {
		g = &GPU{MIG: s.label("GPU_I_ID")}
		g.UUID, _, _ = strings.Cut(id, "/")
		r.byID[id] = g
		r.order = append(r.order, id)
	}
	// Label names of DCGM exporter before and after its PR 655, and of its old
	// Kubernetes mode.
	g.Model = cmp.Or(g.Model, s.label("modelName"))
	g.Host = cmp.Or(g.Host, s.label("hostname"), s.label("Hostname"))
	g.Namespace = cmp.Or(g.Namespace, s.label("namespace"), s.label("pod_namespace"))
	g.Pod = cmp.Or(g.Pod, s.label("pod"), s.label("pod_name"))
}

func (r *gpuRows) list() []GPU {
	out := make([]GPU, len(r.order))
	for i, id := range r.order {
		out[i] = *r.byID[id]
	}
	return out
}

// gauges fills in the numbers. DCGM prints huge "blank" values, such as
// 9223372036854775794, for what a device cannot tell.
func (r *gpuRows) gauges(p page) {
	const blank = 1e15
	set := func(name string, scale float64, field func(*GPU) *Value) {
		if p[name] == nil {
			return
		}
		for _, s := range p[name].series {
			if v := s.value(); usable(v) && v < blank {
				*field(r.byID[gpuID(s)]) = Value{V: v * scale, Known: true, Metric: p[name].name}
			}
		}
	}
	set(dcgmUtil, 0.01, func(g *GPU) *Value { return &g.Utilisation })
	set(dcgmActive, 1, func(g *GPU) *Value { return &g.Utilisation }) // finer, where profiling works
	set(dcgmSM, 1, func(g *GPU) *Value { return &g.SMClock })
	set(dcgmMem, 1, func(g *GPU) *Value { return &g.MemClock })
	set(dcgmTemp, 1, func(g *GPU) *Value { return &g.Temp })
	set(dcgmMemTemp, 1, func(g *GPU) *Value { return &g.MemTemp })
	if p[dcgmThermal] != nil { // a nanosecond counter passes 1e15 in 12 days
		for _, s := range p[dcgmThermal].series {
			if v := s.value(); usable(v) && v < 1<<62 {
				r.byID[gpuID(s)].Thermal = Value{V: v, Known: true, Metric: dcgmThermal}
			}
		}
	}
}

// verdicts judges each device by the signals that are published.
func (r *gpuRows) verdicts(p page, prev []GPU) {
	each := func(name string, judge func(s series, g *GPU)) {
		if p[name] == nil {
			return
		}
		for _, s := range p[name].series {
			if usable(s.value()) {
				judge(s, r.byID[gpuID(s)])
			}
		}
	}
	each(dcgmRemap, func(s series, g *GPU) { g.judge(&g.Fatal, s.value() == 1, "row remap failure") })
	// The count covers the last minutes; the gauge keeps its last error for
	// ever, so it serves only where there is no count.
	if p[dcgmXIDCount] != nil {
		each(dcgmXIDCount, func(s series, g *GPU) {
			xid := s.label("xid")
			g.judge(&g.Fatal, xidFatal[xid] && s.value() > 0, "XID "+xid)
		})
	} else {
		each(dcgmXID, func(s series, g *GPU) {
			xid := formatXID(s.value())
			g.judge(&g.Fatal, xidFatal[xid], "XID "+xid)
		})
	}
	each(dcgmHealth, func(s series, g *GPU) {
		g.judge(&g.Critical, s.value() >= healthFail, "health watch "+s.label("health_watch"))
	})
	each(dcgmClockEv, func(s series, g *GPU) {
		ev := s.label("clock_event")
		g.judge(&g.Throttled, clockFatigue[ev] && s.value() > 0, "clock event "+ev)
	})
	for _, g := range prev {
		if now := r.byID[g.UUID+"/"+g.MIG]; now != nil && now.Thermal.Known && g.Thermal.Known {
			now.judge(&now.Throttled, now.Thermal.V > g.Thermal.V, "thermal throttle time grows")
		}
	}
}

// judge enters one signal into a verdict: yes wins over no, no over unknown.
func (g *GPU) judge(v *Verdict, bad bool, why string) {
	if !bad {
		*v = max(*v, VerdictNo)
		return
	}
	if *v = VerdictYes; g.Why == "" || v == &g.Fatal {
		g.Why = why
	}
}
