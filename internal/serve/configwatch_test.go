package serve

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// watchRun is one Watch over a file in a bubble of fake time.
type watchRun struct {
	t       *testing.T
	applied []*Config
	failed  []error
	mended  int
	log     strings.Builder
	kick    chan struct{}
}

func startWatch(t *testing.T, path string) *watchRun {
	t.Helper()
	c, err := LoadConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &watchRun{t: t, kick: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go c.Watch(ctx, WatchOptions{
		Every: time.Second, Now: r.kick, Log: slog.New(slog.NewTextHandler(&r.log, nil)),
		Failed: func(err error) { r.failed = append(r.failed, err) },
		Mended: func() { r.mended++ },
	}, func(c *Config) { r.applied = append(r.applied, c) })
	synctest.Wait()
	return r
}

// after lets fake time pass and checks how many edits were taken and refused.
func (r *watchRun) after(d time.Duration, applied, failed int) {
	r.t.Helper()
	time.Sleep(d)
	synctest.Wait()
	if len(r.applied) != applied || len(r.failed) != failed {
		r.t.Fatalf("applied %d, failed %d, want %d and %d; errors %v", len(r.applied), len(r.failed), applied, failed, r.failed)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func onePod(name string) string { return "pods:\n- {name: " + name + ", address: 'h:1'}\n" }

// The log says what an edit to drain a pod, or to hear more, has come to.
func TestWatchLogsWhatWasApplied(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eppctl.yaml")
	write(t, path, onePod("a"))
	synctest.Test(t, func(t *testing.T) {
		r := startWatch(t, path)
		write(t, path, onePod("a")+"- {name: b, address: 'h:2', draining: true}\nlog_level: debug\n")
		r.after(3*time.Second, 1, 0)
		if want := " pods=2 draining=1 models=0 log_level=debug"; !strings.Contains(r.log.String(), want) {
			t.Errorf("no %q in the log:\n%s", want, r.log.String())
		}
	})
}

// TestWatchEditBreakFix: EP-42, UX-21.
func TestWatchEditBreakFix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eppctl.yaml")
	write(t, path, onePod("a"))
	synctest.Test(t, func(t *testing.T) {
		r := startWatch(t, path)
		r.after(5*time.Second, 0, 0)

		write(t, path, onePod("b"))
		r.after(3*time.Second, 1, 0)
		if got := r.applied[0].Pods[0].Name; got != "b" {
			t.Errorf("pod %q, want b", got)
		}

		write(t, path, "pods:\n- {nam: c, address: 'h:1'}\n")
		r.after(10*time.Second, 1, 1)
		if text := r.failed[0].Error(); !strings.Contains(text, path+":2:4: pods[0].nam: unknown key") {
			t.Errorf("error %q does not name the place", text)
		}
		if got := strings.Count(r.log.String(), "edit rejected"); got != 1 {
			t.Errorf("%d log lines for one bad edit", got)
		}

		write(t, path, onePod("d"))
		r.after(3*time.Second, 2, 1)

		// Taken back to what is in force: nothing to apply, but the same mistake
		// later is a new report.
		write(t, path, "pods: 1\n")
		r.after(3*time.Second, 2, 2)
		write(t, path, onePod("d"))
		r.after(3*time.Second, 2, 2)
		write(t, path, "pods: 1\n")
		r.after(3*time.Second, 2, 3)
		if r.mended != 2 { // by a new content, and by the old one
			t.Errorf("mended %d times, want 2", r.mended)
		}
	})
}

// TestWatchSymlinkSwap: a ConfigMap volume changes by swapping the ..data link.
func TestWatchSymlinkSwap(t *testing.T) {
	dir := t.TempDir()
	version := func(name, text string) {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "eppctl.yaml"), text)
		next := filepath.Join(dir, "..data_tmp")
		if err := os.Symlink(name, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	version("..v1", onePod("a"))
	path := filepath.Join(dir, "eppctl.yaml")
	if err := os.Symlink("..data/eppctl.yaml", path); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		r := startWatch(t, path)
		version("..v2", onePod("b"))
		r.after(3*time.Second, 1, 0)
		if got := r.applied[0].Pods[0].Name; got != "b" {
			t.Errorf("pod %q, want b", got)
		}
	})
}

func TestWatchFileGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eppctl.yaml")
	write(t, path, onePod("a"))
	synctest.Test(t, func(t *testing.T) {
		r := startWatch(t, path)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		r.after(10*time.Second, 0, 1)
		write(t, path, onePod("b"))
		r.after(3*time.Second, 1, 1)
	})
}

// TestWatchHalfWritten: a content seen once only is not judged, unless asked to.
func TestWatchHalfWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eppctl.yaml")
	write(t, path, onePod("a"))
	synctest.Test(t, func(t *testing.T) {
		r := startWatch(t, path)
		write(t, path, "pods:\n- {name: b,")
		r.after(time.Second, 0, 0)
		write(t, path, onePod("b"))
		r.after(2*time.Second, 1, 0)
		write(t, path, onePod("c"))
		r.kick <- struct{}{}
		r.after(0, 2, 0)
	})
}

// TestWatchEmptied: a file emptied under a running serve leaves it its pods, and
// the log says why, and when it is over.
func TestWatchEmptied(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eppctl.yaml")
	write(t, path, onePod("a"))
	synctest.Test(t, func(t *testing.T) {
		r := startWatch(t, path)
		for i, text := range []string{"", "pods: []\n"} {
			write(t, path, text)
			r.after(5*time.Second, 0, i+1)
		}
		if log := r.log.String(); !strings.Contains(log, "the old configuration stays") || !strings.Contains(log, "pods: found none") {
			t.Errorf("log:\n%s", log)
		}
		for range 3 {
			write(t, path, onePod("a"))
			r.after(3*time.Second, 0, 2)
		}
		write(t, path, onePod("b"))
		r.after(3*time.Second, 1, 2)
		if n := strings.Count(r.log.String(), "good again"); n != 1 {
			t.Errorf("told %d times that the file is good again:\n%s", n, r.log.String())
		}
	})
}

// TestWatchProblemsPerLine: each problem of an edit is a log line of its own, up
// to a bound.
func TestWatchProblemsPerLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eppctl.yaml")
	write(t, path, onePod("a"))
	synctest.Test(t, func(t *testing.T) {
		r := startWatch(t, path)
		write(t, path, "podz: 1\nlistn: 2\n")
		r.after(3*time.Second, 0, 1)
		if log := r.log.String(); strings.Count(log, "edit rejected") != 2 || strings.Contains(log, `\n`) {
			t.Errorf("log:\n%s", log)
		}
		r.log.Reset()
		write(t, path, bad(30))
		r.after(3*time.Second, 0, 2)
		if n := strings.Count(r.log.String(), "edit rejected"); n != maxLogged+1 {
			t.Errorf("%d lines of 30 problems", n)
		}
	})
}

// bad is a file with n problems.
func bad(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "nonsense%d: 1\n", i)
	}
	return b.String()
}

// TestWatchKeepsOverrides: a flag wins over every later edit as well.
func TestWatchKeepsOverrides(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eppctl.yaml")
	write(t, path, onePod("a"))
	synctest.Test(t, func(t *testing.T) {
		c, err := LoadConfig(path, Override{"listen.metrics", "--metrics-addr", func(c *Config) { c.Listen.Metrics = ":1" }})
		if err != nil {
			t.Fatal(err)
		}
		var next *Config
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go c.Watch(ctx, WatchOptions{}, func(c *Config) { next = c })
		write(t, path, onePod("b")+"listen: {metrics: ':2'}\n")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if next == nil || next.Listen.Metrics != ":1" {
			t.Errorf("after the edit: %+v", next)
		}
		cancel()
		synctest.Wait()
	})
}

// A pipe would make the reader wait for a writer, and the shutdown with it.
func TestConfigIsARegularFile(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{pipe: "is not a regular file", dir: "is a directory"} {
		if _, err := LoadConfig(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// The end of a watch waits for no read, not even one that never returns.
func TestWatchEndsInMidRead(t *testing.T) {
	reading, never := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(never) })
	w := watcher{config: &Config{Path: "x"}, read: func(string) ([]byte, error) {
		close(reading)
		<-never
		return nil, nil
	}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		w.look(ctx, false)
		close(ended)
	}()
	<-reading
	cancel()
	<-ended
	if w.errText != "" {
		t.Errorf("rejected: %s", w.errText)
	}
}
