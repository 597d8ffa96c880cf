package telemetry

import (
	"math"
	"slices"
	"strconv"
)

// Clocks are compared among busy devices of one model: an idle one lowers its
// clock on purpose.
const busy = 0.5

// Join gives the health of one pod from the devices of all nodes: the worst of
// the pod's own per signal. clocks comes from MedianClocks over the same list.
// A pod without a device on the list has Known false.
func Join(gpus []GPU, namespace, pod string, clocks map[string]float64) Device {
	var d Device
	if pod == "" { // rows without a pod belong to nobody
		return d
	}
	verdicts := [...]Verdict{VerdictUnknown, VerdictUnknown, VerdictUnknown}
	found := false
	for i := range gpus {
		g := &gpus[i]
		if g.Pod != pod || g.Namespace != namespace {
			continue
		}
		found = true
		for j, v := range [...]Verdict{g.Throttled, g.Critical, g.Fatal} {
			verdicts[j] = max(verdicts[j], v)
		}
		d.Utilisation = worse(d.Utilisation, g.Utilisation)
		d.SlowDown = worse(d.SlowDown, g.slowDown(clocks))
		if d.Why == "" || g.Fatal == VerdictYes {
			d.Why = g.Why
		}
	}
	d.Throttled, d.Critical, d.Fatal = verdicts[0] == VerdictYes, verdicts[1] == VerdictYes, verdicts[2] == VerdictYes
	if found {
		d.Missing = missing(verdicts)
		d.Known = len(d.Missing) < len(verdicts) || d.SlowDown.Known
	}
	return d
}

func missing(verdicts [3]Verdict) (names []string) {
	for i, n := range [...]string{"throttling", "health watches", "XID and row remap"} {
		if verdicts[i] == VerdictUnknown {
			names = append(names, n)
		}
	}
	return names
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

func (g *GPU) isBusy() bool { return g.SMClock.Known && g.Utilisation.Known && g.Utilisation.V >= busy }

// MedianClocks is the median SM clock (MHz) of the busy devices, by model name.
func MedianClocks(gpus []GPU) map[string]float64 {
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

func formatXID(x float64) string { return strconv.FormatFloat(math.Trunc(x), 'f', 0, 64) }
