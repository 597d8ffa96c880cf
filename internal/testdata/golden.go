package testdata

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files under testdata")

// Golden compares got with the file, which -update rewrites.
func Golden(tb testing.TB, file string, got []byte) {
	tb.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		tb.Errorf("got:\n%s\nwant, by %s:\n%s", got, file, want)
	}
}
