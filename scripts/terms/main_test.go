package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The sum of terms is what the line that registers them makes.
func TestGenerated(t *testing.T) {
	const dir, directive = "../../internal/core/pick", "//go:generate go run ../../../scripts/terms "
	source, err := os.ReadFile(filepath.Join(dir, "term.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, line, ok := strings.Cut(string(source), directive)
	if !ok {
		t.Fatalf("term.go has no line %q", directive)
	}
	line, _, _ = strings.Cut(line, "\n")
	want, err := generate(strings.Fields(line))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, output))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is not what %s makes: run go generate in internal/core/pick", output, line)
	}
}
