// Index measures eppctl's KV index under the workload, beside the hash floor of
// the same run: prints the table and writes the same rows as JSON.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"

	"github.com/eppctl/eppctl/internal/report"
)

func main() {
	rounds := flag.Int("rounds", 3, "times everything is measured; the table shows medians")
	lookups := flag.Int("lookups", 4000, "prompts looked up per round and kind")
	out := flag.String("out", "out/bench-index.json", "where the rows go")
	flag.Parse()
	runtime.LockOSThread() // times are this thread's
	if err := run(*rounds, *lookups, *out); err != nil {
		fmt.Fprintln(os.Stderr, "bench-index:", err)
		os.Exit(1)
	}
}

func run(rounds, lookups int, out string) error {
	b := newBench(lookups)
	for i := range rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", i+1, rounds)
		if err := b.round(); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stderr, "20 million blocks through a budget of 2 million")
	if err := b.budget(); err != nil {
		return err
	}
	rows := b.rows()
	if err := report.Print(os.Stdout, rows); err != nil {
		return err
	}
	return report.Write(out, rows)
}
