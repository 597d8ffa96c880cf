package modelsource

import (
	"context"
	"crypto/sha1" // git's names of contents
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// fetch asks the hub for a revision and brings what of it is wanted and not in the
// cache.
func (s *Settings) fetch(ctx context.Context, name, revision string) (*Place, error) {
	l, err := s.list(ctx, name, revision)
	if err != nil {
		return nil, err
	}
	if isCommit(revision) && l.Commit != revision {
		return nil, &Error{Kind: Damaged, What: "model " + name + " at " + revision, Why: "the hub answers with another commit"}
	}
	var files []string
	for _, f := range l.Files {
		if limitOf(f.Name) > 0 && filepath.IsLocal(filepath.FromSlash(f.Name)) {
			files = append(files, f.Name)
		}
	}
	switch {
	case len(files) > maxFiles:
		return nil, &Error{Kind: Damaged, What: "model " + name, Why: fmt.Sprintf("it has %d tokenizer and template files", len(files))}
	case !slices.ContainsFunc(files, isVocabulary):
		return nil, &Error{
			Kind: Missing, What: "model " + name + " at " + revision, Why: "the repository has no tokenizer file",
			Hint: "name the repository that the engine loads its tokenizer from (--tokenizer)",
		}
	}
	for _, f := range files {
		if err := s.fetchFile(ctx, name, l.Commit, f); err != nil {
			return nil, err
		}
	}
	p := &Place{Name: name, Dir: s.snapshot(name, l.Commit), Revision: revision, Commit: l.Commit, settings: s}
	err = s.setRef(name, revision, l.Commit)
	if err != nil && !errors.Is(err, os.ErrPermission) && !errors.Is(err, syscall.EROFS) { // a cache that cannot be written has all
		return nil, &Error{Kind: Failed, What: s.ref(name, revision), Why: err.Error(), Err: err}
	}
	return p, nil
}

// fetchFile brings one file of a commit into the cache.
func (s *Settings) fetchFile(ctx context.Context, name, commit, file string) error {
	at := filepath.Join(s.snapshot(name, commit), filepath.FromSlash(file))
	if _, err := os.Stat(at); err == nil {
		return nil // a commit's file never changes
	}
	address := s.Endpoint + "/" + name + "/resolve/" + commit + "/" + (&url.URL{Path: file}).EscapedPath()
	return s.retry(ctx, func(ctx context.Context, answered func()) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		have := func(resp *http.Response) bool {
			blob, err := s.blobOf(resp, name)
			if err != nil || resp.Header.Get("X-Linked-Etag") == "" && resp.StatusCode != http.StatusOK {
				return false
			}
			_, err = os.Stat(blob)
			return err == nil
		}
		resp, err := s.get(ctx, address, have)
		if err != nil {
			return err
		}
		answered()
		defer resp.Body.Close()
		blob, err := s.blobOf(resp, name)
		switch cached := have(resp); {
		case !cached && resp.StatusCode != http.StatusOK:
			return s.refusal(resp, name, commit)
		case err != nil:
			return &Error{Kind: Damaged, What: file + " of " + name, Why: err.Error(), Hint: "check HF_ENDPOINT"}
		case !cached:
			etag := filepath.Base(blob)
			d := &download{s: s, name: file, blob: blob, etag: etag, limit: limitOf(file), size: sizeOf(resp), stop: cancel}
			if err := d.run(ctx, resp.Body); err != nil {
				return err
			}
		}
		if err := s.link(name, commit, file, filepath.Base(blob)); err != nil {
			return &Error{Kind: Failed, What: at, Why: err.Error(), Hint: "HF_HOME or HF_HUB_CACHE names another cache folder, which this user can write to", Err: err}
		}
		return nil
	})
}

var etagRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,199}$`)

// blobOf is where the cache has, or will have, a response's content.
func (s *Settings) blobOf(resp *http.Response, name string) (string, error) {
	etag, err := etagOf(resp)
	return filepath.Join(s.repository(name), "blobs", etag), err
}

// etagOf is the name of a response's content: that of the large file behind a
// redirect, or the file's own.
func etagOf(resp *http.Response) (string, error) {
	etag := resp.Header.Get("X-Linked-Etag")
	if etag == "" {
		etag = resp.Header.Get("Etag")
	}
	etag = strings.Trim(strings.TrimPrefix(etag, "W/"), `"`)
	if !etagRule.MatchString(etag) {
		return "", errors.New("the hub does not say what its content is (ETag)")
	}
	return etag, nil
}

// sizeOf is the size that was announced, negative when none was.
func sizeOf(resp *http.Response) int64 {
	if n, err := strconv.ParseInt(resp.Header.Get("X-Linked-Size"), 10, 64); err == nil && n >= 0 {
		return n
	}
	return resp.ContentLength
}

// download is a file on its way to its blob.
type download struct {
	s     *Settings
	name  string
	blob  string
	etag  string
	limit int64
	size  int64 // announced; negative = not
	stop  context.CancelCauseFunc
}

var errStalled = errors.New("nothing came for too long")

// run writes the body beside the blob, checks it, and renames it.
func (d *download) run(ctx context.Context, body io.Reader) error {
	if d.size > d.limit {
		return d.wrong(Invalid, fmt.Sprintf("it has %d bytes, more than any of its kind", d.size))
	}
	if err := os.MkdirAll(filepath.Dir(d.blob), 0o777); err != nil {
		return d.local(err)
	}
	f, err := create(d.blob, ".incomplete")
	if err != nil {
		return d.local(err)
	}
	err = d.copy(ctx, f, body)
	if cerr := f.Close(); err == nil && cerr != nil {
		err = d.local(cerr)
	}
	if err == nil {
		err = os.Rename(f.Name(), d.blob)
	}
	if err != nil {
		os.Remove(f.Name()) // if that fails too, the first error says why
	}
	return err
}

func (d *download) copy(ctx context.Context, to io.Writer, body io.Reader) error {
	stall := d.s.stall()
	watch := time.AfterFunc(stall, func() { d.stop(errStalled) })
	defer watch.Stop()
	sum := hasher(d.etag, d.size)
	buf := make([]byte, 256<<10)
	var done int64
	for {
		n, err := body.Read(buf)
		watch.Reset(stall)
		if n > 0 {
			if done += int64(n); done > d.limit || d.size >= 0 && done > d.size {
				return d.wrong(Damaged, "more bytes came than announced")
			}
			sum.Write(buf[:n])
			if _, err := to.Write(buf[:n]); err != nil {
				return d.local(err)
			}
			if d.s.Progress != nil {
				d.s.Progress(Progress{File: d.name, Done: done, Size: max(d.size, 0)})
			}
		}
		switch {
		case err == io.EOF:
			return d.check(done, sum)
		case context.Cause(ctx) == errStalled:
			return &Error{Kind: Unreachable, What: "the hub at " + d.s.Endpoint, Why: fmt.Sprintf("no byte of %s came for %v", d.name, stall), Err: errStalled}
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return d.wrong(Damaged, fmt.Sprintf("the transfer ended after %d bytes: %v", done, err))
		}
	}
}

// check holds what came against what was announced: the size, and the hash that an
// etag of the hub is.
func (d *download) check(done int64, sum hash.Hash) error {
	if d.size >= 0 && done != d.size {
		return d.wrong(Damaged, fmt.Sprintf("%d of %d bytes came", done, d.size))
	}
	if got := hex.EncodeToString(sum.Sum(nil)); len(got) == len(d.etag) && isHex(d.etag) && got != d.etag {
		return d.wrong(Damaged, "the content is not that of its hash")
	}
	return nil
}

// hasher makes the hash that an etag is: SHA-256 of a large file, git's SHA-1 of a
// small one, which needs the size first. Of other etags nothing is known.
func hasher(etag string, size int64) hash.Hash {
	if len(etag) == 2*sha1.Size && size >= 0 {
		h := sha1.New()
		fmt.Fprintf(h, "blob %d\x00", size)
		return h
	}
	return sha256.New()
}

func isHex(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil
}

func (d *download) wrong(kind Kind, why string) error {
	return &Error{Kind: kind, What: d.name + " from " + d.s.Endpoint, Why: why}
}

func (d *download) local(err error) error {
	return &Error{Kind: Failed, What: d.blob, Why: err.Error(), Hint: "HF_HOME or HF_HUB_CACHE names another cache folder, which this user can write to", Err: err}
}
