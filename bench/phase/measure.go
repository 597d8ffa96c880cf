package phase

import "github.com/eppctl/eppctl/bench/workload"

// Measured is what one process of a comparison measures, by phase.
type Measured map[string]float64

// OneTier runs all phases with the GPU's blocks alone. fresh makes the index.
func OneTier(d *workload.Dump, lookups int, floor Floor, fresh func() Index) Measured {
	m := Measured{}
	ix := m.load(d, false, fresh)
	m["wrong_depths"] = float64(Wrong(ix, d.Workload, d.OneTier))
	m.lookups(ix, d, lookups, floor)
	m["mix"] = Mix(ix, d.Workload, d.Evict, workload.PerEvent, 1).BlocksPerSecond()
	m["mix_single"] = Mix(ix, d.Workload, d.Evict, 1, 1).BlocksPerSecond()
	m["mix_single_batched"] = Mix(ix, d.Workload, d.Evict, 1, workload.Batch).BlocksPerSecond()
	m["decode"] = Decode(ix, d.Workload, d.Decode).EventsPerSecond()
	m["decode_batched"] = Decode(ix, d.Workload, d.Steps).EventsPerSecond()
	both := Beside(ix, d.Workload, d.Long[:min(lookups, len(d.Long))], d.Refresh)
	m["beside_writer_lookup_2048"] = both.Lookup.Micros(0.5)
	m["beside_reader_writer"] = both.Writer.BlocksPerSecond()
	m["wrong_depths_after"] = float64(Wrong(ix, d.Workload, d.OneTier))
	m["remove_rank"] = Drops(ix, 32).Micros(0.5) / 1e3
	return m
}

// TwoTiers looks up where ranks hold blocks in host memory too.
func TwoTiers(d *workload.Dump, lookups int, floor Floor, fresh func() Index) Measured {
	m := Measured{}
	ix := m.load(d, true, fresh)
	m["wrong_depths"] = float64(Wrong(ix, d.Workload, d.TwoTiers))
	m.lookups(ix, d, lookups, floor)
	return m
}

func (m Measured) load(d *workload.Dump, host bool, fresh func() Index) Index {
	before := Heap()
	ix := fresh()
	m["load"] = Load(ix, d.Workload, host, workload.PerEvent).BlocksPerSecond()
	m["bytes_per_block"] = float64(Heap()-before) / float64(d.Distinct(host))
	return ix
}

func (m Measured) lookups(ix Index, d *workload.Dump, n int, floor Floor) {
	for name, picks := range map[string][]int{"lookup_512": d.Short, "lookup_2048": d.Long} {
		l := Lookup(ix, d.Workload, picks[:min(n, len(picks))], floor)
		for kind, s := range map[string]Samples{"_cold": l.Cold, "_hot": l.Hot, "_miss": l.Miss, "_hash": l.FloorHot} {
			m[name+kind] = s.Micros(0.5)
			m[name+kind+"_p99"] = s.Micros(0.99)
		}
	}
}
