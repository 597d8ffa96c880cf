package main

import (
	"slices"
	"strings"
)

const module = "github.com/eppctl/eppctl/internal/"

// entry is one row of the table: where its value and its reference come from.
type entry struct {
	name      string
	value     key
	reference key // zero = none
	unit      string
	scale     func(float64) float64
	target    string
}

func same(v float64) float64     { return v }
func micros(v float64) float64   { return v / 1e3 }
func millions(v float64) float64 { return v * 1e6 }

const (
	index = module + "core/index"
	pick  = module + "core/pick"
	serve = module + "serve"
)

// caption says what the columns hold.
const caption = `REFERENCE is a floor measured in the same run: for a lookup hashing the blocks of the prompt and comparing
each with a key that lies ready, for ext_proc a server that echoes. RATIO is VALUE / REFERENCE: near 1 nothing is
spent beyond the floor. Values are medians of three runs.

`

// table lists the promised rows; their names are stable. A lookup's reference is
// the hash floor: hashing every block of the prompt and comparing each with a key
// that lies ready. ext_proc's is the bare transport: a server that echoes.
var table = []entry{
	{name: "lookup_512_hot", value: key{index, "Lookup/512/hot=true", "ns/lookup-p50"},
		reference: key{index, "Lookup/512/hot=true", "ns/floor-p50"}, unit: "ns", scale: same},
	{name: "lookup_2048_hot", value: key{index, "Lookup/2048/hot=true", "ns/lookup-p50"},
		reference: key{index, "Lookup/2048/hot=true", "ns/floor-p50"}, unit: "ns", scale: same},
	{name: "events_per_second", value: key{index, "Store/decode", "Mevents/s"}, unit: "events/s", scale: millions},
	{name: "decide_64_ns", value: key{pick, "Decide/busy/64", "ns/op"}, unit: "ns", scale: same},
	{name: "decide_64_allocs", value: key{pick, "Decide/busy/64", "allocs/op"}, unit: "allocations", scale: same, target: "0"},
	{name: "extproc_cpu_4kB", value: key{module + "serve", "ExtProc/4kB", "cpu-ns/op"},
		reference: key{module + "serve", "ExtProc/4kB", "floor-cpu-ns/op"}, unit: "us CPU", scale: micros},
	{name: "extproc_cpu_4kB_duplex", value: key{module + "serve", "ExtProc/4kB-duplex", "cpu-ns/op"},
		reference: key{module + "serve", "ExtProc/4kB-duplex", "floor-cpu-ns/op"}, unit: "us CPU", scale: micros},
	{name: "extproc_cpu_420kB", value: key{module + "serve", "ExtProc/420kB", "cpu-ns/op"},
		reference: key{module + "serve", "ExtProc/420kB", "floor-cpu-ns/op"}, unit: "us CPU", scale: micros},
	{name: "extproc_cpu_420kB_duplex", value: key{module + "serve", "ExtProc/420kB-duplex", "cpu-ns/op"},
		reference: key{module + "serve", "ExtProc/420kB-duplex", "floor-cpu-ns/op"}, unit: "us CPU", scale: micros},
}

// packages lists those with benchmarks of the table.
func packages() []string {
	var list []string
	for _, t := range table {
		if !slices.Contains(list, t.value.pkg) {
			list = append(list, t.value.pkg)
		}
	}
	return list
}

// pattern selects the package's top-level benchmarks of the table.
func pattern(pkg string) string {
	var names []string
	for _, t := range table {
		for _, k := range []key{t.value, t.reference} {
			name, _, _ := strings.Cut(k.bench, "/")
			if k.pkg == pkg && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return "^Benchmark(" + strings.Join(names, "|") + ")$"
}
