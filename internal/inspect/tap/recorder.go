package tap

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"time"

	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/recorder"
)

// Write says where and how to record. A Path of "" is nowhere.
type Write struct {
	recorder.Target
	Filtered bool // only messages of which an event is shown
}

// writer is the recording of a run: what goes wrong with it is told as an error of
// tap, and its end is the account. A nil one records nothing.
type writer struct {
	Write
	*recorder.Recorder
}

func newWriter(w Write, h recording.Header, stdout io.Writer, now time.Time) (*writer, error) {
	r, err := recorder.Begin(w.Target, h, stdout, now)
	return &writer{w, r}, w.failed(err)
}

func (w *writer) write(rec *recording.Record) error { return w.failed(w.Recorder.Write(rec)) }

// awaited reports that somebody waits for what is buffered.
func (w *writer) awaited() bool { return w != nil && w.Awaited() }

func (w *writer) flush() error {
	if w == nil {
		return nil
	}
	return w.failed(w.Flush())
}

func (w *writer) handOn(now time.Time) error {
	if w == nil {
		return nil
	}
	return w.failed(w.HandOn(now))
}

// rotate ends the file with an account of so far and begins another.
func (w *writer) rotate(a *Account, now time.Time) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return w.failed(w.Rotate(text, now))
}

// end closes the file with the account.
func (w *writer) end(a *Account) error {
	if w == nil {
		return nil
	}
	a.Written = w.written()
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return w.failed(w.End(text))
}

// written is what came of it; nil when nothing could be written, or was to be.
func (w *writer) written() *WrittenTo {
	if w == nil {
		return nil
	}
	bytes, files, ok := w.Written()
	if !ok {
		return nil
	}
	return &WrittenTo{File: w.Write.Path, Bytes: bytes, Files: files}
}

// failed makes the error of a recording that cannot go on.
func (w *Write) failed(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("recording %s: %w", w.Path, err) // its reader has seen enough
	}
	e := &inspect.Error{Kind: inspect.Failed, Code: "E_RECORDING", What: fmt.Sprintf("cannot write the recording %s: %v", w.Path, plainPath(err)), Err: err}
	if errors.Is(err, syscall.ENOSPC) {
		e.Hint = "the disk is full; --rotate-size with --keep bounds what a recording takes"
	}
	return e
}

// plainPath leaves the path out of what the system says: it stands before it.
func plainPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
