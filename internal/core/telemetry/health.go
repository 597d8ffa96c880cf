package telemetry

import "strconv"

// Names of the health signals. All but the XID gauge and the row remap flag are
// off in the exporter unless its list of counters is edited, so a signal that
// is missing is normal, and no clean bill of health.
const (
	dcgmThermal    = "DCGM_FI_DEV_THERMAL_VIOLATION"
	dcgmReasons    = "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"
	dcgmReasonsOld = "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS" // the same field before DCGM 3.3
	dcgmClockEv    = "DCGM_EXP_CLOCK_EVENTS_COUNT"
	dcgmXID        = "DCGM_FI_DEV_XID_ERRORS" // the last one, for ever
	dcgmXIDCount   = "DCGM_EXP_XID_ERRORS_COUNT"
	dcgmRemap      = "DCGM_FI_DEV_ROW_REMAP_FAILURE"
	dcgmDoubleBit  = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"
	dcgmHealth     = "DCGM_EXP_GPU_HEALTH_STATUS"
)

var healthNames = []string{
	dcgmThermal, dcgmReasons, dcgmReasonsOld, dcgmClockEv, dcgmXID, dcgmXIDCount, dcgmRemap, dcgmDoubleBit, dcgmHealth,
}

// signals is a set of health signals.
type signals uint8

const (
	sigThrottling signals = 1 << iota
	sigWatches
	sigECC
	sigXID
	sigRemap
	allSignals = 1<<iota - 1
)

// missing names the signals that are not in the set.
func (told signals) missing() (names []string) {
	for i, n := range [...]string{"throttling", "health watches", "double-bit ECC", "XID", "row remap"} {
		if told&(1<<i) == 0 {
			names = append(names, n)
		}
	}
	return names
}

// xidFatal are the errors after which a device cannot be trusted with work:
// double-bit ECC 48, bus and firmware 74 79 119 120, contained and uncontained
// memory errors 92 94 95. 63 and 64 (row remapping) count only beside a remap
// failure; 13, 31, 43 and 45 are mostly faults of the application.
var xidFatal = map[string]bool{"48": true, "74": true, "79": true, "92": true, "94": true, "95": true, "119": true, "120": true}

// clockFatigue are the clock events that mean a degraded device, with their bits
// in the reasons mask (dcgm_fields.h, DCGM_CLOCKS_EVENT_REASON_*). power_cap,
// 0x4, is normal under load, gpu_idle, 0x1, without it.
var clockFatigue = [...]struct {
	bit  uint64
	name string
}{{0x08, "hw_slowdown"}, {0x20, "sw_thermal"}, {0x40, "hw_thermal"}, {0x80, "hw_power_brake"}}

// healthFail is DCGM's result of a failing health watch (dcgmHealthWatchResults:
// 0 pass, 10 warn, 20 fail).
const healthFail = 20

// hotFor (ns) is how long a counter of throttle time that grew means a hot
// device: twice the 30 s at which the exporter reads its devices by default, for
// scrapes in between see it stand still.
const hotFor = int64(60e9)

// health judges each device by the signals that are published.
func (r *gpuRows) health(p page, prev []GPU) {
	r.throttling(p, prev)
	r.each(p[dcgmHealth], func(s series, g *GPU) {
		watch, fails := s.label("health_watch"), s.value >= healthFail
		g.judge(sigWatches, &g.Critical, fails, "health watch "+watch)
		// Errors that take the whole device away come under this one.
		g.judge(sigWatches, &g.Fatal, fails && watch == "ALL", "health watch "+watch)
	})
	// DCGM's own memory watch fails at the first: the device wants a reset, which
	// also sets the counter to 0.
	r.each(p[dcgmDoubleBit], func(s series, g *GPU) {
		g.judge(sigECC, &g.Critical, s.value > 0, "double-bit ECC error")
	})
	r.each(p[dcgmRemap], func(s series, g *GPU) { g.judge(sigRemap, &g.Fatal, s.value == 1, "row remap failure") })
	r.xids(p)
}

// xids prefers the count, which covers the last minutes and has a row of 0 for
// a device without errors. The gauge keeps its last error for ever, so it serves
// only where there is no count.
func (r *gpuRows) xids(p page) {
	r.each(p[dcgmXIDCount], func(s series, g *GPU) {
		xid := s.label("xid")
		g.judge(sigXID, &g.Fatal, xidFatal[xid] && s.value > 0, "XID "+xid)
	})
	r.each(p[dcgmXID], func(s series, g *GPU) {
		if g.told&sigXID == 0 {
			xid := strconv.FormatFloat(s.value, 'f', -1, 64)
			g.judge(sigXID, &g.Fatal, xidFatal[xid], "XID "+xid)
		}
	})
}

func (r *gpuRows) throttling(p page, prev []GPU) {
	r.each(p[dcgmClockEv], func(s series, g *GPU) {
		event, bad := s.label("clock_event"), false
		for _, f := range clockFatigue {
			bad = bad || f.name == event && s.value > 0
		}
		g.judge(sigThrottling, &g.Throttled, bad, "clock event "+event)
	})
	r.each(p.first(dcgmReasons, dcgmReasonsOld), func(s series, g *GPU) {
		g.judge(sigThrottling, &g.Throttled, false, "")
		for _, f := range clockFatigue {
			g.judge(sigThrottling, &g.Throttled, uint64(s.value)&f.bit != 0, "clock event "+f.name)
		}
	})
	if f := p[dcgmThermal]; f != nil {
		for _, s := range f.series {
			// A counter of nanoseconds passes the other blanks in a second.
			if g := r.of(s); usable(s.value) && s.value < 1<<62 {
				g.thermal = Value{V: s.value, Known: true, Metric: dcgmThermal}
			}
		}
	}
	for i := range prev {
		was := &prev[i]
		now := r.byID[was.id]
		if now == nil || !now.thermal.Known || !was.thermal.Known {
			continue
		}
		if now.hotAt = was.hotAt; now.thermal.V > was.thermal.V {
			now.hotAt = r.at
		}
		hot := now.hotAt != 0 && r.at-now.hotAt < hotFor
		now.judge(sigThrottling, &now.Throttled, hot, "thermal throttle time grows")
	}
}

// judge enters what a signal says about one of the verdicts; a bad word stands.
func (g *GPU) judge(by signals, verdict *bool, bad bool, why string) {
	g.told |= by
	before := g.severity()
	if *verdict = *verdict || bad; g.severity() > before {
		g.Why = why
	}
}

// severity orders the verdicts.
func (g *GPU) severity() int {
	switch {
	case g.Fatal:
		return 3
	case g.Critical:
		return 2
	case g.Throttled:
		return 1
	}
	return 0
}
