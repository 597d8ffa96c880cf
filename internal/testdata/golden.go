package testdata

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

// A test that runs a terminal's program has the flag already: teatest's.
func init() {
	if flag.Lookup("update") == nil {
		flag.Bool("update", false, "rewrite the golden files under testdata")
	}
}

func updating() bool { return flag.Lookup("update").Value.String() == "true" }

// Golden compares got with the file, which -update rewrites.
func Golden(tb testing.TB, file string, got []byte) {
	tb.Helper()
	if updating() {
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
