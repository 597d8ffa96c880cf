package recorder

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/recording"
)

// rotation is the files of one recording on disk: the one being written has the
// name asked for, an older one the time of its begin in it:
// NAME-20261129T114207.318-1.eptap. What counts is what lies there, whichever
// process wrote it.
type rotation struct{ path string }

const rotationStamp = "20060102T150405.000"

var rotationTail = regexp.MustCompile(`^-(\d{8}T\d{6}\.\d{3})-(\d{1,9})$`)

// aside gives the file the name of an older one, which it returns.
func (r rotation) aside(begun time.Time) (string, error) {
	stem, ext := r.split()
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s-%s-%d%s", stem, begun.UTC().Format(rotationStamp), n, ext)
		// A link, unlike a rename, replaces nothing that is there.
		switch err := os.Link(r.path, name); {
		case err == nil:
			return name, os.Remove(r.path)
		case os.IsExist(err):
			continue
		}
		if _, err := os.Lstat(name); err == nil {
			continue
		}
		return name, os.Rename(r.path, name) // a file system without links
	}
}

// older are the files set aside, oldest first.
func (r rotation) older() ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(r.path))
	if err != nil {
		return nil, err
	}
	type file struct {
		name, begun string
		n           int
	}
	var files []file
	stem, ext := r.split()
	for _, e := range entries {
		tail, ours := strings.CutPrefix(e.Name(), filepath.Base(stem))
		tail, same := strings.CutSuffix(tail, ext)
		if m := rotationTail.FindStringSubmatch(tail); ours && same && m != nil {
			n, _ := strconv.Atoi(m[2]) // digits
			files = append(files, file{filepath.Join(filepath.Dir(r.path), e.Name()), m[1], n})
		}
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Or(cmp.Compare(a.begun, b.begun), cmp.Compare(a.n, b.n)) })
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.name
	}
	return names, nil
}

// prune removes the oldest files beyond n.
func (r rotation) prune(n int) error {
	names, err := r.older()
	if err != nil {
		return err
	}
	for _, name := range names[:max(len(names)-n, 0)] {
		if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// split takes the path apart where the time goes in.
func (r rotation) split() (stem, ext string) {
	ext = filepath.Ext(r.path)
	return strings.TrimSuffix(r.path, ext), ext
}

// Begun is when a recording was begun, by its header, or when the file was
// changed last if it has none.
func Begun(path string) time.Time {
	f, err := os.Open(path)
	if err != nil {
		return time.Time{}
	}
	defer f.Close()
	if r, err := recording.NewReader(f); err == nil {
		if at, err := time.Parse(time.RFC3339Nano, r.Header().Begun); err == nil {
			return at
		}
	}
	st, err := f.Stat()
	if err != nil {
		return time.Time{}
	}
	return st.ModTime()
}
