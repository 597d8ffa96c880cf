package telemetry

import "slices"

// Device is the health of a pod's accelerators; the worst of several.
type Device struct {
	Known       bool
	At          int64 // ns, the oldest page it was read from
	Utilisation Value // 0..1, the busiest
	Temp        Value // °C, the hottest
	MemTemp     Value // °C, the hottest
	Power       Value // W, all together
	Envelope    Value // power over its limit or temperature over its limit, the worst
	SlowDown    Value // >= 1: factor by which the device is slower than healthy ones
	Throttled   bool  // thermal or power-brake throttling
	Critical    bool  // serving, but failing a health watch or with an uncorrectable memory error
	Fatal       bool  // XID or row-remap failure of the fatal set
	Why         string
	// Missing names the health signals that the exporter does not publish for
	// one of the devices: unknown, not healthy.
	Missing []string
}

// Clocks are compared among busy devices of one model: an idle one lowers its
// clock on purpose.
const busy = 0.5

// Devices are the devices of all nodes by the names that may be asked for. It
// is immutable.
type Devices struct {
	byName map[string][]*GPU
	clocks map[string]float64 // MHz, median SM clock of busy devices by model
}

// NewDevices indexes gpus, which must not change afterwards.
func NewDevices(gpus []GPU) *Devices {
	d := &Devices{byName: map[string][]*GPU{}, clocks: medianClocks(gpus)}
	for i := range gpus {
		for _, n := range gpus[i].Names() {
			d.byName[n] = append(d.byName[n], &gpus[i])
		}
	}
	return d
}

// Of gives the health of what a comma-separated list of names (GPU.Names) means.
// Known is false when no exporter tells about any of it.
func (d *Devices) Of(list string) Device {
	var all Device
	told, found := signals(allSignals), false
	severity := 0
	for _, name := range splitNames(list) {
		for _, g := range d.byName[name] {
			if !found || g.At < all.At {
				all.At = g.At
			}
			found = true
			all.Known = all.Known || g.told != 0
			told &= g.told
			all.Utilisation = worse(all.Utilisation, g.Utilisation)
			all.Temp = worse(all.Temp, g.Temp)
			all.MemTemp = worse(all.MemTemp, g.MemTemp)
			all.Envelope = worse(all.Envelope, g.envelope())
			if g.Power.Known {
				all.Power = Value{V: all.Power.V + g.Power.V, Known: true, Metric: g.Power.Metric}
			}
			all.SlowDown = worse(all.SlowDown, g.slowDown(d.clocks))
			all.Throttled = all.Throttled || g.Throttled
			all.Critical = all.Critical || g.Critical
			all.Fatal = all.Fatal || g.Fatal
			if s := g.severity(); s > severity {
				severity, all.Why = s, g.Why
			}
		}
	}
	if found {
		all.Missing = told.missing()
		all.Known = all.Known || all.SlowDown.Known
	}
	return all
}

func worse(a, b Value) Value {
	if !a.Known || (b.Known && b.V > a.V) {
		return b
	}
	return a
}

// slowDown compares a busy device's clock with the median of its model. From
// which factor on it matters is the policy's to say.
func (g *GPU) slowDown(clocks map[string]float64) Value {
	median := clocks[g.Model]
	if !g.isBusy() || g.SMClock.V == 0 || median == 0 {
		return Value{}
	}
	return Value{V: max(1, median/g.SMClock.V), Known: true, Metric: g.SMClock.Metric}
}

// envelope is how much of what it may draw or how warm it may become a device has
// taken; unknown unless the exporter tells a limit.
func (g *GPU) envelope() Value {
	return worse(share(g.Power, g.PowerLimit), share(g.Temp, g.TempLimit))
}

func share(of, limit Value) Value {
	if !of.Known || !limit.Known || limit.V <= 0 {
		return Value{}
	}
	return Value{V: max(0, of.V/limit.V), Known: true, Metric: of.Metric}
}

func (g *GPU) isBusy() bool { return g.SMClock.Known && g.Utilisation.Known && g.Utilisation.V >= busy }

// medianClocks is the median SM clock (MHz) of the busy devices, by model name.
func medianClocks(gpus []GPU) map[string]float64 {
	byModel := map[string][]float64{}
	for i := range gpus {
		if g := &gpus[i]; g.isBusy() {
			byModel[g.Model] = append(byModel[g.Model], g.SMClock.V)
		}
	}
	out := make(map[string]float64, len(byModel))
	for model, mhz := range byModel {
		slices.Sort(mhz)
		out[model] = (mhz[(len(mhz)-1)/2] + mhz[len(mhz)/2]) / 2
	}
	return out
}
