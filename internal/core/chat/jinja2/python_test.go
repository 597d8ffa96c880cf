package jinja2

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// python is a process that renders with the real Jinja2.
type python struct {
	in  io.Writer
	out *bufio.Reader
}

type pythonJob struct {
	Template string `json:"template"`
	Now      string `json:"now"`
}

type pythonAnswer struct {
	Text    *string `json:"text"`
	Error   string  `json:"error"`
	Message string  `json:"message"`
}

func startPython(tb testing.TB) *python {
	tb.Helper()
	if out, err := exec.Command("python3", "-c", "import jinja2; assert jinja2.__version__ == '3.1.6', jinja2.__version__").CombinedOutput(); err != nil {
		tb.Fatalf("this test needs python3 with Jinja2 3.1.6 (`make test` brings it): %v\n%s", err, out)
	}
	cmd := exec.Command("python3", "testdata/jinja.py")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		tb.Fatal(err1, err2)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		in.Close() // ends the loop
		if err := cmd.Wait(); err != nil {
			tb.Errorf("jinja.py: %v\n%s", err, &stderr)
		}
	})
	return &python{in: in, out: bufio.NewReaderSize(out, 1<<20)}
}

func (p *python) render(tb testing.TB, template string, vars []byte, now time.Time) pythonAnswer {
	tb.Helper()
	job, err := json.Marshal(pythonJob{template, now.Format("2006-01-02T15:04:05")})
	if err != nil {
		tb.Fatal(err)
	}
	// The variables may be JSON to Python alone.
	job = fmt.Appendf(job[:len(job)-1], ",\"vars\":%s}\n", bytes.ReplaceAll(vars, []byte("\n"), []byte(" ")))
	if _, err := p.in.Write(job); err != nil {
		tb.Fatal(err)
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		tb.Fatal(err)
	}
	var a pythonAnswer
	if err := json.Unmarshal(line, &a); err != nil {
		tb.Fatal(err)
	}
	return a
}
