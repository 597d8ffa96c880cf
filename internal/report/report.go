// Package report prints a table of measured values and writes the same values
// to out/NAME.json, where scripts find them under stable names.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// Row is one measured value. Reference is the value of the same thing measured
// another way in the same run, Ratio is Value over it, and Target says what the
// project wants; all three may be absent.
type Row struct {
	Name      string   `json:"name"`
	Value     float64  `json:"value"`
	Unit      string   `json:"unit"`
	Reference *float64 `json:"reference"`
	Ratio     *float64 `json:"ratio"`
	Target    string   `json:"target"`
}

// Against gives the row a reference to be read beside.
func (r Row) Against(reference float64) Row {
	r.Reference = &reference
	if reference != 0 {
		ratio := r.Value / reference
		r.Ratio = &ratio
	}
	return r
}

// Print writes the rows as a table. What Reference is of differs from table to
// table: the caller says it.
func Print(w io.Writer, rows []Row) error {
	var text bytes.Buffer
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tVALUE\tUNIT\tREFERENCE\tRATIO\tTARGET")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, number(&r.Value), r.Unit, number(r.Reference), number(r.Ratio), r.Target)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	var b strings.Builder
	for line := range strings.Lines(text.String()) { // an empty last cell leaves blanks
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func number(v *float64) string {
	switch {
	case v == nil:
		return "-"
	case *v == float64(int64(*v)):
		return fmt.Sprintf("%.0f", *v)
	case *v >= 100 || *v <= -100:
		return fmt.Sprintf("%.1f", *v)
	}
	return fmt.Sprintf("%.3g", *v)
}

// Write stores the rows as {"rows": [...]} in path, making its folder.
func Write(path string, rows []Row) error {
	b, err := json.MarshalIndent(map[string][]Row{"rows": rows}, "", "  ")
	if err != nil {
		return fmt.Errorf("report %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("report %s: %w", path, err)
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
