package recorder

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/recording"
)

// Files that look alike are nobody's to remove.
func TestOlderFiles(t *testing.T) {
	dir := t.TempDir()
	want := []string{"a-20261129T114207.318-1.eptap", "a-20261129T114207.318-2.eptap", "a-20261129T114207.318-10.eptap", "a-20261130T000000.000-1.eptap"}
	others := []string{"a.eptap", "a-2.eptap", "a-20261129T114207.318-1.eptap.bak", "ab-20261129T114207.318-1.eptap", "a-20261129T114207.318-x.eptap"}
	for _, name := range append(slices.Clone(want), others...) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := (rotation{filepath.Join(dir, "a.eptap")}).prune(2); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(dir)
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if expected := append(slices.Clone(want[2:]), others...); len(left) != len(expected) || slices.ContainsFunc(expected, func(s string) bool { return !slices.Contains(left, s) }) {
		t.Errorf("left %v, want %v", left, expected)
	}
}

// The files of a rotation are whole recordings of their user alone, and no more than
// are to be kept.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.eptap")
	r, err := Begin(Target{Path: path, RotateSize: 300, Keep: 3}, recording.Header{Program: "test"}, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for range 40 {
		if err := r.Write(&recording.Record{Type: recording.TypeCard, At: 1, Body: []byte(`{"kind":"Explanation"}`)}); err != nil {
			t.Fatal(err)
		}
		if r.Due(time.Now()) {
			if err := r.Rotate([]byte(`{}`), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.End([]byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if _, begun, ok := r.Written(); err != nil || len(files) != 3 || begun <= 3 || !ok {
		t.Errorf("%d files left of %d, %v", len(files), begun, err)
	}
	for _, name := range files {
		st, err := os.Stat(name)
		if err != nil || st.Mode().Perm() != 0o600 || st.Size() > 400 {
			t.Errorf("%s: %v, %v", name, st, err)
		}
		if err := readable(name); !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file that is removed or moved under its writer is followed by another, at the next
// look or the next rotation: what comes then is not lost with it.
func TestFileTakenAway(t *testing.T) {
	for _, c := range []struct {
		name string
		take func(path string) error
		look bool
	}{
		{"removed", os.Remove, true},
		{"removed, and no look before the rotation", os.Remove, false},
		{"moved", func(path string) error { return os.Rename(path, path+".mine") }, true},
		{"replaced", func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, []byte("another's"), 0o600))
		}, true},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "a.eptap")
		r, err := Begin(Target{Path: path}, recording.Header{Program: "test"}, nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		write := func() {
			t.Helper()
			if err := r.Write(&recording.Record{Type: recording.TypeCard, At: 1, Body: []byte(`{}`)}); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if c.look {
				if err := r.Flush(); err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
			}
		}
		write()
		if r.Due(time.Now()) {
			t.Fatalf("%s: due with the file in its place", c.name)
		}
		if err := c.take(path); err != nil {
			t.Fatal(err)
		}
		write()
		if c.look && !r.Due(time.Now()) {
			t.Errorf("%s: nobody notices", c.name)
		}
		if err := r.Rotate([]byte(`{}`), time.Now()); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		write()
		if r.Due(time.Now()) {
			t.Errorf("%s: the new file is taken for the old one", c.name)
		}
		if err := r.End([]byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		if err := readable(path); !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", c.name, err)
		}
		if files, _ := filepath.Glob(filepath.Join(dir, "a-*")); (len(files) == 1) != (c.name == "replaced") {
			t.Errorf("%s: set aside are %v", c.name, files) // what another has put there is not overwritten
		}
	}
}

func readable(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := recording.NewReader(f)
	for err == nil {
		_, err = r.Next()
	}
	return err
}
