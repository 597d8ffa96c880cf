//go:build unix

package modelsource

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestHostileReload: what a file is replaced by while it is served, if it is no file
// that can be used: nothing blocks the watcher or fills the memory, it is told, the old
// one serves, and the next good one is taken.
func TestHostileReload(t *testing.T) {
	const aside = ".aside"
	elsewhere := filepath.Join(t.TempDir(), "sparse")
	sparse, err := os.Create(elsewhere)
	if err = errors.Join(err, sparse.Truncate(1<<40), sparse.Close()); err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]func(at string) error{
		"a pipe that nobody fills": func(at string) error { return syscall.Mkfifo(at, 0o600) },
		"a folder":                 func(at string) error { return os.Symlink("/", at) },
		"a device without end":     func(at string) error { return os.Symlink("/dev/zero", at) },
		"a link to itself":         func(at string) error { return os.Symlink(filepath.Base(at[:len(at)-len(aside)]), at) },
		"a terabyte":               func(at string) error { return os.Symlink(elsewhere, at) },
		"nothing in it":            func(at string) error { return os.WriteFile(at, nil, 0o600) },
	} {
		for _, file := range []string{"tokenizer.json", "tokenizer_config.json"} {
			t.Run(name+" for "+file, func(t *testing.T) {
				files := tinyFiles(t)
				p := folder(t, files)
				w, changes := watching(t, p, Options{})
				at := filepath.Join(p.Dir, file)
				if err := errors.Join(put(at+aside), os.Rename(at+aside, at)); err != nil {
					t.Fatal(err)
				}
				if c := next(t, changes); c.Err == nil {
					t.Errorf("it is used: %+v", c.New)
				}
				if r, err := w.Tokenize(context.Background(), chatText); err != nil || len(r.IDs) == 0 {
					t.Errorf("the old model does not serve: %v", err)
				}
				replace(t, filepath.Join(p.Dir, "chat_template.jinja"), []byte("x"))
				replace(t, at, files[file])
				for c := next(t, changes); c.Err != nil; c = next(t, changes) {
				}
			})
		}
	}
}
