package top

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// File is frames of a time that is past: saved ones, or those of a recording. As many
// are kept as of a running serve; when there are more, every second one goes.
type File struct {
	Name    string
	history history
	// Every is how far apart its frames are, from one that is left out on.
	Every time.Duration
}

// maxFrame caps one saved frame, as an answer of the admin API is capped.
const maxFrame = 64 << 20

// Read adds saved frames: what w, -o json and -o jsonl write, one behind the other. It
// returns what is wrong with the last of several that is cut short.
func (f *File) Read(r io.Reader) (flaw string, err error) {
	in := &capped{r: r}
	dec := json.NewDecoder(in)
	for n := 1; ; n++ {
		var raw json.RawMessage
		in.left = maxFrame
		switch err := dec.Decode(&raw); {
		case errors.Is(err, io.EOF) && n > 1:
			return "", nil
		case errors.Is(err, io.ErrUnexpectedEOF) && n > 1:
			return fmt.Sprintf("%s ends inside of frame %d, after %d bytes", f.Name, n, dec.InputOffset()), nil
		case err != nil:
			return "", f.unreadable(n, err)
		}
		if err := f.Add(raw); err != nil {
			return "", f.unreadable(n, err)
		}
	}
}

func (f *File) unreadable(n int, err error) error {
	return &inspect.Error{
		Kind: inspect.Failed, Code: "E_RECORDING", What: fmt.Sprintf("cannot read frame %d of %s: %v", n, f.Name, err), Err: err,
		Hint: "top reads what its key w, top -o json and -o jsonl, and tap --write have written",
	}
}

// capped ends with an error where one frame has more bytes than it may.
type capped struct {
	r    io.Reader
	left int
}

func (c *capped) Read(b []byte) (int, error) {
	if c.left <= 0 {
		return 0, fmt.Errorf("it is larger than %d MiB", maxFrame>>20)
	}
	n, err := c.r.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}

// Add adds a frame, a Snapshot as JSON, of a later time than those before.
func (f *File) Add(raw []byte) error {
	s, err := decode(raw)
	if err != nil {
		return fmt.Errorf("it is no Snapshot: %w", cause(err))
	}
	at, err := time.Parse(time.RFC3339Nano, s.At)
	if err != nil {
		return fmt.Errorf("at: found %q; expected an RFC 3339 time", s.At)
	}
	h := &f.history
	if n := len(h.frames); n >= keptFrames || n > 2 && h.bytes+len(raw) > keptBytes {
		h.thin()
		f.Every *= 2
	}
	h.add(newFrame(raw, s, at), 0)
	return nil
}

// cause is what an error stands around, itself where there is nothing.
func cause(err error) error {
	if in := errors.Unwrap(err); in != nil {
		return in
	}
	return errors.New("kind is another")
}

// Len is the number of frames that are kept.
func (f *File) Len() int { return len(f.history.frames) }

// thin leaves every second frame, the newest among them.
func (h *history) thin() {
	var kept []*frame
	h.bytes = 0
	for i := (len(h.frames) - 1) % 2; i < len(h.frames); i += 2 {
		kept = append(kept, h.frames[i])
		h.bytes += len(h.frames[i].raw)
	}
	h.frames = kept
}

// Show is Run for a file: its newest frame, or all of them in turn without a screen.
func (c *Command) Show(ctx context.Context, f *File, s *out.Streams) error {
	if err := c.check(); err != nil {
		return err
	}
	m := c.model(nil, s)
	m.open(f)
	if c.Once || c.Batch || c.Format == "jsonl" {
		return c.print(m, s)
	}
	if err := canDraw(s); err != nil {
		return err
	}
	return draw(ctx, m, s)
}

// open shows a file, at its newest frame.
func (m *model) open(f *File) {
	m.addr, m.file, m.history = f.Name, true, f.history
	m.shown = m.history.newest()
	m.step(0)
}

// print writes the frames of a file: the newest, or all, but for the first of several,
// which has no rates. JSON has none, so that it has all.
func (c *Command) print(m *model, s *out.Streams) error {
	h := &m.history
	n, most := h.gone, c.Count
	switch asJSON := c.Format == "json" || c.Format == "jsonl"; {
	case c.Once:
		n = h.newest()
	case !asJSON && len(h.frames) > 1:
		n++
	}
	if most == 0 {
		most = math.MaxInt
	}
	for first := n; n <= h.newest() && most > 0; n, most = n+1, most-1 {
		if c.Format == "json" || c.Format == "jsonl" {
			if _, err := fmt.Fprintf(s.Out, "%s\n", bytes.TrimSpace(out.JSON(h.at(n).raw))); err != nil {
				return err
			}
			continue
		}
		m.step(n - m.shown)
		if err := m.print(s, n > first); err != nil {
			return err
		}
	}
	return nil
}

// past says where among the frames of a file the one shown is.
func (m *model) past() cell {
	at := fmt.Sprintf(" PAST %s  frame %d of %d ", when(m.sheet.Snapshot, m), m.shown-m.history.gone+1, len(m.history.frames))
	return text(reverse, at)
}

// when is the time of a frame, with its day where that is another one.
func when(s *view.Snapshot, m *model) string {
	t, err := time.Parse(time.RFC3339Nano, s.At)
	if err != nil {
		return unknown
	}
	t = t.In(m.zone)
	if now := m.now().In(m.zone); t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}
