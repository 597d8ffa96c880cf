package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"text/tabwriter"

	"github.com/eppctl/eppctl/bench/phase"
	"github.com/eppctl/eppctl/internal/report"
)

// command is one index: what it is called and what measures it.
type command struct {
	name string
	args []string
}

// results hold, by index and phase, the values of all rounds.
type results map[cell][]float64

type cell struct{ index, phase string }

func (r results) run(c command, args ...string) error {
	cmd := exec.Command(c.args[0], append(c.args[1:], args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	var m phase.Measured
	if err := json.Unmarshal(out, &m); err != nil {
		return fmt.Errorf("what it measured: %w", err)
	}
	for name, v := range m {
		k := cell{c.name, name}
		r[k] = append(r[k], v)
	}
	return nil
}

// rows of the table, in order; rate says that more is better.
var phases = []struct {
	name, unit string
	rate       bool
}{
	{"lookup_512_cold", "us", false},
	{"lookup_512_hot", "us", false},
	{"lookup_512_miss", "us", false},
	{"lookup_512_hash", "us", false},
	{"lookup_2048_cold", "us", false},
	{"lookup_2048_cold_p99", "us", false},
	{"lookup_2048_hot", "us", false},
	{"lookup_2048_miss", "us", false},
	{"lookup_2048_hash", "us", false},
	{"beside_writer_lookup_2048", "us", false},
	{"load", "blocks/s", true},
	{"mix", "blocks/s", true},
	{"mix_single", "blocks/s", true},
	{"mix_single_batched", "blocks/s", true},
	{"decode", "events/s", true},
	{"decode_batched", "events/s", true},
	{"beside_reader_writer", "blocks/s", true},
	{"bytes_per_block", "bytes", false},
	{"remove_rank", "ms", false},
	{"wrong_depths", "of 19200", false},
	{"wrong_depths_after", "of 19200", false},
}

func (r results) best(k cell) (float64, bool) {
	v := r[k]
	if len(v) == 0 {
		return 0, false
	}
	for _, p := range phases {
		if p.name == k.phase && p.rate {
			return slices.Max(v), true
		}
	}
	return slices.Min(v), true
}

func (r results) median(k cell) float64 {
	v := slices.Sorted(slices.Values(r[k]))
	return v[len(v)/2]
}

// print writes the table: best / median round.
func (r results) print(w io.Writer, list []command) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "BEST / MEDIAN\tUNIT")
	for _, c := range list {
		fmt.Fprintf(t, "\t%s", c.name)
	}
	fmt.Fprintln(t)
	for _, p := range phases {
		unit := p.unit
		if p.rate {
			unit = "M " + unit
		}
		fmt.Fprintf(t, "%s\t%s", p.name, unit)
		for _, c := range list {
			k := cell{c.name, p.name}
			best, ok := r.best(k)
			switch {
			case !ok:
				fmt.Fprint(t, "\t-")
			case p.rate:
				fmt.Fprintf(t, "\t%.2f / %.2f", best/1e6, r.median(k)/1e6)
			default:
				fmt.Fprintf(t, "\t%.3g / %.3g", best, r.median(k))
			}
		}
		fmt.Fprintln(t)
	}
	fmt.Fprintln(t)
	return t.Flush()
}

// promises are the ratios of best rounds that the project wants.
var promises = []struct {
	name, phase, index, peer, unit, target string
}{
	{"lookup_2048_hot_vs_dynamo", "lookup_2048_hot", "eppctl", "dynamo", "us", "<= 0.9"},
	{"lookup_2048_cold_vs_dynamo", "lookup_2048_cold", "eppctl", "dynamo", "us", "<= 0.75"},
	{"lookup_512_hot_vs_dynamo", "lookup_512_hot", "eppctl", "dynamo", "us", ""},
	{"lookup_512_cold_vs_dynamo", "lookup_512_cold", "eppctl", "dynamo", "us", ""},
	{"two_tiers_2048_cold_vs_dynamo", "lookup_2048_cold", "eppctl-tiers", "dynamo-tiers", "us", "<= 0.4"},
	{"two_tiers_2048_hot_vs_dynamo", "lookup_2048_hot", "eppctl-tiers", "dynamo-tiers", "us", "<= 0.4"},
	{"two_tiers_512_cold_vs_dynamo", "lookup_512_cold", "eppctl-tiers", "dynamo-tiers", "us", "<= 0.4"},
	{"two_tiers_512_hot_vs_dynamo", "lookup_512_hot", "eppctl-tiers", "dynamo-tiers", "us", "<= 0.4"},
	{"cold_load_vs_smg", "load", "eppctl", "smg", "blocks/s", ">= 1.0"},
	{"cold_load_sized_vs_smg", "load", "eppctl-sized", "smg", "blocks/s", ">= 1.0"},
	{"steady_mix_vs_smg", "mix", "eppctl", "smg", "blocks/s", ">= 1.0"},
	{"steady_mix_single_vs_smg", "mix_single", "eppctl", "smg", "blocks/s", ">= 2.5"},
	{"steady_mix_single_batched_vs_smg", "mix_single_batched", "eppctl", "smg", "blocks/s", ">= 2.5"},
	{"decode_vs_smg", "decode", "eppctl", "smg", "events/s", ">= 1.5"},
	{"decode_batched_vs_smg", "decode_batched", "eppctl", "smg", "events/s", ">= 1.5"},
	{"writer_beside_reader_vs_smg", "beside_reader_writer", "eppctl", "smg", "blocks/s", ">= 0.9"},
	{"bytes_per_block_vs_smg", "bytes_per_block", "eppctl", "smg", "bytes", "<= 0.7"},
	{"bytes_per_block_two_tiers_vs_dynamo", "bytes_per_block", "eppctl-tiers", "dynamo-tiers", "bytes", ""},
}

// ratios are the promises of which both sides were measured.
func (r results) ratios() []report.Row {
	var rows []report.Row
	for _, p := range promises {
		ours, ok := r.best(cell{p.index, p.phase})
		theirs, both := r.best(cell{p.peer, p.phase})
		if ok && both {
			row := report.Row{Name: p.name, Value: ours, Unit: p.unit, Target: p.target}
			rows = append(rows, row.Against(theirs))
		}
	}
	return rows
}

// cells are the whole table as rows.
func (r results) cells(list []command) []report.Row {
	var rows []report.Row
	for _, c := range list {
		for _, p := range phases {
			k := cell{c.name, p.name}
			if best, ok := r.best(k); ok {
				rows = append(rows,
					report.Row{Name: c.name + "." + p.name + ".best", Value: best, Unit: p.unit},
					report.Row{Name: c.name + "." + p.name + ".median", Value: r.median(k), Unit: p.unit})
			}
		}
	}
	return rows
}
