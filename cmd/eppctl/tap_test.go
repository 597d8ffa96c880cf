package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

// tapping is an eppctl tap of its own, of one publisher.
type tapping struct {
	t      *testing.T
	cmd    *exec.Cmd
	from   *zmtp.Publisher
	stdout io.ReadCloser
	mu     sync.Mutex
	stderr strings.Builder
	read   chan struct{} // stderr is read to its end
	seq    uint64
}

func startTap(t *testing.T, args ...string) *tapping {
	t.Helper()
	from, err := zmtp.Listen("127.0.0.1:0", zmtp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { from.Close() })
	p := &tapping{t: t, from: from, read: make(chan struct{}), cmd: &exec.Cmd{Path: os.Args[0], Env: os.Environ()}}
	p.cmd.Args = append([]string{"eppctl", "tap", "--connect", from.Addr()}, args...)
	stderr, err1 := p.cmd.StderrPipe()
	var err2 error
	p.stdout, err2 = p.cmd.StdoutPipe()
	if err := errors.Join(err1, err2, p.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	go func() {
		defer close(p.read)
		for s := bufio.NewScanner(stderr); s.Scan(); {
			p.mu.Lock()
			p.stderr.WriteString(s.Text() + "\n")
			p.mu.Unlock()
		}
	}()
	for end := time.Now().Add(patience); from.Subscribers() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("tap does not subscribe: %s", p.errors())
		}
	}
	return p
}

func (p *tapping) errors() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// publish sends a batch of one event.
func (p *tapping) publish() {
	b := msgp.AppendArrayHeader(msgp.AppendFloat64(msgp.AppendArrayHeader(nil, 2), 1), 1)
	p.from.Send("", p.seq, msgp.AppendString(msgp.AppendArrayHeader(b, 1), "AllBlocksCleared"))
	p.seq++
}

func (p *tapping) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// wait returns the exit code.
func (p *tapping) wait() int {
	p.t.Helper()
	<-p.read
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// accounts counts the accounts on stderr, once there are so many.
func (p *tapping) accounts(n int) {
	p.t.Helper()
	for end := time.Now().Add(patience); strings.Count(p.errors(), "matched the filter") < n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("never %d accounts: %s", n, p.errors())
		}
	}
}

// UX-18, UX-19: the account at an end from outside, and on request.
func TestTapSignals(t *testing.T) {
	for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(end.String(), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "a.eptap")
			p := startTap(t, "--no-headers", "--write", file)
			lines := bufio.NewScanner(p.stdout)
			next := func(want string) {
				t.Helper()
				if !lines.Scan() || !strings.Contains(lines.Text(), want) {
					t.Fatalf("line %q, want %q", lines.Text(), want)
				}
			}
			next("UP")
			p.publish()
			next("cleared")
			p.signal(syscall.SIGUSR1)
			p.accounts(1)
			p.publish()
			next("cleared") // UX-19: it goes on
			p.signal(syscall.SIGUSR2)
			for stop := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
				if b, _ := os.ReadFile(file); strings.Count(string(b), "AllBlocksCleared") == 2 {
					break
				} else if time.Now().After(stop) {
					t.Fatalf("SIGUSR2 flushes nothing: %q", b)
				}
			}
			p.signal(end)
			for lines.Scan() {
				t.Errorf("a line behind the end: %s", lines.Text())
			}
			if code := p.wait(); code != exitOK || strings.Count(p.errors(), "matched the filter") != 2 {
				t.Errorf("UX-18: exit code %d, %s", code, p.errors())
			}
			if a := accountOf(t, file); a["batches"] != 2.0 || a["kind"] != "Account" {
				t.Errorf("UX-18: %v", a)
			}
		})
	}
}

// accountOf reads a recording to its end, which must be its account.
func accountOf(t *testing.T, file string) (a map[string]any) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := recording.NewReader(f)
	for err == nil {
		var rec *recording.Record
		if rec, err = r.Next(); err == nil && rec.Type == recording.TypeAccount {
			if err := json.Unmarshal(rec.Body, &a); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Fatalf("the recording ends with %v", err)
	}
	return a
}

// UX-17: tap | head -1.
func TestTapClosedPipe(t *testing.T) {
	p := startTap(t, "--no-headers")
	if _, err := bufio.NewReader(p.stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	p.stdout.Close()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				p.publish()
			}
		}
	})
	code := p.wait()
	close(done)
	wg.Wait()
	if code != exitOK || !strings.Contains(p.errors(), "matched the filter") || strings.Contains(p.errors(), "eppctl:") {
		t.Errorf("UX-17: exit code %d, %s", code, p.errors())
	}
}
