// Package testdata finds the captures and fixtures that data-driven tests read.
// Only tests import it.
package testdata

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// ExtraEnv names a second folder laid out like the project's testdata: captures
// there are run by the same tests, with no code of their own.
const ExtraEnv = "EPPCTL_EXTRA_TESTDATA"

// Dirs returns the folders of one kind ("engines", "metrics", "kv-events",
// "frames", "tokenizer" …): the project's own, which must exist, and the extra
// one when it is given and has such a folder.
func Dirs(tb testing.TB, kind string) []string {
	tb.Helper()
	_, self, _, ok := runtime.Caller(0)
	if !ok {
		tb.Fatal("testdata: cannot find the source tree")
	}
	own := filepath.Join(filepath.Dir(self), "..", "..", "testdata", kind)
	if _, err := os.Stat(own); err != nil {
		tb.Fatalf("testdata: %v", err)
	}
	dirs := []string{own}
	if extra := os.Getenv(ExtraEnv); extra != "" {
		dir := filepath.Join(extra, kind)
		if _, err := os.Stat(dir); err == nil {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
