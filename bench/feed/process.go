package main

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// process is a child spoken to in lines.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
	stderr strings.Builder
}

func start(name string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(name, args...)}
	p.cmd.Stderr = &p.stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewScanner(out)
	p.out.Buffer(nil, 1<<20) // a line names up to 256 endpoints
	return p, p.cmd.Start()
}

func (p *process) say(format string, args ...any) error {
	_, err := fmt.Fprintf(p.in, format+"\n", args...)
	return err
}

func (p *process) line() (string, error) {
	if !p.out.Scan() {
		p.end()
		return "", fmt.Errorf("%s ended: %s", p.cmd.Path, &p.stderr)
	}
	return p.out.Text(), nil
}

// expect reads a line that must be this one.
func (p *process) expect(want string) error {
	got, err := p.line()
	if err == nil && got != want {
		err = fmt.Errorf("%s says %q, not %q", p.cmd.Path, got, want)
	}
	return err
}

// numbers reads a line of n numbers.
func (p *process) numbers(n int) ([]int64, error) {
	line, err := p.line()
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(line)
	out := make([]int64, len(fields))
	for i, f := range fields {
		if _, err := fmt.Sscan(f, &out[i]); err != nil {
			return nil, fmt.Errorf("%s says %q", p.cmd.Path, line)
		}
	}
	if len(out) != n {
		return nil, fmt.Errorf("%s says %q", p.cmd.Path, line)
	}
	return out, nil
}

// end kills the process and waits for it. Again is harmless.
func (p *process) end() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}
