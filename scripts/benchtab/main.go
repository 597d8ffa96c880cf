// Benchtab runs the benchmarks whose results the project promises, prints them
// as a table and writes out/bench.json; with -decide those of the decision alone,
// into out/bench-decide.json. The values of one row and its reference
// come from the same run.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"

	"github.com/eppctl/eppctl/internal/report"
)

func main() {
	decide := flag.Bool("decide", false, "the decision beside a bare loop, into out/bench-decide.json")
	flag.Parse()
	t, path := promised, "out/bench.json"
	if *decide {
		t, path = decisions, "out/bench-decide.json"
	}
	if err := run(os.Stdout, os.Stderr, path, t); err != nil {
		fmt.Fprintln(os.Stderr, "benchtab:", err)
		os.Exit(1)
	}
}

func run(stdout, stderr io.Writer, path string, t table) error {
	got := results{}
	for _, pkg := range t.packages() {
		fmt.Fprintln(stderr, "go test -bench in", pkg)
		// Three short runs of each: the median of them survives one busy moment.
		cmd := exec.Command("go", "test", "-run", "^$", "-bench", t.pattern(pkg), "-benchmem", "-count", "3", "-benchtime", "300ms", pkg)
		cmd.Stderr = stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", pkg, err, out)
		}
		if err := got.read(bytes.NewReader(out), pkg); err != nil {
			return err
		}
	}
	rows, err := got.rows(t)
	if err != nil {
		return err
	}
	fmt.Fprint(stdout, t.caption)
	if err := report.Print(stdout, rows); err != nil {
		return err
	}
	return report.Write(path, rows)
}

// results holds every value by benchmark ("Name/sub", without the GOMAXPROCS
// suffix) and unit.
type results map[key][]float64

type key struct{ pkg, bench, unit string }

func (r results) read(in io.Reader, pkg string) error {
	rd := benchfmt.NewReader(in, pkg)
	for rd.Scan() {
		res, ok := rd.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		name := baseName(string(res.Name.Full()))
		for _, v := range res.Values {
			unit, value := v.Unit, v.Value
			if v.OrigUnit != "" {
				unit, value = v.OrigUnit, v.OrigValue
			}
			k := key{pkg, name, unit}
			r[k] = append(r[k], value)
		}
	}
	return rd.Err()
}

// baseName cuts the "-2" that go test appends when GOMAXPROCS is not 1.
func baseName(s string) string {
	i := strings.LastIndexByte(s, '-')
	if i < 0 || strings.Trim(s[i+1:], "0123456789") != "" {
		return s
	}
	return s[:i]
}

func (r results) median(k key) (float64, error) {
	v := slices.Sorted(slices.Values(r[k]))
	if len(v) == 0 {
		return 0, fmt.Errorf("%s has no benchmark %s with unit %s", k.pkg, k.bench, k.unit)
	}
	return v[len(v)/2], nil
}

func (r results) rows(of table) ([]report.Row, error) {
	var rows []report.Row
	for _, t := range of.entries {
		v, err := r.median(t.value)
		if err != nil {
			return nil, err
		}
		row := report.Row{Name: t.name, Value: t.scale(v), Unit: t.unit, Target: t.target}
		if t.reference != (key{}) {
			ref, err := r.median(t.reference)
			if err != nil {
				return nil, err
			}
			row = row.Against(t.scale(ref))
		}
		rows = append(rows, row)
	}
	return rows, nil
}
