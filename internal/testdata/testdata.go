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
// one when it is given and has such a folder. An extra folder that is not there
// ends the test: a typo must not pass for captures that were run. A relative one
// is taken from the module's root, since each test runs in its own package's.
func Dirs(tb testing.TB, kind string) []string {
	tb.Helper()
	_, self, _, ok := runtime.Caller(0)
	if !ok {
		tb.Fatal("testdata: cannot find the source tree")
	}
	root := filepath.Join(filepath.Dir(self), "..", "..")
	own := filepath.Join(root, "testdata", kind)
	if _, err := os.Stat(own); err != nil {
		tb.Fatalf("testdata: %v", err)
	}
	dirs := []string{own}
	extra := os.Getenv(ExtraEnv)
	if extra == "" {
		return dirs
	}
	if !filepath.IsAbs(extra) {
		extra = filepath.Join(root, extra)
	}
	if _, err := os.ReadDir(extra); err != nil {
		tb.Fatalf("testdata: %s: %v", ExtraEnv, err)
	}
	if dir := filepath.Join(extra, kind); isDir(dir) {
		dirs = append(dirs, dir)
	}
	return dirs
}

// Beside is the path of a file of the folder dir, one of Dirs(kind), or of the
// project's own where dir has none: an extra folder need not repeat models and
// vocabularies.
func Beside(tb testing.TB, dir, kind, name string) string {
	tb.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	return filepath.Join(Dirs(tb, kind)[0], filepath.FromSlash(name))
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
