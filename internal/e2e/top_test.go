package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// terminal is a real one: a tmux of its own with a shell in it.
type terminal struct {
	t      *testing.T
	tmux   string
	socket string
}

// openTerminal starts a shell on a terminal of w columns and h lines. Its home is not one
// of t's folders: a shell may still write its history there when the terminal has gone.
func openTerminal(t *testing.T, w, h int, env ...string) *terminal {
	t.Helper()
	path, err := exec.Command("../../scripts/tmux.sh").Output()
	if err != nil {
		t.Fatalf("this test needs a tmux: run scripts/tmux.sh to see why there is none: %v", err)
	}
	dir, err := os.MkdirTemp("", "eppctl-tmux-") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{t, string(bytes.TrimSpace(path)), filepath.Join(dir, "s")}
	args := []string{"-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(w), "-y", fmt.Sprint(h)}
	for _, e := range append(env, "HOME="+dir, "PS1=$ ", "LC_ALL=C.UTF-8") {
		args = append(args, "-e", e)
	}
	x.run(append(args, "sh")...)
	t.Cleanup(func() {
		x.t = t
		if t.Failed() {
			t.Logf("all that the terminal has shown:\n%s", x.run("capture-pane", "-p", "-S", "-"))
		}
		x.run("kill-server")
		os.RemoveAll(dir)
	})
	return x
}

func (x *terminal) run(args ...string) string {
	x.t.Helper()
	cmd := exec.Command(x.tmux, append([]string{"-u", "-S", x.socket}, args...)...)
	cmd.Env = append(os.Environ(), "TMUX=", "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// screen is what stands on it.
func (x *terminal) screen() string { return x.run("capture-pane", "-p") }

func (x *terminal) press(keys ...string) {
	x.t.Helper()
	x.run(append([]string{"send-keys"}, keys...)...)
}

// enter types a command line.
func (x *terminal) enter(line string) {
	x.t.Helper()
	x.run("send-keys", "-l", line)
	x.press("Enter")
}

// shows waits until all of some patterns stand on the screen.
func (x *terminal) shows(patterns ...string) {
	x.t.Helper()
	eventually(x.t, func() error {
		s := x.screen()
		for _, p := range patterns {
			if !regexp.MustCompile(p).MatchString(s) {
				return fmt.Errorf("%q is not on the screen:\n%s", p, s)
			}
		}
		return nil
	})
}

// TestTop uses top as an operator does, on a real terminal, beside a real serve and
// engines under traffic.
func TestTop(t *testing.T) {
	s := start(t, setup{})
	x := openTerminal(t, 120, 40)
	stop := s.traffic()
	defer stop()
	top := fmt.Sprintf("%s top --addr %s", eppctl, s.Listen.Admin)

	x.enter("cd " + s.dir)
	x.enter("echo was-here-before")
	x.enter(top + "; echo ended with $?")
	x.shows(`eppctl top  LIVE `, `3 pods: 3 ok`, `(?m)^. sim-0 .*live`, `(?m)^> sim-`, `sim-2`, `REQUESTS  [1-9]`, `selected \d+%`)

	// Keys in, screens out.
	x.press("G")
	x.shows(`(?m)^> sim-2`)
	x.press("/")
	x.press("1")
	x.shows(`filter: 1`, `(?m)^> sim-1`)
	x.press("Escape")
	x.shows(`(?m)^. sim-0`)
	x.press("Enter") // into a pod
	x.shows(`RATES`, `BREAKER +closed`, `EVENTS`, `rank 0  live`, `vllm:num_requests_waiting`)
	x.press("3")
	x.shows(`RUNNER-UP`, `(?m)^> \d\d:\d\d:\d\d +sim-\d`)
	x.press("Enter") // into a pick
	x.shows(`PICK +sim-\d`, `SCORES +seconds`, `FLIP`)
	x.press("2")
	x.shows(`STORED`, `REMOVED`)
	x.press("4")
	x.shows(`PARITY`, `TOLD`)
	x.enter(":pod sim-1") // a command line
	x.shows(`POD +sim-1`, `COURSE +picks/s`)
	x.press("?")
	x.shows(`KEYS`, `a frame back`)
	x.press("1")

	// A pause stands still, and steps back.
	x.press("p")
	x.shows(`PAUSED \d\d:\d\d:\d\d \([1-9]`)
	x.press("<")
	x.shows(`PAUSED`)
	x.press("p")
	x.shows(`LIVE`)

	// Any size, and back.
	x.run("resize-window", "-x", "80", "-y", "24")
	x.shows(`(?m)^. sim-0`, `q quit`)
	x.run("resize-window", "-x", "59", "-y", "11")
	x.shows(`^terminal too small: 59x11, need 60x12`)
	x.run("resize-window", "-x", "1", "-y", "1")
	x.shows(`^.\s*$`)
	x.run("resize-window", "-x", "200", "-y", "50")
	x.shows(`WAITED`, `HARDWARE`, `(?m)^. sim-0 .*vllm`)

	// serve goes away and comes back.
	s.Serve.Kill()
	x.shows(`LOST \d`, `disconnected, last data \d.* ago: .*connection refused`)
	if err := s.StartServe(); err != nil {
		t.Fatal(err)
	}
	x.shows(`LIVE`, `3 pods: 3 ok`, `REQUESTS  [1-9]`)

	// A frame that was written is opened again, and what stands on the screen is the past.
	x.press("w")
	x.shows(`wrote eppctl-top-.*json`)
	// The terminal is as it was, however top ends.
	x.press("q")
	x.shows(`was-here-before`, `ended with 0`)
	x.enter(eppctl + " top --read eppctl-top-*.json; echo read with $?")
	x.shows(`PAST \d.* frame 1 of 1`, `3 pods: 3 ok`, `(?m)^> sim-0`)
	x.press("4")
	x.shows(`TOLD`)
	x.press("q")
	x.shows(`read with 0`)
	pid := filepath.Join(s.dir, "top.pid")
	for _, how := range []string{"q", "C-c", "TERM", "INT"} {
		t.Run(how, func(t *testing.T) {
			x.t = t
			x.enter("clear; echo was-here-before")
			x.enter(fmt.Sprintf("sh -c 'echo $$ > %s; exec %s'; echo ended with $?", pid, top))
			x.shows(`LIVE`)
			switch how {
			case "TERM", "INT":
				x.signal(pid, how)
			default:
				x.press(how)
			}
			x.shows(`was-here-before`, `ended with 0`)
			x.enter("stty -a")
			x.shows(`[^-]icanon`, `[^-]echo `, `[^-]isig`)
		})
	}
}

// signal sends one to the process whose id stands in a file.
func (x *terminal) signal(file, name string) {
	x.t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		x.t.Fatal(err)
	}
	id, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		x.t.Fatal(err)
	}
	if err := syscall.Kill(id, map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT}[name]); err != nil {
		x.t.Fatal(err)
	}
}

// traffic sends requests until it is stopped: some prompts, again and again.
func (s *stack) traffic() (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var all sync.WaitGroup
	for g := range 2 {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				s.call(ctx, "POST", "/v1/completions", completion(prompt(g*4+i%4, 400), 3))
				select {
				case <-ctx.Done():
				case <-time.After(50 * time.Millisecond):
				}
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}
