package modelsource

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Place is where a model's files are.
type Place struct {
	Name     string // as asked for
	Dir      string
	Revision string // asked for; "" of a folder
	Commit   string // of the files; "" of a folder
	// Stale is why the hub could not be asked, when the cache was taken instead.
	Stale error

	settings *Settings // nil of a folder
}

// Find finds the files of a model: a folder, or a name of the hub at a revision
// ("" = main). A name is asked of the hub, and what is missing fetched; where the hub
// cannot be reached, or is not to be, the cache has to have it.
func (s *Settings) Find(ctx context.Context, name, revision string) (*Place, error) {
	if isDir(name) {
		if revision != "" {
			return nil, &Error{Kind: Invalid, What: "revision " + clip(revision) + " of the folder " + clip(name), Why: "folders have none"}
		}
		return &Place{Name: name, Dir: name}, nil
	}
	if strings.HasPrefix(name, "/") || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "~") {
		return nil, &Error{Kind: Missing, What: "model folder " + clip(name), Why: "there is no such folder",
			Hint: "name a folder with the model's tokenizer files, which this user can read, or a name of the hub"}
	}
	if revision == "" {
		revision = "main"
	}
	if err := errors.Join(CheckName(name), CheckRevision(revision)); err != nil {
		return nil, err
	}
	if s.Cache == "" {
		return nil, &Error{
			Kind: Failed, What: "model " + name, Why: "there is no folder for the hub's files: neither HOME nor HF_HOME is set",
			Hint: "set HF_HOME to a folder that this user can write to, such as /var/lib/eppctl/hf",
		}
	}
	if s.Offline {
		return s.cached(name, revision)
	}
	p, err := s.fetch(ctx, name, revision)
	var e *Error
	if err != nil && errors.As(err, &e) && (e.Kind == Unreachable || e.Kind == Damaged) {
		if cached, cerr := s.cached(name, revision); cerr == nil {
			cached.Stale = err
			return cached, nil
		}
	}
	return p, err
}

// cached finds a model in the cache alone.
func (s *Settings) cached(name, revision string) (*Place, error) {
	commit, err := s.commitOf(name, revision)
	if err != nil {
		return nil, err
	}
	p := &Place{Name: name, Dir: s.snapshot(name, commit), Revision: revision, Commit: commit, settings: s}
	files, err := p.files()
	if err == nil && slices.ContainsFunc(files, isVocabulary) {
		return p, nil
	}
	return nil, &Error{
		Kind: Missing, What: "model " + name + " at " + revision, Why: "its tokenizer is not in the cache " + s.Cache,
		Hint: s.offlineHint(), Err: err,
	}
}

func (s *Settings) offlineHint() string {
	if s.Offline {
		return "try: without HF_HUB_OFFLINE, or HF_HUB_CACHE with the folder that has it"
	}
	return ""
}

// files lists the wanted files of a place, sorted.
func (p *Place) files() (names []string, err error) {
	for _, w := range wanted {
		dir, pattern := path.Split(w.pattern)
		entries, err := readNames(filepath.Join(p.Dir, dir))
		if err != nil {
			if dir != "" && errors.Is(err, fs.ErrNotExist) {
				continue
			}
			return nil, &Error{Kind: Failed, What: "model folder " + p.Dir, Why: err.Error(), Err: err}
		}
		for _, name := range entries {
			if ok, _ := path.Match(pattern, name); ok {
				names = append(names, dir+name)
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > maxFiles {
		return nil, &Error{Kind: Invalid, What: "model folder " + p.Dir, Why: "it has more tokenizer and template files than any model"}
	}
	return names, nil
}

// readNames lists a folder; one of a model has some tens of files.
func readNames(dir string) ([]string, error) {
	const most = 10_000
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(most)
	if errors.Is(err, io.EOF) { // an empty folder
		err = nil
	}
	return names, err
}

// read reads a wanted file.
func (p *Place) read(name string) ([]byte, error) {
	b, err := readCapped(filepath.Join(p.Dir, filepath.FromSlash(name)), limitOf(name))
	if err != nil {
		return nil, &Error{Kind: Failed, What: filepath.Join(p.Dir, name), Why: err.Error(), Err: err}
	}
	return b, nil
}

var errLarge = errors.New("file is larger than any of its kind")

// readCapped reads a regular file of at most limit bytes.
func readCapped(name string, limit int64) ([]byte, error) {
	f, err := openRegular(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, errLarge
	}
	b := make([]byte, info.Size())
	n, err := io.ReadFull(f, b)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) { // it got shorter: a watcher will see that
		err = nil
	}
	return b[:n], err
}

// openRegular opens a file that is neither a pipe nor a device: those may never end.
func openRegular(name string) (*os.File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	return os.Open(name)
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}
