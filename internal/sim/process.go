package sim

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Process is a child process whose output goes to a log file.
type Process struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// StartProcess runs a program until Stop, Kill or its own end. log names the
// file its output is appended to.
func StartProcess(log, exe string, args ...string) (*Process, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", exe, err)
	}
	defer f.Close() // the child has its own copy
	p := &Process{name: filepath.Base(exe), log: log, cmd: exec.Command(exe, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = f, f
	endWithParent(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	go func() {
		p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal asks the process to end, as an operator would.
func (p *Process) Signal() error { return p.cmd.Process.Signal(syscall.SIGTERM) }

// Kill ends the process at once, and what it has started.
func (p *Process) Kill() {
	killAll(p.cmd)
	<-p.done
}

// Stop asks the process to end and kills it when it has not by then.
func (p *Process) Stop(patience time.Duration) error {
	p.Signal()
	select {
	case <-p.done:
		return nil
	case <-time.After(patience):
		p.Kill()
		return fmt.Errorf("%s did not end within %v", p.name, patience)
	}
}

// ExitCode is -1 while the process runs or when a signal ended it.
func (p *Process) ExitCode() int {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	default:
		return -1
	}
}

// Until calls ready every 20 ms until it succeeds. A process that ends
// meanwhile, or the deadline, gives an error with the end of its log.
func (p *Process) Until(patience time.Duration, ready func() error) error {
	deadline := time.Now().Add(patience)
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended with code %d:\n%s", p.name, p.ExitCode(), p.Tail(2048))
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("%s is not ready after %v: %w", p.name, patience, err),
				fmt.Errorf("the end of its log:\n%s", p.Tail(2048)))
		}
	}
}

// Tail returns the last bytes of the log.
func (p *Process) Tail(n int) []byte {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimSpace(b[max(0, len(b)-n):])
}
