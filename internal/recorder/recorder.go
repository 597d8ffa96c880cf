// Package recorder writes a recording to disk: in one file or in several that
// follow each other, of which the oldest are removed. It is shared by whoever
// records: tap what engines publish, serve what it decided.
package recorder

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/eppctl/eppctl/internal/core/recording"
)

// Target says where to record, and when to begin another file.
type Target struct {
	Path       string // "-" = stdout
	RotateSize int64  // bytes; 0 = never
	RotateTime time.Duration
	Keep       int // files in all, those of earlier runs too; 0 = every one
}

// FlushEvery is how long at most a record stands in memory only: what a kill or a
// crash of the machine may take away.
const FlushEvery = time.Second

// Recorder writes a recording, in several files if it has to. Not for concurrent
// use. After an error all that is left to do is End; the file then has what was flushed
// before, and no half record.
type Recorder struct {
	Target
	header recording.Header
	stdout io.Writer

	file    *os.File // nil: stdout
	awaited bool     // a pipe: somebody waits for each record
	w       *recording.Writer
	begun   time.Time
	flushed time.Time
	kept    int64 // bytes of this file that are whole records, and handed on
	past    int64 // bytes of the files before
	files   int   // begun
	aside   string
	gone    bool // somebody removed or moved the file
	broken  bool // an error has been returned

	stands recording.Standing
}

// Begin begins a recording. A file that is there already is set aside, as one of a
// rotation is: who is started again must not destroy what was recorded.
func Begin(t Target, h recording.Header, stdout io.Writer, now time.Time) (*Recorder, error) {
	r := &Recorder{Target: t, header: h, stdout: stdout}
	if st, err := os.Stat(r.Path); r.Path != "-" && err == nil && st.Mode().IsRegular() && st.Size() > 0 {
		if r.aside, err = r.rotation().aside(Begun(r.Path)); err != nil {
			return nil, err
		}
		if err := r.prune(); err != nil {
			return nil, err
		}
	}
	if err := r.failed(r.begin(now)); err != nil {
		_ = r.End(nil) // closes it
		return nil, err
	}
	return r, nil
}

// Aside is the name that a file which was there already has now, "" = none was.
func (r *Recorder) Aside() string { return r.aside }

// Awaited reports that the recording goes to a pipe, whose reader waits.
func (r *Recorder) Awaited() bool { return r.awaited }

func (r *Recorder) rotation() rotation { return rotation{r.Path} }

// prune removes what is more than Keep allows beside the file being written.
func (r *Recorder) prune() error {
	if r.Keep <= 0 {
		return nil
	}
	return r.rotation().prune(r.Keep - 1)
}

// begin starts a file. What is recorded is of people's requests, so it is its
// user's alone. Its header is there at once, so that a reader can begin.
func (r *Recorder) begin(now time.Time) (err error) {
	to := r.stdout
	r.awaited, r.kept = r.Path == "-", 0
	if r.Path != "-" {
		if r.file, err = os.OpenFile(r.Path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600); err != nil {
			return err
		}
		st, err := r.file.Stat()
		if err != nil {
			return err
		}
		if r.awaited = !st.Mode().IsRegular(); !r.awaited {
			if err := r.file.Chmod(0o600); err != nil {
				return err
			}
		}
		to = r.file
	}
	h := r.header
	h.Begun = now.UTC().Format(time.RFC3339Nano)
	r.begun, r.flushed, r.gone = now, now, false
	r.files++
	if r.w, err = recording.NewWriter(to, h); err != nil {
		return err
	}
	// Each file can be read alone: it begins with what stands.
	for _, rec := range r.stands.Records() {
		now := *rec
		now.At = r.begun.UnixNano()
		if err := r.w.Write(&now); err != nil {
			return err
		}
	}
	return r.handOn()
}

// handOn passes on what is buffered.
func (r *Recorder) handOn() error {
	if err := r.w.Flush(); err != nil {
		return err
	}
	r.kept = r.w.Size()
	return nil
}

// Write appends a record.
func (r *Recorder) Write(rec *recording.Record) error {
	r.stands.Take(rec)
	return r.failed(r.w.Write(rec))
}

// Flush hands on what is buffered.
func (r *Recorder) Flush() error {
	r.flushed = time.Now()
	r.gone = !r.awaited && !r.inPlace()
	return r.failed(r.handOn())
}

// inPlace reports that the path still names the file being written.
func (r *Recorder) inPlace() bool {
	there, err := os.Stat(r.Path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	ours, err := r.file.Stat()
	return err != nil || os.SameFile(there, ours)
}

// HandOn flushes when it is time.
func (r *Recorder) HandOn(now time.Time) error {
	if now.Sub(r.flushed) < FlushEvery {
		return nil
	}
	return r.Flush()
}

// Due reports that the file has had its share, or is no longer where readers look.
func (r *Recorder) Due(now time.Time) bool {
	return r.gone || r.RotateSize > 0 && r.w.Size() >= r.RotateSize || r.RotateTime > 0 && now.Sub(r.begun) >= r.RotateTime
}

// Rotate ends the file with an account of so far, the JSON of an object, and
// begins another. A file that somebody has removed meanwhile is nobody's loss but its own.
func (r *Recorder) Rotate(account []byte, now time.Time) error {
	if err := r.End(account); err != nil {
		return err
	}
	r.past += r.w.Size()
	if _, err := r.rotation().aside(r.begun); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r.failed(err)
	}
	if err := r.prune(); err != nil {
		return r.failed(err)
	}
	return r.failed(r.begin(now))
}

// End closes the file with the account. What is broken was told already.
func (r *Recorder) End(account []byte) error {
	if r.broken {
		if r.file != nil {
			r.file.Close()
		}
		return nil
	}
	err := r.w.Close(account)
	if r.file != nil {
		err = errors.Join(err, r.file.Close())
	}
	return r.failed(err)
}

// Written is what came of it so far, in bytes and files; ok is false when it could
// not be written.
func (r *Recorder) Written() (bytes int64, files int, ok bool) {
	if r.broken {
		return 0, 0, false
	}
	return r.past + r.w.Size(), r.files, true
}

// failed takes note of the first error. What a full disk took of a record is cut off: it
// is no use to a reader, and would be counted as lost and be there.
func (r *Recorder) failed(err error) error {
	if err != nil && !r.broken {
		r.broken = true
		if r.file != nil && !r.awaited {
			_ = r.file.Truncate(r.kept)
		}
	}
	return err
}
