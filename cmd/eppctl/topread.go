package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/inspect/tap"
	"github.com/eppctl/eppctl/internal/inspect/top"
	"github.com/eppctl/eppctl/internal/serve"
)

// show is top of files: saved frames, or a recording that is played back.
func (o *topOptions) show(ctx context.Context, s *out.Streams) error {
	paths, err := tap.Expand(o.read)
	if err != nil {
		return err
	}
	f := &top.File{Name: strings.Join(paths, ", "), Every: o.Interval}
	warn := func(text string) { fmt.Fprintf(s.Err, "warn: %s\n", out.Clean(text)) }
	in := bufio.NewReader(s.In)
	if isRecording(paths[0], in) {
		err = o.play(ctx, f, &tap.File{Paths: paths, Stdin: in, Warn: warn})
	} else {
		err = frames(f, paths, in, warn)
	}
	if err != nil {
		return err
	}
	if slices.Contains(paths, "-") { // the keys come from elsewhere
		s.InTTY = false
	}
	return o.Show(ctx, f, s)
}

// isRecording reports that a file begins as a recording does. One that cannot be read
// is dealt with by whoever reads it.
func isRecording(path string, stdin *bufio.Reader) bool {
	var b []byte
	if path == "-" {
		b, _ = stdin.Peek(len(recording.Magic))
	} else if file, err := os.Open(path); err == nil {
		b = make([]byte, len(recording.Magic))
		n, _ := io.ReadFull(file, b)
		b = b[:n]
		file.Close()
	}
	return string(b) == recording.Magic
}

// frames reads saved frames.
func frames(f *top.File, paths []string, stdin io.Reader, warn func(string)) error {
	for _, path := range paths {
		in := stdin
		if path != "-" {
			file, err := os.Open(path)
			if err != nil {
				return &inspect.Error{Kind: inspect.Usage, Code: "E_RECORDING", What: "cannot read frames: " + err.Error(), Hint: "top writes some: key w, or -o jsonl", Err: err}
			}
			defer file.Close()
			in = file
		}
		flaw, err := f.Read(in)
		if err != nil {
			return err
		}
		if flaw != "" {
			warn(flaw)
		}
	}
	return nil
}

// play makes frames of a recording, one for each interval in which something was
// recorded.
func (o *topOptions) play(ctx context.Context, f *top.File, file *tap.File) error {
	c, err := serve.LoadConfig(o.config)
	if err != nil {
		return err
	}
	fleet := serve.NewRecorded(c)
	defer fleet.Close()
	p := &topPlayback{fleet: fleet, file: f}
	if err := file.Run(ctx, p.take); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return &inspect.Error{Kind: inspect.Interrupted, Code: "E_INTERRUPTED", What: "interrupted", Err: err}
	}
	_, last := fleet.Span()
	if last.IsZero() {
		return &inspect.Error{
			Kind: inspect.Failed, Code: "E_RECORDING", What: file.String() + " holds nothing to show",
			Hint: "tap --write FILE --with-metrics, or tap --from serve --write FILE, makes one", Err: errors.New("no record has a time"),
		}
	}
	for _, text := range fleet.Flaws() {
		file.Warn(text)
	}
	return p.frame(last)
}

// topPlayback plays a recording and looks at it in between.
type topPlayback struct {
	fleet *serve.Recorded
	file  *top.File
	next  time.Time // when it is looked at
}

func (p *topPlayback) take(records []*recording.Record) error {
	from := 0
	for i, r := range records {
		if r.At <= 0 {
			continue
		}
		at := time.Unix(0, r.At).UTC()
		if p.next.IsZero() {
			p.next = at.Add(p.file.Every)
		}
		if at.Before(p.next) {
			continue
		}
		if err := errors.Join(p.fleet.Take(records[from:i]), p.look(at)); err != nil {
			return err
		}
		from = i
	}
	return p.fleet.Take(records[from:])
}

// look makes the frame that was due, and says when the next one is: where nothing was
// recorded for long there is nothing to see either.
func (p *topPlayback) look(now time.Time) error {
	if err := p.frame(p.next); err != nil {
		return err
	}
	every := p.file.Every
	p.next = p.next.Add(now.Sub(p.next).Truncate(every) + every)
	return nil
}

func (p *topPlayback) frame(at time.Time) error {
	raw, err := p.fleet.State(at)
	if err != nil {
		return fmt.Errorf("top: the fleet at %s: %w", at.Format(time.RFC3339Nano), err)
	}
	return p.file.Add(raw)
}
