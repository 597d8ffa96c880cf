package testdata

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// fatal is a test that may end without ending this one.
type fatal struct {
	testing.TB
	said string
}

func (f *fatal) Helper()        {}
func (f *fatal) Fatal(a ...any) { f.Fatalf("%s", fmt.Sprint(a...)) }
func (f *fatal) Fatalf(format string, a ...any) {
	f.said = fmt.Sprintf(format, a...)
	panic(f)
}

// dirs is what Dirs returns, or what it ended the test with.
func dirs(t *testing.T, kind string) (list []string, said string) {
	t.Helper()
	f := &fatal{TB: t}
	defer func() {
		if r := recover(); r != nil && r != any(f) {
			panic(r)
		}
		said = f.said
	}()
	return Dirs(f, kind), ""
}

func TestDirs(t *testing.T) {
	extra := t.TempDir()
	if err := os.Mkdir(filepath.Join(extra, "engines"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(extra, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, extra, kind string
		want              int // folders; 0 = the test ends
	}{
		{"none given", "", "engines", 1},
		{"given", extra, "engines", 2},
		{"given without the kind", extra, "metrics", 1},
		{"relative to the module", "internal/testdata/../../testdata", "engines", 2},
		{"a typo", extra + "x", "engines", 0},
		{"a file", file, "engines", 0},
		{"no such kind", "", "engine", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(ExtraEnv, c.extra)
			list, said := dirs(t, c.kind)
			if len(list) != c.want || (said == "") != (c.want > 0) {
				t.Errorf("%q, said %q", list, said)
			}
		})
	}
}
