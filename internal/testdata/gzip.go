package testdata

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"testing"
)

// GzipJSON reads a compressed file of JSON.
func GzipJSON(tb testing.TB, path string, into any) {
	tb.Helper()
	if err := json.Unmarshal(Gunzip(tb, path), into); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
}

// Gunzip reads a compressed file.
func Gunzip(tb testing.TB, path string) []byte {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	return b
}
