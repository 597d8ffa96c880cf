package chaos

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/eppctl/eppctl/internal/core/block"
)

// The prompts all engines are asked for, see testdata/engine.py. Engines have
// the apps' heads in common, so that a block lost on one shows beside others
// that hold it.
const (
	prompts   = 200
	blocks    = 12 // per prompt
	trunk     = 4  // of these, shared by an app
	apps      = 8
	blockSize = 4   // tokens
	capacity  = 160 // blocks per engine, of 1632: it evicts all the time, and sees few of them again soon
)

// prompt is prompt p as testdata/engine.py numbers its tokens.
func prompt(p int) *block.Prompt {
	tokens := make([]uint32, 0, blocks*blockSize)
	for i := range blocks {
		owner := 1000 + p
		if i < trunk {
			owner = p % apps
		}
		tokens = append(tokens, uint32(owner), uint32(i), 7, 7)
	}
	return &block.Prompt{Model: model, Tokens: tokens, Cut: -1}
}

// truth is what an engine says of itself.
type truth struct {
	oldest   uint64 // batch in the replay buffer
	resident int    // blocks
	depths   []int  // blocks held from the start, per prompt
}

// engine is one process of testdata/engine.py. One goroutine at a time uses it.
type engine struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
	stderr strings.Builder
}

// startEngine starts a process; its sockets are not open yet.
func startEngine(args []string) (*engine, error) {
	e := &engine{cmd: exec.Command("python3", append([]string{
		"testdata/engine.py",
		"count=" + strconv.Itoa(prompts), "blocks=" + strconv.Itoa(blocks), "trunk=" + strconv.Itoa(trunk),
		"apps=" + strconv.Itoa(apps), "size=" + strconv.Itoa(blockSize), "capacity=" + strconv.Itoa(capacity),
	}, args...)...)}
	e.cmd.Stderr = &e.stderr
	in, err := e.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	e.in, e.out = in, bufio.NewScanner(out)
	return e, e.cmd.Start()
}

// do gives a command and returns the answer.
func (e *engine) do(format string, args ...any) (string, error) {
	line := fmt.Sprintf(format, args...)
	if _, err := io.WriteString(e.in, line+"\n"); err != nil {
		return "", fmt.Errorf("engine.py, %q: %w", line, err)
	}
	if !e.out.Scan() {
		e.kill()
		return "", fmt.Errorf("engine.py ended at %q: %s", line, &e.stderr)
	}
	return e.out.Text(), nil
}

func (e *engine) truth() (t truth, err error) {
	answer, err := e.do("truth")
	if err != nil {
		return t, err
	}
	var n []int
	for _, f := range strings.Fields(answer) {
		v, err := strconv.Atoi(f)
		if err != nil {
			return t, fmt.Errorf("engine.py, truth: %w", err)
		}
		n = append(n, v)
	}
	if len(n) != 2+prompts {
		return t, fmt.Errorf("engine.py, truth: %q", answer)
	}
	return truth{uint64(n[0]), n[1], n[2:]}, nil
}

// kill ends the process without a goodbye on its sockets. Again is harmless.
func (e *engine) kill() {
	e.cmd.Process.Kill()
	e.cmd.Wait()
}

func (e *engine) signal(s syscall.Signal) error { return e.cmd.Process.Signal(s) }

func needLibzmq(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("python3", "-c", "import zmq, msgpack").CombinedOutput(); err != nil {
		t.Fatalf("this test needs python3 with pyzmq and msgpack (`make test` brings them): %v\n%s", err, out)
	}
}
