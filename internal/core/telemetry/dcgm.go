package telemetry

import (
	"cmp"
	"slices"
	"strings"
)

// GPU is one device of a DCGM exporter page, or one MIG instance of a device.
// The exporter is one per node, so a page has the devices of many pods.
type GPU struct {
	UUID  string // of the physical device
	MIG   string // number of the instance, "" = the whole device
	Model string
	Host  string
	// Users are the pods it is given to, as "namespace/pod": none for an idle
	// device or an exporter that knows no pods, several where it is shared.
	Users []string
	At    int64 // ns, when the page was asked for

	Utilisation Value // 0..1
	SMClock     Value // MHz
	MemClock    Value // MHz
	Temp        Value // °C
	MemTemp     Value // °C
	Power       Value // W
	PowerLimit  Value // W, that the driver keeps it under
	TempLimit   Value // °C, at which the device slows itself down

	Throttled, Critical, Fatal bool
	Why                        string // the signal behind the worst of these

	id      string // of the row, also where the page has no UUID
	told    signals
	thermal Value // ns spent throttled for heat, counter
	hotAt   int64 // ns, the last page on which that had grown, 0 = none
}

const (
	dcgmUtil    = "DCGM_FI_DEV_GPU_UTIL"
	dcgmActive  = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
	dcgmSM      = "DCGM_FI_DEV_SM_CLOCK"
	dcgmMem     = "DCGM_FI_DEV_MEM_CLOCK"
	dcgmTemp    = "DCGM_FI_DEV_GPU_TEMP"
	dcgmMemTemp = "DCGM_FI_DEV_MEMORY_TEMP"
	dcgmPower   = "DCGM_FI_DEV_POWER_USAGE"
	// Limits are not in the exporter's default list of counters.
	dcgmPowerCap  = "DCGM_FI_DEV_POWER_MGMT_LIMIT"
	dcgmPowerKept = "DCGM_FI_DEV_ENFORCED_POWER_LIMIT" // the least of all that are set
	dcgmTempCap   = "DCGM_FI_DEV_SLOWDOWN_TEMP"
)

var dcgmNames = func() names {
	n := names{}
	n.want(dcgmUtil, dcgmActive, dcgmSM, dcgmMem, dcgmTemp, dcgmMemTemp, dcgmPower, dcgmPowerCap, dcgmPowerKept, dcgmTempCap)
	n.want(healthNames...)
	return n
}()

// blank is where DCGM's stand-ins for "not available" begin, such as
// 9223372036854775794, 140737488355328 and 2147483632: no clock, temperature,
// error code or count of errors comes near.
const blank = 1e9

// ParseGPUs reads a DCGM exporter page that was asked for at (ns). prev, the
// devices of the scrape before, serves the throttle-time counter and may be nil.
func ParseGPUs(text []byte, prev []GPU, at int64) ([]GPU, error) {
	p, err := readPage(text, dcgmNames)
	if err != nil {
		return nil, err
	}
	if len(p) == 0 {
		return nil, ErrNoMetrics
	}
	rows := gpuRows{byID: map[string]*GPU{}, at: at}
	rows.gauges(p)
	rows.health(p, prev)
	rows.inherit()
	return rows.list(), nil
}

// gpuRows collects the rows of a page by device.
type gpuRows struct {
	byID map[string]*GPU
	at   int64
}

// of returns the device of a row. Label names are those of DCGM exporter before
// and after its PR 655, and of its old Kubernetes mode.
func (r *gpuRows) of(s series) *GPU {
	uuid, mig := cmp.Or(s.label("UUID"), s.label("uuid")), s.label("GPU_I_ID")
	id := cmp.Or(uuid, s.label("gpu")) + "/" + mig
	g := r.byID[id]
	if g == nil {
		g = &GPU{UUID: uuid, MIG: mig, At: r.at, id: id}
		r.byID[id] = g
	}
	g.Model = cmp.Or(g.Model, s.label("modelName"))
	g.Host = cmp.Or(g.Host, s.label("hostname"), s.label("Hostname"))
	// A device that pods share has a row for each of them.
	if pod := cmp.Or(s.label("pod"), s.label("pod_name")); pod != "" {
		user := cmp.Or(s.label("namespace"), s.label("pod_namespace")) + "/" + pod
		if !slices.Contains(g.Users, user) {
			g.Users = append(g.Users, user)
		}
	}
	return g
}

// each calls do for the rows of a family that carry a number.
func (r *gpuRows) each(f *family, do func(s series, g *GPU)) {
	if f == nil {
		return
	}
	for _, s := range f.series {
		if g := r.of(s); usable(s.value) && s.value < blank {
			do(s, g)
		}
	}
}

func (r *gpuRows) gauges(p page) {
	set := func(name string, scale float64, field func(*GPU) *Value) {
		r.each(p[name], func(s series, g *GPU) {
			v := field(g)
			// Rows of one device differ where its pods are counted apart.
			if new := (Value{V: s.value * scale, Known: true, Metric: name}); v.Metric != name || new.V > v.V {
				*v = new
			}
		})
	}
	set(dcgmUtil, 0.01, func(g *GPU) *Value { return &g.Utilisation })
	set(dcgmActive, 1, func(g *GPU) *Value { return &g.Utilisation }) // finer, where profiling works
	set(dcgmSM, 1, func(g *GPU) *Value { return &g.SMClock })
	set(dcgmMem, 1, func(g *GPU) *Value { return &g.MemClock })
	set(dcgmTemp, 1, func(g *GPU) *Value { return &g.Temp })
	set(dcgmMemTemp, 1, func(g *GPU) *Value { return &g.MemTemp })
	set(dcgmPower, 1, func(g *GPU) *Value { return &g.Power })
	set(dcgmPowerCap, 1, func(g *GPU) *Value { return &g.PowerLimit })
	set(dcgmPowerKept, 1, func(g *GPU) *Value { return &g.PowerLimit })
	set(dcgmTempCap, 1, func(g *GPU) *Value { return &g.TempLimit })
}

// inherit gives each MIG instance what only its physical device tells: clocks,
// heat and errors are those of the one chip.
func (r *gpuRows) inherit() {
	for _, g := range r.byID {
		chip := r.byID[g.UUID+"/"]
		if g.MIG == "" || chip == nil {
			continue
		}
		g.SMClock, g.MemClock = either(g.SMClock, chip.SMClock), either(g.MemClock, chip.MemClock)
		g.Temp, g.MemTemp = either(g.Temp, chip.Temp), either(g.MemTemp, chip.MemTemp)
		g.Power, g.PowerLimit, g.TempLimit = either(g.Power, chip.Power), either(g.PowerLimit, chip.PowerLimit), either(g.TempLimit, chip.TempLimit)
		g.told |= chip.told
		if chip.severity() > g.severity() {
			g.Why = chip.Why
		}
		g.Throttled, g.Critical, g.Fatal = g.Throttled || chip.Throttled, g.Critical || chip.Critical, g.Fatal || chip.Fatal
	}
}

// list returns the devices in the order of their UUIDs and instances.
func (r *gpuRows) list() []GPU {
	ids := make([]string, 0, len(r.byID))
	for id := range r.byID {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	out := make([]GPU, len(ids))
	for i, id := range ids {
		out[i] = *r.byID[id]
	}
	return out
}

// onHost is what a host's name is told by from a pod's.
const onHost = "host:"

// Names are the names by which a configuration may mean this device: its pods
// as NAMESPACE/POD, its UUID, UUID/INSTANCE of a MIG instance, host:HOST.
func (g *GPU) Names() []string {
	all := slices.Clone(g.Users)
	if g.UUID != "" {
		all = append(all, g.UUID)
		if g.MIG != "" {
			all = append(all, g.UUID+"/"+g.MIG)
		}
	}
	if g.Host != "" {
		all = append(all, onHost+g.Host)
	}
	return all
}

// splitNames takes a comma-separated list of such names apart.
func splitNames(list string) []string {
	return strings.FieldsFunc(list, func(c rune) bool { return c == ',' || c == ' ' })
}

// NameDevices says whether each name in a list has one of the forms of GPU.Names.
func NameDevices(list string) bool {
	all := splitNames(list)
	return len(all) > 0 && !slices.ContainsFunc(all, func(name string) bool { return !nameDevice(name) })
}

func nameDevice(name string) bool {
	if host, ok := strings.CutPrefix(name, onHost); ok {
		return host != ""
	}
	of, part, split := strings.Cut(name, "/")
	if split {
		return of != "" && part != "" && !strings.Contains(part, "/")
	}
	return strings.HasPrefix(name, "GPU-")
}
