package modelsource

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The layout of the hub's cache, which is that of huggingface_hub (2.4.0):
//
//	models--ORG--NAME/refs/REVISION            the commit, without a line end
//	models--ORG--NAME/blobs/ETAG               a file's content
//	models--ORG--NAME/snapshots/COMMIT/FILE -> ../../blobs/ETAG
//
// A blob is written beside its place and renamed, so that it is whole or absent; the
// link is made after it, and the ref after all links of ours.

// repository is the folder of a model. The name has been checked.
func (s *Settings) repository(name string) string {
	return filepath.Join(s.Cache, "models--"+strings.ReplaceAll(name, "/", "--"))
}

func (s *Settings) snapshot(name, commit string) string {
	return filepath.Join(s.repository(name), "snapshots", commit)
}

func (s *Settings) ref(name, revision string) string {
	return filepath.Join(s.repository(name), "refs", filepath.FromSlash(revision))
}

// commitOf is the commit that a revision is in the cache.
func (s *Settings) commitOf(name, revision string) (string, error) {
	if isCommit(revision) {
		return revision, nil
	}
	b, err := readCapped(s.ref(name, revision), 1<<10)
	commit := strings.TrimSpace(string(b))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", &Error{
			Kind: Missing, What: "model " + name + " at " + revision, Why: "it is not in the cache " + s.Cache, Hint: s.offlineHint(), Err: err,
		}
	case err != nil:
		return "", &Error{Kind: Failed, What: s.ref(name, revision), Why: err.Error(), Err: err}
	case !isCommit(commit):
		return "", &Error{Kind: Damaged, What: s.ref(name, revision), Why: "it does not hold a commit", Hint: "try: delete the file"}
	}
	return commit, nil
}

// setRef notes the commit of a revision, as every tool does that fetches a file.
func (s *Settings) setRef(name, revision, commit string) error {
	if revision == commit {
		return nil
	}
	if have, err := s.commitOf(name, revision); err == nil && have == commit {
		return nil
	}
	return writeWhole(s.ref(name, revision), []byte(commit))
}

// writeWhole makes a file whole or not at all.
func writeWhole(name string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	f, err := create(name, ".tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), name)
}

// create makes a new file beside name that nobody else has, readable for whom the
// user's umask says, like the rest of the cache.
func create(name, suffix string) (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*"+suffix)
	if err != nil {
		return nil, err
	}
	name = f.Name()
	if err := errors.Join(f.Close(), os.Remove(name)); err != nil { // its mode is 0600
		return nil, err
	}
	return os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
}

// link makes a snapshot's file the blob.
func (s *Settings) link(name, commit, file, etag string) error {
	at := filepath.Join(s.snapshot(name, commit), filepath.FromSlash(file))
	if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
		return err
	}
	up := strings.Repeat("../", 2+strings.Count(file, "/"))
	target := filepath.FromSlash(up + "blobs/" + etag)
	if have, err := os.Readlink(at); err == nil && have == target {
		return nil
	}
	for range 3 { // another process may do the same
		err := os.Symlink(target, at)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		if _, err := os.Stat(at); err == nil {
			return nil // of this commit: it is the same content
		}
		if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) { // a link to nothing
			return err
		}
	}
	return &Error{Kind: Failed, What: at, Why: "something keeps putting a broken link there"}
}
