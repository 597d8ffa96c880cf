// Evaltab runs the comparison of policies on the simulated fleet, prints its main
// rows, and writes all of them to out/eval.json and the tables to out/eval.md and
// between the markers of docs/eval.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/inspect/replay/eval"
	"github.com/eppctl/eppctl/internal/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	seeds := flag.Int("seeds", 3, "of each cell")
	traces := flag.String("traces", "testdata/traces", "folder")
	dir := flag.String("out", "out", "folder for eval.json and eval.md")
	docs := flag.String("docs", "docs/eval.md", "document whose tables are replaced, empty = none")
	flag.Parse()
	if err := run(ctx, *seeds, *traces, *dir, *docs, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "evaltab:", err)
		os.Exit(1)
	}
}

const caption = `Simulated fleet, virtual time; a smaller mean time to first token (TTFT) is better.
REFERENCE is what TARGET or UNIT names, for ..._load_...: the better omniscient row.
RATIO is VALUE / REFERENCE.
`

func run(ctx context.Context, seeds int, traces, dir, docs string, stdout, stderr io.Writer) error {
	cells := eval.Matrix(seeds)
	begun := time.Now()
	results, err := eval.Run(ctx, traces, cells, func(done, total int) {
		if done%20 == 0 || done == total {
			fmt.Fprintf(stderr, "%d of %d runs after %s\n", done, total, time.Since(begun).Round(time.Second))
		}
	})
	if err != nil {
		return err
	}
	var rows []report.Row
	for _, x := range results.Rows() {
		rows = append(rows, report.Row{Name: x.Name, Value: x.Value, Unit: x.Unit, Target: x.Target}.Against(x.Reference))
	}
	if err := report.Write(dir+"/eval.json", rows); err != nil {
		return err
	}
	var text strings.Builder
	if err := results.Markdown(&text); err != nil {
		return err
	}
	if err := os.WriteFile(dir+"/eval.md", []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("evaltab: %w", err)
	}
	if docs != "" {
		if err := replaceTables(docs, label(seeds)+text.String()); err != nil {
			return err
		}
	}
	fmt.Fprint(stdout, caption)
	return report.Print(stdout, rows)
}
