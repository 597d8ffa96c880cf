package top

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/testdata"
)

// batchServer gives a frame of traffic at each call, and fails where it is told to.
type batchServer struct {
	*rig
	calls int
	fail  map[int]error
	after func(calls int)
}

func (s *batchServer) State(ctx context.Context, picks int, detail string) ([]byte, error) {
	s.calls++
	if s.after != nil {
		s.after(s.calls)
	}
	s.down = s.fail[s.calls]
	s.traffic()
	return s.rig.State(ctx, picks, detail)
}

func batchOf(t *testing.T, c Command, width int, fail map[int]error) (stdout, stderr string, err error) {
	t.Helper()
	var a, b bytes.Buffer
	s := &out.Streams{In: strings.NewReader(""), Out: &a, Err: &b, OutTTY: width > 0, Width: width}
	c.Addr, c.Interval = "127.0.0.1:9004", minInterval
	err = c.Run(t.Context(), &batchServer{rig: newRig(t, 80, 24), fail: fail}, s)
	return a.String(), b.String(), err
}

// TOP-08: frames as text and as JSON, without escapes.
func TestBatch(t *testing.T) {
	t.Run("one frame is two, for the rates", func(t *testing.T) {
		got, _, err := batchOf(t, Command{Once: true}, 0, nil)
		if err != nil || strings.Count(got, "REQUESTS") != 1 || strings.Contains(got, "REQUESTS  ?") || strings.ContainsAny(got, "\x1b") || strings.HasSuffix(got, "\n\n") {
			t.Errorf("%v\n%s", err, got)
		}
		if !strings.HasPrefix(got, "2026-11-29T11:42:07Z") {
			t.Errorf("the time of a pipe is not whole: %s", got)
		}
	})
	t.Run("some frames", func(t *testing.T) {
		got, _, err := batchOf(t, Command{Batch: true, Count: 3}, 0, nil)
		if err != nil || strings.Count(got, "REQUESTS") != 3 || strings.Count(got, "\n\n") != 2 {
			t.Errorf("%v\n%s", err, got)
		}
	})
	t.Run("json", func(t *testing.T) {
		got, _, err := batchOf(t, Command{Format: "jsonl", Count: 3}, 0, nil)
		var s view.Snapshot
		if lines := strings.Split(strings.TrimSpace(got), "\n"); err != nil || len(lines) != 3 || json.Unmarshal([]byte(lines[2]), &s) != nil || len(s.Pods) != 9 {
			t.Errorf("%v\n%.200s", err, got)
		}
		if got, _, err := batchOf(t, Command{Once: true, Format: "json"}, 0, nil); err != nil || strings.Count(got, "\n") != 1 || strings.ContainsAny(got, "\x1b\u202e") {
			t.Errorf("%v\n%.200s", err, got)
		}
	})
	t.Run("a server that goes away and comes back", func(t *testing.T) {
		got, notes, err := batchOf(t, Command{Format: "jsonl", Count: 2}, 0, map[int]error{2: errors.New("refused"), 3: errors.New("refused")})
		if err != nil || strings.Count(got, "\n") != 2 || strings.Count(notes, "warn: disconnected, last data ") != 2 {
			t.Errorf("%v\n%.200s\n%s", err, got, notes)
		}
	})
	t.Run("nobody there", func(t *testing.T) {
		want := errors.New("refused")
		if _, _, err := batchOf(t, Command{Batch: true}, 0, map[int]error{1: want}); !errors.Is(err, want) {
			t.Errorf("%v", err)
		}
	})
	for name, width := range map[string]int{"batch-pipe": 0, "batch-tty100": 100} {
		t.Run(name, func(t *testing.T) {
			r := busy(t, 80, 24)
			var b bytes.Buffer
			if err := r.m.print(&out.Streams{Out: &b, OutTTY: width > 0, Width: width}, false); err != nil {
				t.Fatal(err)
			}
			for l := range strings.Lines(b.String()) {
				if n := out.Cells(strings.TrimSuffix(l, "\n")); width > 0 && n > width {
					t.Errorf("%d columns: %s", n, l)
				}
			}
			testdata.Golden(t, filepath.Join("testdata", name+".golden"), b.Bytes())
		})
	}
}

// A log has the colours that the terminal has, in its table too, and none where
// none are wanted.
func TestBatchColours(t *testing.T) {
	for _, tc := range []struct {
		colour bool
		env    map[string]string
		want   string // of the pod whose KV pool is nearly full
	}{
		{false, map[string]string{"TERM": "xterm-256color", "COLORTERM": "truecolor"}, " 97 "},
		{true, map[string]string{"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "\x1b[38;2;215;95;175m97\x1b[m"},
		{true, map[string]string{"TERM": "xterm-256color"}, "\x1b[38;5;169m97\x1b[m"},
		{true, map[string]string{"TERM": "xterm"}, "\x1b[91m97\x1b[m"},
		{true, nil, "\x1b[91m97\x1b[m"}, // CLICOLOR_FORCE on a pipe
	} {
		r := busy(t, 80, 24)
		var b bytes.Buffer
		if err := r.m.print(&out.Streams{Out: &b, Color: tc.colour, Getenv: func(name string) string { return tc.env[name] }}, false); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), tc.want) {
			t.Errorf("%v %v: no %q in\n%q", tc.colour, tc.env, tc.want, b.String())
		}
		if escapes := strings.Contains(b.String(), "\x1b"); escapes != tc.colour {
			t.Errorf("%v %v: escape sequences: %v", tc.colour, tc.env, escapes)
		}
	}
}

// An end by signal is what a log's reader wants; one frame that was not printed is
// no answer.
func TestBatchIsInterrupted(t *testing.T) {
	for name, tc := range map[string]struct {
		c    Command
		want inspect.Kind
	}{"batch": {Command{Batch: true}, 0}, "once": {Command{Once: true}, inspect.Interrupted}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var b bytes.Buffer
			tc.c.Interval = maxInterval
			s := &batchServer{rig: newRig(t, 80, 24), after: func(int) { cancel() }}
			err := tc.c.Run(ctx, s, &out.Streams{Out: &b, Err: &b})
			var own *inspect.Error
			if tc.want == 0 && err != nil || tc.want != 0 && (!errors.As(err, &own) || own.Kind != tc.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// What cannot be done is said before anything is asked.
func TestUsage(t *testing.T) {
	tty := map[string]string{"TERM": "xterm-256color"}
	for name, tc := range map[string]struct {
		c       Command
		in, out bool
		env     map[string]string
		want    string
	}{
		"TOP-07 no terminal":   {Command{Interval: time.Second}, false, false, tty, "--once, --batch"},
		"TOP-07 stdout a pipe": {Command{Interval: time.Second}, true, false, tty, "--once, --batch"},
		"TOP-07 stdin a file":  {Command{Interval: time.Second}, false, true, tty, "--once, --batch"},
		"dumb":                 {Command{Interval: time.Second}, true, true, map[string]string{"TERM": "dumb"}, `TERM is "dumb"`},
		"no TERM":              {Command{Interval: time.Second}, true, true, nil, `TERM is ""`},
		"too often":            {Command{Interval: time.Millisecond}, true, true, tty, "--interval"},
		"too seldom":           {Command{Interval: time.Hour, Batch: true}, true, true, tty, "--interval"},
		"json for ever":        {Command{Interval: time.Second, Format: "json", Batch: true}, true, true, tty, "jsonl"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 80, 24)
			err := tc.c.Run(t.Context(), r, &out.Streams{InTTY: tc.in, OutTTY: tc.out, Getenv: func(n string) string { return tc.env[n] }})
			var own *inspect.Error
			if !errors.As(err, &own) || own.Kind != inspect.Usage || !strings.Contains(err.Error(), tc.want) || len(r.asked) > 0 {
				t.Errorf("%v, asked %v", err, r.asked)
			}
		})
	}
}

// Colours come from the house's rules and the environment, and nobody is asked.
func TestProfile(t *testing.T) {
	for name, tc := range map[string]struct {
		color bool
		env   map[string]string
		want  string
		ascii bool
	}{
		"true":        {true, map[string]string{"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "en_US.UTF-8"}, "TrueColor", false},
		"256":         {true, map[string]string{"TERM": "tmux-256color", "LC_ALL": "C.utf8", "LANG": "C"}, "ANSI256", false},
		"16":          {true, map[string]string{"TERM": "xterm", "LC_CTYPE": "C.UTF-8", "LANG": "C"}, "ANSI", false},
		"none":        {false, map[string]string{"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C"}, "Ascii", true},
		"forced":      {true, map[string]string{"TERM": "weird"}, "ANSI", true},
		"the console": {true, map[string]string{"TERM": "linux", "LANG": "C.UTF-8"}, "ANSI", true},
	} {
		s := &out.Streams{Color: tc.color, Getenv: func(n string) string { return tc.env[n] }}
		if got := profile(s).String(); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
		if got := (&Command{}).model(nil, s).glyphs == &asciiGlyphs; got != tc.ascii {
			t.Errorf("%s: ASCII %v", name, got)
		}
	}
}
