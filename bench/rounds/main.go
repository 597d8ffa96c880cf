// Rounds compares eppctl's KV index with others on one dumped workload: one
// process per index and round, in turns, so that a busy minute of the machine
// falls on all of them. It prints every index's best and median round, and the
// ratios the project promises.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/eppctl/eppctl/bench/workload"
	"github.com/eppctl/eppctl/internal/report"
)

const ranks = 64

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-index-peers:", err)
		os.Exit(1)
	}
}

func run() error {
	peers := flag.String("peers", "", "binary built from bench/peers")
	dump := flag.String("dump", "out/bench-index.dump", "file for the workload")
	out := flag.String("out", "out/bench-index-peers.json", "where the rows go")
	rounds := flag.Int("rounds", 7, "rounds")
	lookups := flag.Int("lookups", 4000, "prompts looked up per round and kind, at most 65536")
	var also []command
	flag.Func("also", "`NAME=COMMAND` of one more index: it gets DUMP and LOOKUPS as arguments and prints what it measured as a JSON object", func(s string) error {
		name, line, _ := strings.Cut(s, "=")
		args := strings.Fields(line)
		if len(args) == 0 {
			return fmt.Errorf("%q is not NAME=COMMAND", s)
		}
		also = append(also, command{name, args})
		return nil
	})
	flag.Parse()
	if flag.Arg(0) == "product" { // one round of ours, in a process of its own
		return own(flag.Args()[1:])
	}

	if err := workload.NewDump(ranks).Write(*dump); err != nil {
		return fmt.Errorf("dump the workload: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	list := []command{
		{"eppctl", []string{self, "product", "one"}},
		{"eppctl-sized", []string{self, "product", "sized"}},
		{"eppctl-tiers", []string{self, "product", "tiers"}},
	}
	if *peers != "" {
		for _, name := range []string{"smg", "dynamo", "dynamo-tiers"} {
			list = append(list, command{name, []string{*peers, name}})
		}
	}
	list = append(list, also...)

	got := results{}
	for i := range *rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", i+1, *rounds)
		for _, c := range list {
			if err := got.run(c, *dump, strconv.Itoa(*lookups)); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	if err := got.print(os.Stdout, list); err != nil {
		return err
	}
	rows := got.ratios()
	if err := report.Print(os.Stdout, rows); err != nil {
		return err
	}
	return report.Write(*out, append(rows, got.cells(list)...))
}
