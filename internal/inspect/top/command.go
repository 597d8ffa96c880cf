// Package top is `eppctl top`: the fleet as serve sees it, a frame a second, on a
// terminal or as text for logs. It asks the admin API and changes nothing there.
//
// A poll brings one frame. newSheet makes of it, and of earlier frames, what is
// shown; screen draws that as lines of text, purely, with the styles and the layout of
// lipgloss; bubbletea puts them on the terminal. Package quiet keeps lipgloss from
// asking the terminal when the program is loaded.
package top

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// Formats are the values of -o.
func Formats() []string { return []string{"table", "json", "jsonl"} }

// Command is one run of top.
type Command struct {
	Addr     string // of the server, for display
	Interval time.Duration
	Once     bool
	Batch    bool
	Count    int    // frames of a batch, 0 = no end
	Format   string // table, json (with Once), jsonl
	ASCII    bool
}

// Run shows frames until it is told to stop. Nothing stands between the user and
// what is going on: an address at which nobody answers is an error at once, and a
// server that goes away later is told of and waited for.
func (c *Command) Run(ctx context.Context, server Server, s *out.Streams) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.Once || c.Batch || c.Format == "jsonl" {
		return c.batch(ctx, server, s)
	}
	return c.screen(ctx, server, s)
}

// check refuses what cannot be done.
func (c *Command) check() error {
	if c.Interval < minInterval || c.Interval > maxInterval {
		return usage(fmt.Sprintf("--interval: found %s; expected %s to %s", c.Interval, minInterval, maxInterval), "")
	}
	if c.Format == "json" && !c.Once {
		return usage("-o json is for one frame", "try: --once -o json, or -o jsonl for a frame per line")
	}
	return nil
}

func usage(what, hint string) error {
	return &inspect.Error{Kind: inspect.Usage, Code: "E_USAGE", What: what, Hint: hint}
}

// canDraw refuses terminals that cannot show a screen.
func canDraw(s *out.Streams) error {
	if !s.OutTTY || !s.InTTY {
		return usage("stdin and stdout are no terminal", "try: --once, --batch or -o jsonl")
	}
	if term := s.Env("TERM"); term == "" || term == "dumb" {
		return usage(fmt.Sprintf("the terminal cannot draw a screen: TERM is %q", term), "try: --batch, or set TERM to what it is")
	}
	return nil
}

// screen runs the terminal.
func (c *Command) screen(ctx context.Context, server Server, s *out.Streams) error {
	if err := canDraw(s); err != nil {
		return err
	}
	m := c.model(server, s)
	usual := debug.SetGCPercent(openingGC)
	first, ok := m.poll()().(frameMsg)
	m.take(first)
	debug.SetGCPercent(usual)
	if !ok || m.failure != nil {
		return m.failure
	}
	return draw(ctx, m, s)
}

// openingGC lets the heap grow to 16 MiB before it is collected while the first frame
// is read, which fills it from nothing: of the 22 ms of processor that opening took
// beside `eppctl version`, 9 were the collector's (BenchmarkProgram, GOGC=off).
const openingGC = 400

// draw runs the screen until a key, a signal or the end of ctx ends it: all of them by
// the same way, which waits for the goroutine that reads the keys. A context or a signal
// given to bubbletea itself would have it close that goroutine's files under its read.
func draw(ctx context.Context, m *model, s *out.Streams) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	screen := tea.NewProgram(m, tea.WithoutSignalHandler(), tea.WithInput(s.In), tea.WithOutput(s.Out), tea.WithColorProfile(profile(s)), tea.WithFPS(framesPerSecond))
	defer context.AfterFunc(ctx, screen.Quit)()
	_, err := screen.Run()
	if ctx.Err() != nil {
		return nil // a signal means what q does, and so does the end of the session
	}
	return err
}

// framesPerSecond is how often bubbletea looks for something to write: the first
// screen and what a key does wait for that. It writes only what changed. Against a
// serve of 256 pods, for a minute, 30 looks a second cost 0.9 % of a core, 60 cost
// 1.1 % and 120 cost 1.4 %; the first screen came 15 ms sooner at 60, and 8 ms more at
// 120 (medians of 25).
const framesPerSecond = 60

func (c *Command) model(server Server, s *out.Streams) *model {
	m := &model{server: server, addr: c.Addr, now: time.Now, after: tea.Tick, zone: time.Local, interval: c.Interval, glyphs: &blockGlyphs, save: create, unfolded: map[string]bool{}}
	if c.ASCII || !unicodeLocale(s) {
		m.glyphs = &asciiGlyphs
	}
	return m
}

// create writes a file that must not be there: a snapshot of an incident is never
// written over. It is for its owner, as it names pods and models.
func create(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// profile is what colours the terminal has. It is told by the environment alone:
// asking the terminal takes an answer, and asking tmux takes a tmux that does.
func profile(s *out.Streams) colorprofile.Profile {
	if !s.Color {
		return colorprofile.ASCII
	}
	var env []string
	for _, name := range []string{"TERM", "COLORTERM", "WT_SESSION"} {
		if v := s.Env(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return max(colorprofile.Env(env), colorprofile.ANSI) // there is colour, whoever forced it
}

// unicodeLocale reports whether block characters can be shown.
func unicodeLocale(s *out.Streams) bool {
	if s.Env("TERM") == "linux" {
		return false // its font has few of them
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := s.Env(name); v != "" {
			return isUTF8(v)
		}
	}
	return false
}

func isUTF8(locale string) bool {
	l := strings.ToLower(locale)
	return strings.Contains(l, "utf-8") || strings.Contains(l, "utf8")
}
