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

// table is what one call measures, and what its columns hold.
type table struct {
	caption string
	entries []entry
}

const caption = `REFERENCE is a floor measured in the same run: for a lookup hashing the blocks of the prompt and comparing
each with a key that lies ready, for ext_proc a server that echoes. RATIO is VALUE / REFERENCE: near 1 nothing is
spent beyond the floor. Values are medians of three runs.

`

// table lists the promised rows; their names are stable. A lookup's reference is
// the hash floor: hashing every block of the prompt and comparing each with a key
// that lies ready. ext_proc's is the bare transport: a server that echoes.
var promised = table{caption, []entry{
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
}}

// decisions sets whole decisions, a lookup of a prompt of 2,000 tokens included,
// beside the least that could choose among 64 pods and fill a card: a loop that lays
// out its rows and sums six constants in each.
var decisions = table{
	"REFERENCE is a bare loop that lays out 64 rows of a card and sums six constant terms in each, in the same run. Values are medians of three runs.\n\n",
	[]entry{
		decision("decide_64", "Decide/busy/64", "<= 4 x"),
		decision("decide_512", "Decide/busy/512", ""),
		decision("decide_1024", "Decide/busy/1024", "<= 50 x"),
		decision("decide_64_unknown_prompt", "Decide/unknown-prompt/64", ""),
		decision("decide_64_all_tied", "Decide/all-tied/64", ""),
		decision("terms_64", "Terms", ""),
		{name: "decide_64_allocs", value: key{pick, "Decide/busy/64", "allocs/op"}, unit: "allocations", scale: same, target: "0"},
		{name: "decide_1024_allocs", value: key{pick, "Decide/busy/1024", "allocs/op"}, unit: "allocations", scale: same, target: "0"},
		{name: "decide_64_per_pod", value: key{pick, "Decide/busy/64", "ns/pod"}, unit: "ns", scale: same},
		{name: "decide_1024_per_pod", value: key{pick, "Decide/busy/1024", "ns/pod"}, unit: "ns", scale: same},
	},
}

func decision(name, bench, target string) entry {
	return entry{name: name, value: key{pick, bench, "ns/op"}, reference: key{pick, bench, "ns/bare-64"}, unit: "ns", scale: same, target: target}
}

// packages lists those with benchmarks of the table.
func (of table) packages() []string {
	var list []string
	for _, t := range of.entries {
		if !slices.Contains(list, t.value.pkg) {
			list = append(list, t.value.pkg)
		}
	}
	return list
}

// pattern selects the package's top-level benchmarks of the table.
func (of table) pattern(pkg string) string {
	var names []string
	for _, t := range of.entries {
		for _, k := range []key{t.value, t.reference} {
			name, _, _ := strings.Cut(k.bench, "/")
			if k.pkg == pkg && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return "^Benchmark(" + strings.Join(names, "|") + ")$"
}
