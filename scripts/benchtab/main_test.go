package main

import (
	"strings"
	"testing"
)

// TestCaption: whoever reads the table must not guess what it compares with.
func TestCaption(t *testing.T) {
	for _, word := range []string{"REFERENCE is", "RATIO is VALUE / REFERENCE"} {
		if !strings.Contains(caption, word) {
			t.Errorf("the caption does not say %q", word)
		}
	}
}

func TestResultsKeepUnitsAndMedian(t *testing.T) {
	const out = `goos: linux
pkg: example.org/x
BenchmarkLookup/512-2         	 100	 900 ns/op	 0 B/op	 0 allocs/op
BenchmarkLookup/512-2         	 100	 700 ns/op	 0 B/op	 0 allocs/op
BenchmarkLookup/512-2         	 100	 800 ns/op	 0 B/op	 1 allocs/op
BenchmarkApply        	 100	 10 ns/op	 5000 events/s
PASS
`
	r := results{}
	if err := r.read(strings.NewReader(out), "x"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		key  key
		want float64
	}{
		{key{"x", "Lookup/512", "ns/op"}, 800},
		{key{"x", "Lookup/512", "allocs/op"}, 0},
		{key{"x", "Apply", "events/s"}, 5000},
	} {
		if got, err := r.median(tt.key); err != nil || got != tt.want {
			t.Errorf("%v: %v, %v, want %v", tt.key, got, err, tt.want)
		}
	}
	if _, err := r.median(key{"x", "Gone", "ns/op"}); err == nil {
		t.Error("a missing benchmark gives no error")
	}
}
