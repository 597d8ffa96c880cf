package tap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/recorder"
)

// File is the source of a recording, or of several played one behind the other.
type File struct {
	Paths    []string  // "-" = Stdin
	Stdin    io.Reader // of the process
	Speed    float64   // 1 = as it was, 2 = twice as fast; 0 = as fast as it goes
	From, To Moment    // of receive times
	Strict   bool      // a recording that ends early is an error
	// Warn takes what is to be known of the recording besides its records.
	Warn func(text string)

	unknown atomic.Uint64
	from    atomic.Int64 // ns, 0 = no bound
	to      int64
	pods    map[recording.Pod]*recording.Pod // one pointer per publisher, in all files
	told    map[*recording.Pod]string        // the kind of its latest up or down
	before  int64                            // ns: the latest record handed over
	over    map[*recording.Pod]bool          // its time is beyond To
	first   int64                            // ns, of all records; 0 = none
	last    int64
	decided bool // it holds decisions
	heard   bool // it holds what came from engines
}

func (f *File) String() string { return recording.SourceRecording + strings.Join(f.Paths, ", ") }

// Unknown counts the records of unknown types that were passed over. It may be
// called from any goroutine.
func (f *File) Unknown() uint64 { return f.unknown.Load() }

// fileBatch is how many records are handed over together: enough to make the
// hand-over cheap.
const fileBatch = 256

// Expand replaces patterns by the files that fit, the one begun first in front,
// so that the files of a rotation come in their order.
func Expand(args []string) (paths []string, err error) {
	for _, arg := range args {
		if _, err := os.Lstat(arg); err == nil || !strings.ContainsAny(arg, "*?[") {
			paths = append(paths, arg)
			continue
		}
		found, err := filepath.Glob(arg)
		if err != nil || len(found) == 0 {
			return nil, &inspect.Error{Kind: inspect.Usage, Code: "E_USAGE", What: fmt.Sprintf("--read: found %q; no file fits it", arg), Err: err}
		}
		begun := map[string]time.Time{}
		for _, path := range found {
			begun[path] = recorder.Begun(path)
		}
		slices.SortStableFunc(found, func(a, b string) int { return cmp.Or(begun[a].Compare(begun[b]), cmp.Compare(a, b)) })
		paths = append(paths, found...)
	}
	return paths, nil
}

// open opens one of the files.
func (f *File) open(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(f.Stdin), nil
	}
	file, err := os.Open(path)
	if err == nil {
		var st os.FileInfo
		if st, err = file.Stat(); err == nil && st.IsDir() {
			err = &fs.PathError{Op: "open", Path: path, Err: syscall.EISDIR}
		}
		if err != nil {
			file.Close()
		}
	}
	if err != nil {
		e := &inspect.Error{Kind: inspect.Usage, Code: "E_RECORDING", What: "cannot read the recording: " + err.Error(), Err: err}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			e.Hint = "tap --write FILE makes one"
		case errors.Is(err, syscall.EISDIR):
			e.Hint = fmt.Sprintf("try: --read '%s'", filepath.Join(path, "*.eptap"))
		}
		return nil, e
	}
	return file, nil
}

// Run implements Source.
func (f *File) Run(ctx context.Context, emit func([]*recording.Record) error) error {
	f.pods, f.told, f.over = map[recording.Pod]*recording.Pod{}, map[*recording.Pod]string{}, map[*recording.Pod]bool{}
	for _, path := range f.Paths { // a wrong name shows before the first record does
		if st, err := os.Stat(path); path == "-" || err == nil && !st.Mode().IsRegular() && !st.IsDir() {
			continue // a pipe can be opened once
		}
		file, err := f.open(path)
		if err != nil {
			return err
		}
		file.Close()
	}
	if err := f.bounds(ctx); err != nil {
		return err
	}
	for i, path := range f.Paths {
		if err := f.play(ctx, path, i > 0, emit); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return f.kind()
}

// kind refuses a recording of another command's.
func (f *File) kind() error {
	if !f.decided || f.heard {
		return nil
	}
	return &inspect.Error{
		Kind: inspect.Usage, Code: "E_RECORDING", What: f.String() + " holds decisions, and nothing that engines sent",
		Why: "serve --record-decisions writes such a file", Hint: "try: eppctl replay --decisions " + strings.Join(f.Paths, " --decisions "),
	}
}

// note remembers what kinds of records there are.
func (f *File) note(r *recording.Record) {
	switch r.Type {
	case recording.TypeFleet, recording.TypeDecision, recording.TypeOutcome:
		f.decided = true
	default:
		f.heard = f.heard || r.Pod != nil
	}
}

// bounds resolves From and To, for which it may have to read all files.
func (f *File) bounds(ctx context.Context) error {
	var begin, end time.Time
	if f.From.Relative() || f.To.Relative() {
		var first, last int64
		for _, path := range f.Paths {
			file, err := f.open(path)
			if err != nil {
				return err
			}
			err = extent(ctx, file, &first, &last)
			file.Close()
			if err != nil {
				return err
			}
		}
		begin, end = time.Unix(0, first), time.Unix(0, last)
	}
	if at := f.From.in(begin, end); !at.IsZero() {
		f.from.Store(at.UnixNano())
	}
	if at := f.To.in(begin, end); !at.IsZero() {
		f.to = at.UnixNano()
	}
	return nil
}

// extent widens first and last to the receive times of a recording, as far as it
// can be read: whoever plays it will hear of the rest.
func extent(ctx context.Context, from io.Reader, first, last *int64) error {
	r, err := recording.NewReader(from)
	for err == nil && ctx.Err() == nil {
		var rec *recording.Record
		if rec, err = r.Next(); err == nil && rec.At > 0 {
			if *first == 0 {
				*first = rec.At
			}
			*first, *last = min(*first, rec.At), max(*last, rec.At)
		}
	}
	var fe *recording.FormatError
	if err == nil || errors.Is(err, io.EOF) || errors.As(err, &fe) {
		return nil
	}
	return err
}

// play hands over the records of one file.
func (f *File) play(ctx context.Context, path string, follows bool, emit func([]*recording.Record) error) error {
	file, err := f.open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	r, err := recording.NewReader(file)
	if err != nil {
		return f.ended(path, err)
	}
	var batch []*recording.Record
	hand := func() error {
		b := batch
		batch = nil
		if len(b) == 0 {
			return nil
		}
		return emit(b)
	}
	unknown := f.unknown.Load()
	head := follows
	for ctx.Err() == nil {
		rec, err := r.Next()
		f.unknown.Store(unknown + r.Unknown())
		if err != nil {
			if e := hand(); e != nil {
				return e
			}
			return f.ended(path, err)
		}
		f.note(rec)
		head = head && recording.Stands(rec)
		if again := f.known(rec); again && head || !f.wanted(rec) {
			continue
		}
		if wait := f.wait(rec); wait > 0 {
			if err := hand(); err != nil {
				return err
			}
			if pause(ctx, wait) != nil {
				return nil
			}
		}
		if batch = append(batch, rec); len(batch) >= fileBatch {
			if err := hand(); err != nil {
				return err
			}
		}
	}
	return nil
}

// known makes the pod of a record the one of the files before, and reports that
// its connection is as they left it: the head of each file of a rotation says so.
func (f *File) known(r *recording.Record) (again bool) {
	if r.Pod == nil {
		return false
	}
	if f.pods[*r.Pod] == nil {
		f.pods[*r.Pod] = r.Pod
	}
	r.Pod = f.pods[*r.Pod]
	if r.Type != recording.TypeNotice || r.Notice.Kind != recording.Up && r.Notice.Kind != recording.Down {
		return false
	}
	again = f.told[r.Pod] == r.Notice.Kind
	f.told[r.Pod] = r.Notice.Kind
	return again
}

// wait is how long the record is not yet due.
func (f *File) wait(r *recording.Record) (d time.Duration) {
	if f.Speed <= 0 || r.At <= 0 {
		return 0
	}
	if f.before > 0 && r.At > f.before {
		d = time.Duration(float64(r.At-f.before) / f.Speed)
	}
	f.before = max(f.before, r.At)
	return d
}

// wanted reports whether a record lies in the time asked for. What stood before is
// always wanted. A stream ends with its first record beyond: what follows was dealt
// with later still, though replays may have held up what was received before.
func (f *File) wanted(r *recording.Record) bool {
	if r.At > 0 {
		if f.first == 0 {
			f.first = r.At
		}
		f.first, f.last = min(f.first, r.At), max(f.last, r.At)
	}
	if f.to != 0 && r.At > f.to {
		f.over[r.Pod] = true
		return false
	}
	if r.Type == recording.TypeAccount || recording.Stands(r) && r.At < f.from.Load() {
		return true
	}
	return r.At >= f.from.Load() && !f.over[r.Pod]
}

// Extent is the time of the first and the last record, those left out included;
// zero without any.
func (f *File) Extent() (first, last time.Time) {
	if f.last == 0 {
		return first, last
	}
	return time.Unix(0, f.first).UTC(), time.Unix(0, f.last).UTC()
}

// Until is the time that To means, once records have come; zero without a bound.
func (f *File) Until() time.Time {
	if f.to == 0 {
		return time.Time{}
	}
	return time.Unix(0, f.to).UTC()
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ended says what the end of a recording means.
func (f *File) ended(path string, err error) error {
	var fe *recording.FormatError
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case !errors.As(err, &fe):
		return &inspect.Error{Kind: inspect.Failed, Code: "E_RECORDING", What: fmt.Sprintf("cannot read %s: %v", name(path), err), Err: err}
	case fe.Err == recording.ErrCut && !f.Strict:
		f.Warn(fmt.Sprintf("%s ends early, at offset %d: %s; what is there was read", name(path), fe.Offset, fe.Detail))
		return nil
	case fe.Err == recording.ErrCut:
		return &inspect.Error{
			Kind: inspect.Incomplete, Code: "E_RECORDING", What: fmt.Sprintf("%s ends early, at offset %d", name(path), fe.Offset),
			Why: fe.Detail, Hint: "what is there was read; without --strict this is a warning", Err: err,
		}
	}
	e := &inspect.Error{Kind: inspect.Failed, Code: "E_RECORDING", What: fmt.Sprintf("cannot read %s: %v", name(path), err), Err: err}
	switch {
	case fe.Err == recording.ErrVersion:
		e.Hint = "it was written by another version of eppctl"
	case fe.Err == recording.ErrNoRecording && f.json(path):
		e.Hint = "it may be a saved answer, for explain --read, or a trace, for replay --trace"
	case fe.Err == recording.ErrNoRecording:
		e.Hint = "tap --write FILE makes one"
	}
	return e
}

// json reports that a file begins as a JSON object does.
func (f *File) json(path string) bool {
	if path == "-" {
		return false // it is read
	}
	file, err := f.open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	var begin [1]byte
	_, err = io.ReadFull(file, begin[:])
	return err == nil && begin[0] == '{'
}

// is reports that the source reads this very file.
func (f *File) is(target os.FileInfo) bool {
	for _, path := range f.Paths {
		st, err := os.Stat(path)
		if in, ok := f.Stdin.(*os.File); ok && path == "-" {
			st, err = in.Stat()
		}
		if err == nil && os.SameFile(st, target) && st.Mode().IsRegular() {
			return true
		}
	}
	return false
}

func name(path string) string {
	if path == "-" {
		return "recording on stdin"
	}
	return "recording " + path
}
