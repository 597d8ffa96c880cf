package top

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/teatest/v2"
	"github.com/charmbracelet/x/vt"

	"github.com/eppctl/eppctl/internal/testdata"
)

// shot is a screen that the program shows once keys were pressed and a text has come
// that does not come at once.
type shot struct {
	golden      string
	w, h        int
	keys, shows string
	colours     colorprofile.Profile
}

// TOP-01: what stands on the terminal when the program has been run, at each size
// and with each number of colours.
func TestScreens(t *testing.T) {
	shots := []shot{
		{"pods-59x11", 59, 11, "", "", colorprofile.NoTTY},
		{"pods-80x24-ascii", 80, 24, "a p", "", colorprofile.NoTTY},
		{"pods-100x30", 100, 30, "", "", colorprofile.NoTTY},
		{"pods-160x50", 160, 50, "", "", colorprofile.NoTTY},
		{"pods-120x40-truecolor", 120, 40, "", "", colorprofile.TrueColor},
		{"pods-120x40-256", 120, 40, "", "", colorprofile.ANSI256},
		{"pods-120x40-16", 120, 40, "", "", colorprofile.ANSI},
		{"pods-120x40-nocolor", 120, 40, "", "", colorprofile.ASCII},
		{"pods-faults-100x30", 100, 30, "f s s", "", colorprofile.NoTTY},
		{"pod-open-80x24", 80, 24, "G k k k enter", "", colorprofile.NoTTY},
		{"events-80x24", 80, 24, "2", "", colorprofile.NoTTY},
		{"events-200x60", 200, 60, "2 s r", "", colorprofile.NoTTY},
		{"picks-80x24", 80, 24, "3", "", colorprofile.NoTTY},
		{"picks-120x40-ascii", 120, 40, "3 a", "", colorprofile.NoTTY},
		{"ranks-120x40", 120, 40, "G x", "", colorprofile.NoTTY},
		{"ranks-80x24-ascii", 80, 24, "a X G", "", colorprofile.NoTTY},
		{"ids-80x24", 80, 24, "4", "", colorprofile.NoTTY},
		{"ids-160x50", 160, 50, "4 s", "", colorprofile.NoTTY},
		{"ids-model-100x30", 100, 30, "4 j j enter", "", colorprofile.NoTTY},
	}
	for _, size := range [][2]int{{60, 12}, {80, 24}, {120, 40}, {200, 50}} {
		for _, s := range []shot{
			{golden: "pods"},
			{golden: "help", keys: "?"},
			{golden: "pod", keys: "/ a - 7 enter enter"},
			{golden: "card", keys: "3 j enter", shows: "PICK "},
			{golden: "paused", keys: "p < < <"},
		} {
			s.w, s.h, s.colours = size[0], size[1], colorprofile.NoTTY
			s.golden += fmt.Sprintf("-%dx%d", s.w, s.h)
			shots = append(shots, s)
		}
	}
	for _, s := range shots {
		t.Run(s.golden, s.compare)
	}
}

func (s *shot) compare(t *testing.T) {
	x := busy(t, 0, 0).run(t, s.w, s.h, s.colours)
	x.press(s.keys)
	x.shows(s.shows)
	x.end()
	testdata.Golden(t, filepath.Join("testdata", s.golden+".golden"), []byte(x.text(s.colours)))
}

// eventually bounds the waiting for what a program does; it is never reached in a
// good run.
const eventually = 2 * time.Minute

// terminal is a program that runs, and what stands on the terminal that it writes to:
// it writes what has changed since the last time, which nobody can read.
type terminal struct {
	t       *testing.T
	program *teatest.TestModel
	screen  *vt.Emulator
}

// run starts the program of a rig, whose time stands still from now on.
func (r *rig) run(t *testing.T, w, h int, colours colorprofile.Profile) *terminal {
	x := &terminal{t: t, screen: vt.NewEmulator(w, h)}
	_, _ = x.screen.WriteString(ansi.SetModeLineFeedNewLine) // as a terminal that is not raw does
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		_, _ = io.Copy(io.Discard, x.screen) // nobody reads them, and it would wait
	}()
	t.Cleanup(func() {
		_ = x.screen.InputPipe().(io.Closer).Close()
		<-answers
	})
	x.program = teatest.NewTestModel(t, r.m, teatest.WithInitialTermSize(w, h),
		teatest.WithProgramOptions(tea.WithColorProfile(colours), tea.WithEnvironment([]string{"TERM=xterm-256color"})))
	return x
}

func (x *terminal) press(names string) {
	for _, name := range strings.Fields(names) {
		x.program.Send(press(name))
	}
}

// shows waits for a text.
func (x *terminal) shows(text string) {
	x.t.Helper()
	teatest.WaitFor(x.t, io.TeeReader(x.program.Output(), x.screen), func([]byte) bool {
		return strings.Contains(x.screen.String(), text)
	}, teatest.WithDuration(eventually))
}

// end quits, and leaves on the screen what stood there before the program gave the
// terminal back.
func (x *terminal) end() {
	x.t.Helper()
	if err := x.program.Quit(); err != nil {
		x.t.Fatal(err)
	}
	rest, err := io.ReadAll(x.program.FinalOutput(x.t, teatest.WithFinalTimeout(eventually)))
	if err != nil {
		x.t.Fatal(err)
	}
	last, _, back := strings.Cut(string(rest), ansi.ResetModeAltScreenSaveCursor)
	if !back {
		x.t.Errorf("the terminal is not given back: %q", rest)
	}
	_, _ = x.screen.WriteString(last)
}

// text is what stands on the screen, with its looks where the terminal has any.
func (x *terminal) text(colours colorprofile.Profile) string {
	if colours > colorprofile.NoTTY {
		return x.screen.Render() + "\n"
	}
	return x.screen.String() + "\n"
}
