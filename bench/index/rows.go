package main

import (
	"slices"

	"github.com/eppctl/eppctl/internal/report"
)

// entry is one row: the names of its value and of what it is read beside.
type entry struct{ name, unit, reference, target string }

// table lists the rows in order. Their names are stable. A lookup's reference is
// the hash floor of the same prompts, all in the processor's cache.
var table = slices.Concat(
	lookups(""), lookups("_two_tiers"),
	[]entry{
		{"lookup_512_beside_writer", "us", "lookup_512_cold", ""},
		{"lookup_512_beside_writer_p99", "us", "lookup_512_cold_p99", ""},
		{"lookup_512_beside_writer_wall", "us", "", ""},
		{"lookup_512_beside_writer_wall_p99", "us", "", ""},
		{"lookup_2048_beside_writer", "us", "lookup_2048_cold", ""},
		{"lookup_2048_beside_writer_p99", "us", "lookup_2048_cold_p99", ""},
		{"lookup_2048_beside_writer_wall", "us", "", ""},
		{"lookup_2048_beside_writer_wall_p99", "us", "", ""},
		{"lookup_allocs", "allocations", "", "0"},
		{"lookup_1024_members", "us", "lookup_2048_hot_two_tiers", "<= 1.3 x 64 members"},
		{"lookup_1024_members_cold", "us", "lookup_2048_cold_two_tiers", ""},
		{"lookup_64_of_1024_members", "us", "lookup_2048_hot_two_tiers", ""},
		{"matches_1024_members", "members found", "matches_two_tiers", ""},
		{"stored_blocks_per_second", "blocks/s", "", ""},
		{"stored_events_per_second", "events/s", "", ""},
		{"stored_blocks_per_second_4", "blocks/s", "stored_blocks_per_second", ""},
		{"stored_events_per_second_4", "events/s", "", ""},
		{"stored_blocks_per_second_1", "blocks/s", "stored_blocks_per_second", ""},
		{"stored_events_per_second_1", "events/s", "", ""},
		{"stored_blocks_per_second_two_tiers", "blocks/s", "stored_blocks_per_second", ""},
		{"stored_blocks_per_second_1024_members", "blocks/s", "stored_blocks_per_second_two_tiers", ""},
		{"steady_mix", "blocks/s", "", ""},
		{"steady_mix_single", "blocks/s", "steady_mix", ""},
		{"steady_mix_single_batched", "blocks/s", "steady_mix", ""},
		{"steady_mix_single_batched_events", "events/s", "", ""},
		{"decode_events_per_second", "events/s", "", ""},
		{"decode_batched_events_per_second", "events/s", "decode_events_per_second", ""},
		{"writer_beside_reader", "blocks/s", "", ""},
		{"writer_beside_reader_events", "events/s", "", ""},
		{"writers_1", "blocks/s wall", "", ""},
		{"writers_8", "blocks/s wall", "writers_1", ""},
		{"writers_8_many_roots", "blocks/s wall", "writers_8", ""},
		{"lock_waits", "waits/s", "", ""},
		{"lock_waited", "share of time", "", ""},
		{"writers_1_single", "blocks/s wall", "", ""},
		{"writers_8_single", "blocks/s wall", "writers_1_single", ""},
		{"writers_8_many_roots_single", "blocks/s wall", "writers_8_single", ""},
		{"lock_waits_single", "waits/s", "", ""},
		{"lock_waited_single", "share of time", "", ""},
		{"bytes_per_block", "bytes", "", "<= 50"},
		{"bytes_per_block_one_tier", "bytes", "", "<= 50"},
		{"bytes_per_block_1024_members", "bytes", "", ""},
		{"gc_cycle", "ms CPU", "", ""},
		{"remove_member", "ms", "", ""},
		{"remove_member_per_block", "ns", "", ""},
		{"budget_blocks", "blocks", "", "<= 2000000"},
		{"budget_hot_kept", "share", "", "1"},
		{"budget_bytes_per_block", "bytes", "", ""},
		{"budget_sweep", "ms CPU", "", ""},
		{"budget_blocks_per_second", "blocks/s", "", ""},
	})

// lookups are the rows of both prompt lengths.
func lookups(suffix string) []entry {
	var rows []entry
	for _, length := range []string{"512", "2048"} {
		floor := "floor_" + length + suffix
		for _, kind := range []struct{ name, target string }{
			{"_hot", "<= 1.3 x floor"}, {"_cold", "<= 1.6 x floor"}, {"_miss", ""},
		} {
			name := "lookup_" + length + kind.name + suffix
			row := entry{name, "us", floor, kind.target}
			if length == "512" {
				row.target = ""
			}
			rows = append(rows, row, entry{name + "_p99", "us", floor, ""})
		}
		rows = append(rows, entry{floor, "us", "", ""}, entry{floor + "_cold", "us", floor, ""})
	}
	return rows
}

// aliases name the measured value of rows that are called something else.
var aliases = map[string]string{
	"lookup_1024_members":       "lookup_2048_hot_1024_members",
	"lookup_1024_members_cold":  "lookup_2048_cold_1024_members",
	"lookup_64_of_1024_members": "lookup_2048_hot_64_of_1024_members",
}

func (b *bench) rows() []report.Row {
	var rows []report.Row
	for _, e := range table {
		name := e.name
		if a := aliases[name]; a != "" {
			name = a
		}
		row := report.Row{Name: e.name, Value: b.median(name), Unit: e.unit, Target: e.target}
		if e.reference != "" {
			row = row.Against(b.median(e.reference))
		}
		rows = append(rows, row)
	}
	return rows
}

func (b *bench) median(name string) float64 {
	v := slices.Sorted(slices.Values(b.values[name]))
	if len(v) == 0 {
		panic("nothing measured under the name " + name)
	}
	return v[len(v)/2]
}
