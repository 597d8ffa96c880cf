package main

import (
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/serve"
	"github.com/eppctl/eppctl/internal/testdata"
)

// silent is a terminal at which nobody sits: it shows what a program writes and
// answers nothing.
type silent struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd
	out    testdata.Buffer
	ended  chan error
	read   chan struct{} // closed when all that was written is in out
}

// onTerminal starts eppctl in the foreground of a fresh terminal, in a tmux as far
// as it can see.
func onTerminal(t *testing.T, env []string, args ...string) *silent {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: 100, Row: 30}); err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &silent{t: t, master: master, ended: make(chan error, 1), read: make(chan struct{})}
	s.cmd = &exec.Cmd{
		Path: os.Args[0], Args: append([]string{"eppctl"}, args...), Stdin: tty, Stdout: tty, Stderr: tty,
		Env:         append([]string{"TERM=xterm-256color", "LANG=C.UTF-8", "HOME=" + t.TempDir()}, env...),
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Setctty: true},
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	go func() {
		defer close(s.read)
		_, _ = io.Copy(&s.out, master) // ends with an error when the last writer closes
	}()
	go func() { s.ended <- s.cmd.Wait() }()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.read
		master.Close()
	})
	return s
}

// wait is for the end; the exit code and all that was written.
func (s *silent) wait() (code int, text string) {
	s.t.Helper()
	select {
	case err := <-s.ended:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			s.t.Fatal(err)
		}
	case <-time.After(patience):
		s.t.Fatalf("it does not end; so far:\n%q", s.out.String())
	}
	<-s.read
	return s.cmd.ProcessState.ExitCode(), s.out.String()
}

// command matches what makes a terminal do or answer something: every escape
// sequence but colours.
var command = regexp.MustCompile("\x1b(?:[^\\[]|\\[[0-9;:]*[^0-9;:m])")

// fakeTmux is a tmux that notes that it was run.
func fakeTmux(t *testing.T) (dir, note string) {
	t.Helper()
	dir = t.TempDir()
	note = filepath.Join(dir, "was-run")
	if err := os.WriteFile(filepath.Join(dir, "tmux"), []byte("#!/bin/sh\necho run >> "+note+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir, note
}

// UX-01, UX-02: no command but top asks the terminal anything, waits for its
// answer, or runs the tmux it stands in. A library that does so when it is loaded
// would do it in every command: at a terminal that does not answer, bubbletea v1
// held each of them up for five seconds.
func TestNothingIsAskedOfTheTerminal(t *testing.T) {
	dir, note := fakeTmux(t)
	env := []string{"TMUX=/nowhere,1,0", "PATH=" + dir}
	runs := [][]string{
		{"--help"}, {"--version"}, {"version"}, {"version", "-o", "json"}, {"no-such-command"},
		{"explain", "--addr", "127.0.0.1:1", "--prompt", "x"}, {"tap", "--read", "/nowhere"}, {"tap", "--from", "serve", "--addr", "127.0.0.1:1"},
		{"check", "--config", "/nowhere"}, {"serve", "--config", "/nowhere"}, {"envoy-config"}, {"completion", "bash"},
		{"replay", "--trace", "/nowhere"}, {"tokenize", "--model", "/nowhere"}, {"sim", "demo", "--help"}, {"sim", "demo", "--envoy", "/nowhere"}, {"tap", "--check", "--config", "/nowhere"},
		{"top", "--help"}, {"top", "--once", "--addr", "127.0.0.1:1"}, {"top", "--addr", "127.0.0.1:1"},
		{"top", "--once", "--addr", recordedAPI(t)}, {"top", "--batch", "-n", "2", "-i", "100ms", "--addr", recordedAPI(t)}, {"top", "-o", "jsonl", "-n", "1", "--addr", recordedAPI(t)},
	}
	for _, c := range newRoot(&app{streams: &out.Streams{}, getenv: func(string) string { return "" }}).Commands() {
		runs = append(runs, []string{c.Name(), "--help"})
	}
	for _, args := range runs {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			_, text := onTerminal(t, env, args...).wait()
			if text == "" {
				t.Error("it says nothing")
			}
			if c := command.FindString(text); c != "" {
				t.Errorf("it writes %q:\n%q", c, text)
			}
		})
	}
	if _, err := os.Stat(note); err == nil {
		t.Error("a tmux was run")
	}
}

// top does draw a screen, on a terminal that answers nothing as well: the test
// above would see it.
func TestTopOnASilentTerminal(t *testing.T) {
	dir, note := fakeTmux(t)
	get := func(signal syscall.Signal) func(s *silent) error {
		return func(s *silent) error { return s.cmd.Process.Signal(signal) }
	}
	press := func(keys string) func(s *silent) error {
		return func(s *silent) error { _, err := s.master.WriteString(keys); return err }
	}
	for name, end := range map[string]func(s *silent) error{"q": press("q"), "ctrl+c": press("\x03"), "hang-up": get(syscall.SIGHUP), "interrupt": get(syscall.SIGINT), "end": get(syscall.SIGTERM)} {
		t.Run(name, func(t *testing.T) {
			s := onTerminal(t, []string{"TMUX=/nowhere,1,0", "PATH=" + dir}, "top", "--addr", recordedAPI(t))
			eventuallyOK(t, "the screen", func() error {
				if text := s.out.String(); !strings.Contains(text, "LIVE") {
					return fmt.Errorf("%q", text)
				}
				return nil
			})
			if err := end(s); err != nil {
				t.Fatal(err)
			}
			code, text := s.wait()
			if code != exitOK {
				t.Errorf("exit code %d:\n%s", code, text)
			}
			for _, want := range []string{"\x1b[?1049h", "\x1b[?1049l"} { // into the other screen, and back
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in %q", want, text)
				}
			}
			if !command.MatchString(text) {
				t.Error("a screen is drawn, and no command is seen")
			}
		})
	}
	if _, err := os.Stat(note); err == nil {
		t.Error("a tmux was run")
	}
}

// Ctrl-C ends a replay that is under way, which its progress shows.
func TestReplayIsInterrupted(t *testing.T) {
	s := onTerminal(t, nil, "replay", "--workload", "tool", "--policy", "omniscient,omniscient-4", "--speed", "6,7,8")
	eventuallyOK(t, "progress", func() error {
		if text := s.out.String(); !strings.Contains(text, "replayed ") {
			return fmt.Errorf("%q", text)
		}
		return nil
	})
	if _, err := s.master.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	if code, text := s.wait(); code != exitInterrupted || !strings.Contains(text, "eppctl: interrupted") {
		t.Errorf("exit code %d:\n%s", code, text)
	}
}

// recordedAPI is the admin API, over a fleet of which nothing is known.
func recordedAPI(t *testing.T) (addr string) {
	t.Helper()
	c, err := serve.LoadConfig("")
	if err != nil {
		t.Fatal(err)
	}
	fleet := serve.NewRecorded(c)
	api := httptest.NewServer(fleet.Handler(time.Now()))
	t.Cleanup(func() { api.Close(); fleet.Close() })
	return api.Listener.Addr().String()
}

// Who starts a command that reads stdin at a terminal is told so once, and not left to
// wonder what it waits for.
func TestReadingFromATerminal(t *testing.T) {
	const note = "eppctl: reading from the terminal; end with Ctrl-D"
	model := filepath.Join(testdata.Dirs(t, "engines")[0], "models", "tiny-llama")
	ids := regexp.MustCompile(`(?m)^\[\d+(,\d+)*\]`)
	for _, args := range []string{"tokenize --model " + model, "explain -f - --addr 127.0.0.1:1", "replay --trace -", "tap --read -"} {
		t.Run(args, func(t *testing.T) {
			s := onTerminal(t, nil, strings.Fields(args)...)
			eventuallyOK(t, "the note", func() error {
				if text := s.out.String(); !strings.Contains(text, note) {
					return fmt.Errorf("%q", text)
				}
				return nil
			})
			if _, err := s.master.WriteString("bc\n\x04"); err != nil {
				t.Fatal(err)
			}
			_, text := s.wait()
			if strings.Count(text, note) != 1 || strings.HasPrefix(args, "tokenize") && !ids.MatchString(text) {
				t.Errorf("%q", text)
			}
		})
	}
}
