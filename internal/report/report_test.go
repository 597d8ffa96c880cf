package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRowsOnScreenAndOnDisk(t *testing.T) {
	rows := []Row{
		Row{Name: "hit_share", Value: 0.5, Unit: "of tokens", Target: "> round robin"}.Against(0.25),
		Row{Name: "failed", Unit: "requests"}.Against(0),
		{Name: "p50_ms", Value: 123.456, Unit: "ms"},
	}
	var out bytes.Buffer
	if err := Print(&out, rows); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"NAME VALUE UNIT REFERENCE RATIO TARGET",
		"hit_share 0.5 of tokens 0.25 2 > round robin",
		"failed 0 requests 0 -",
		"p50_ms 123.5 ms - -",
	}
	for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		if got := strings.Join(strings.Fields(line), " "); got != want[i] {
			t.Errorf("line %d: %q, want %q", i, got, want[i])
		}
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasSuffix(line, " \n") {
			t.Errorf("blanks at the end of %q", line)
		}
	}
	path := filepath.Join(t.TempDir(), "out", "x.json")
	if err := Write(path, rows); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Rows []map[string]any }
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	for _, r := range file.Rows {
		for _, k := range []string{"name", "value", "unit", "reference", "ratio", "target"} {
			if _, ok := r[k]; !ok {
				t.Errorf("row %v lacks %s", r["name"], k)
			}
		}
	}
	if file.Rows[2]["reference"] != nil || file.Rows[0]["ratio"] != 2.0 {
		t.Errorf("rows %v", file.Rows)
	}
}
