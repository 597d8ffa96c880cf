// Evaltab runs the comparison of policies on the simulated fleet, prints its main
// rows, and writes all of them to out/eval.json and the tables to out/eval.md and
// between the markers of docs/eval.md. With -others it plays the other workloads, whose
// table goes to out/eval-others.md and between its own markers.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/inspect/replay/eval"
	"github.com/eppctl/eppctl/internal/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o := options{stdout: os.Stdout, stderr: os.Stderr}
	flag.IntVar(&o.seeds, "seeds", 3, "of each cell")
	flag.StringVar(&o.traces, "traces", "testdata/traces", "folder")
	flag.StringVar(&o.dir, "out", "out", "folder for eval.json, eval.md and eval-others.md")
	flag.StringVar(&o.docs, "docs", "docs/eval.md", "document whose tables are replaced, empty = none")
	others := flag.Bool("others", false, "play the workloads that no constant was read off, instead of the six")
	flag.Parse()
	run := o.six
	if *others {
		run = o.others
	}
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "evaltab:", err)
		os.Exit(1)
	}
}

type options struct {
	seeds             int
	traces, dir, docs string
	stdout, stderr    io.Writer
}

const caption = `Simulated fleet, virtual time; a smaller mean time to first token (TTFT) is better.
REFERENCE is what TARGET or UNIT names, for ..._load_...: the better omniscient row.
RATIO is VALUE / REFERENCE.
`

func (o *options) six(ctx context.Context) error {
	results, err := o.play(ctx, eval.Matrix(o.seeds))
	if err != nil {
		return err
	}
	var rows []report.Row
	for _, x := range results.Rows() {
		rows = append(rows, report.Row{Name: x.Name, Value: x.Value, Unit: x.Unit, Target: x.Target}.Against(x.Reference))
	}
	if err := report.Write(o.dir+"/eval.json", rows); err != nil {
		return err
	}
	if _, err := o.tables("make eval", "eval.md", results.Markdown); err != nil {
		return err
	}
	fmt.Fprint(o.stdout, caption)
	return report.Print(o.stdout, rows)
}

func (o *options) others(ctx context.Context) error {
	results, err := o.play(ctx, eval.OtherMatrix(o.seeds))
	if err != nil {
		return err
	}
	text, err := o.tables("make eval-others", "eval-others.md", results.OtherMarkdown)
	if err != nil {
		return err
	}
	_, err = io.WriteString(o.stdout, text)
	return err
}

// play runs cells and tells how far it is.
func (o *options) play(ctx context.Context, cells []eval.Cell) (eval.Results, error) {
	begun := time.Now()
	return eval.Run(ctx, o.traces, cells, func(done, total int) {
		if done%20 == 0 || done == total {
			fmt.Fprintf(o.stderr, "%d of %d runs after %s\n", done, total, time.Since(begun).Round(time.Second))
		}
	})
}

// tables writes what a command's tables say into a file of their own and between the
// command's markers.
func (o *options) tables(command, file string, markdown func(io.Writer) error) (string, error) {
	var text strings.Builder
	if err := markdown(&text); err != nil {
		return "", err
	}
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return "", fmt.Errorf("tables: %w", err)
	}
	if err := os.WriteFile(filepath.Join(o.dir, file), []byte(text.String()), 0o644); err != nil {
		return "", fmt.Errorf("tables: %w", err)
	}
	if o.docs == "" {
		return text.String(), nil
	}
	return text.String(), replaceTables(o.docs, command, label(o.seeds)+text.String())
}
