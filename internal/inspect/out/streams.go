// Package out is how the inspect commands write: streams that know whether a
// person reads them, tables, colour, and the rule that no text from the wire
// reaches a terminal as control characters.
package out

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// ForceTTYEnv makes stdout and stderr behave like a terminal of that many
// columns, for tests.
const ForceTTYEnv = "EPPCTL_FORCE_TTY"

// Streams are a command's three files and what stands behind them. Data goes to
// Out, everything else to Err.
type Streams struct {
	In     io.Reader
	Out    io.Writer
	Err    io.Writer
	InTTY  bool
	OutTTY bool
	ErrTTY bool
	Width  int // columns of Out, 0 = unlimited
	Color  bool
	// Getenv reads the environment; nil reads none.
	Getenv func(string) string
}

// NewStreams looks at the files and the environment.
func NewStreams(in io.Reader, stdout, stderr io.Writer, getenv func(string) string) *Streams {
	s := &Streams{In: in, Out: stdout, Err: stderr, Getenv: getenv}
	s.InTTY, _ = terminal(in)
	s.OutTTY, s.Width = terminal(stdout)
	s.ErrTTY, _ = terminal(stderr)
	if w, err := strconv.Atoi(s.Env(ForceTTYEnv)); err == nil && w > 0 {
		s.OutTTY, s.ErrTTY, s.Width = true, true, w
	}
	return s
}

// Env reads the environment.
func (s *Streams) Env(name string) string {
	if s.Getenv == nil {
		return ""
	}
	return s.Getenv(name)
}

// terminal reports whether a stream is one, and its width.
func terminal(stream any) (tty bool, width int) {
	f, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return false, 0
	}
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil || w <= 0 {
		w = 80
	}
	return true, w
}
