package main

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A profile is of the phase it is named after, and of nothing else.
func TestProfileNamesItsPhase(t *testing.T) {
	out := filepath.Join(t.TempDir(), "index.pprof")
	if err := run("hot_64", 300*time.Millisecond, out); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b) // protobuf: its strings stand in it as they are
	if !strings.Contains(text, "hot_64") || !strings.Contains(text, "index.(*Index).Lookup") {
		t.Error("no lookup under the label of its phase")
	}
}

func TestUnknownPhase(t *testing.T) {
	out := filepath.Join(t.TempDir(), "index.pprof")
	if err := run("hot_65", time.Second, out); err == nil || !strings.Contains(err.Error(), `"hot_65"`) {
		t.Errorf("%v", err)
	}
}
