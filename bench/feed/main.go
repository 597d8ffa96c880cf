// Feed measures what a KV event message costs from the socket to the index,
// beside libzmq's own subscriber in C fed by the same publishers: prints the
// table and writes the same rows as JSON.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/eppctl/eppctl/internal/report"
)

func main() {
	err := error(nil)
	if len(os.Args) > 1 && os.Args[1] == "receive" {
		err = receive(os.Args[2:], os.Stdin, os.Stdout)
	} else {
		err = run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-feed:", err)
		os.Exit(1)
	}
}

func run() error {
	rounds := flag.Int("rounds", 5, "times everything is measured, in turns; the table shows medians")
	scale := flag.Float64("scale", 1, "of the numbers of messages")
	only := flag.String("only", "", "one size: 200B, 2kB or 60kB")
	out := flag.String("out", "out/bench-feed.json", "where the rows go")
	profile := flag.String("profile", "", "of one size (-only): where a CPU profile of the whole path goes, instead of the table")
	flag.Parse()
	if *profile != "" && *only == "" {
		return errors.New("-profile is of one size: add -only")
	}
	dir, err := os.MkdirTemp("", "bench-feed")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b, err := newBench(dir, *only, *scale)
	if err != nil {
		return err
	}
	if *profile != "" {
		return b.profile(*profile)
	}
	for i := range *rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d, load %s\n", i+1, *rounds, load())
		if err := b.round(); err != nil {
			return err
		}
	}
	rows := b.rows()
	if err := report.Print(os.Stdout, rows); err != nil {
		return err
	}
	return report.Write(*out, rows)
}
