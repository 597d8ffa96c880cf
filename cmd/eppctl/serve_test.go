package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/eppctl/eppctl/internal/serve"
)

// TestServeOverrides: UX-13: only what was said on the command line, or by the
// environment, changes the file.
func TestServeOverrides(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var got *serve.Config
	var opts serve.Options
	a := &app{getenv: func(name string) string { return map[string]string{"EPPCTL_METRICS_ADDR": "127.0.0.1:7"}[name] }}
	a.streams = streams(t)
	cmd := newServe(a, func(_ context.Context, c *serve.Config, o serve.Options) error {
		got, opts = c, o
		return nil
	})
	file := filepath.Join(t.TempDir(), "eppctl.yaml")
	if err := os.WriteFile(file, []byte("listen: {ext_proc: ':1', health: ':2', metrics: ':3'}\nstrict_models: true\npods: [{address: 'h:1'}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd.SetContext(t.Context())
	if err := cmd.ParseFlags([]string{"--config", file, "--health-addr", "127.0.0.1:8", "--drain-timeout", "3s", "--fallbacks", "2", "--record-decisions", "/tmp/a.eptap"}); err != nil {
		t.Fatal(err)
	}
	if err := bindEnv(cmd.Flags(), a.getenv); err != nil {
		t.Fatal(err)
	}
	if err := cmd.RunE(cmd, nil); err != nil {
		t.Fatal(err)
	}
	want := serve.Listen{ExtProc: ":1", Health: "127.0.0.1:8", Admin: "127.0.0.1:9004", Metrics: "127.0.0.1:7"}
	if got.Listen != want || !got.StrictModels || got.Drain != 3*time.Second || opts.Fallbacks != 2 || got.Decisions.File != "/tmp/a.eptap" {
		t.Errorf("listen %+v, strict %v, drain %v, fallbacks %d, decisions %+v", got.Listen, got.StrictModels, got.Drain, opts.Fallbacks, got.Decisions)
	}
}

// process is an eppctl serve of its own, with its log.
type process struct {
	cmd *exec.Cmd
	log *bufio.Scanner
}

func startServe(t *testing.T, args ...string) *process {
	t.Helper()
	file := filepath.Join(t.TempDir(), "eppctl.yaml")
	if err := os.WriteFile(file, []byte("pods: [{name: a, address: '127.0.0.1:1'}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	// The test binary is eppctl when it is called so.
	p := &process{cmd: &exec.Cmd{Path: os.Args[0], Env: os.Environ()}}
	p.cmd.Args = append([]string{"eppctl", "serve", "--config", file, "--log-format", "json", "--ext-proc-addr", "127.0.0.1:0",
		"--health-addr", "", "--admin-addr", "", "--metrics-addr", ""}, args...)
	p.start(t)
	return p
}

func (p *process) start(t *testing.T) {
	t.Helper()
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.log = bufio.NewScanner(stderr)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
}

// line reads the log up to a message and returns its fields.
func (p *process) line(t *testing.T, msg string) map[string]any {
	t.Helper()
	for p.log.Scan() {
		var fields map[string]any
		if json.Unmarshal(p.log.Bytes(), &fields) == nil && fields["msg"] == msg {
			return fields
		}
		t.Log(p.log.Text())
	}
	t.Fatalf("the log ended without %q", msg)
	return nil
}

// wait returns the exit code.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	for p.log.Scan() {
		t.Log(p.log.Text())
	}
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// openStream begins a request whose body never comes.
func openStream(t *testing.T, addr string) extproc.ExternalProcessor_ProcessClient {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	stream, err := extproc.NewExternalProcessorClient(conn).Process(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	headers := &extproc.HttpHeaders{Headers: &corev3.HeaderMap{Headers: []*corev3.HeaderValue{
		{Key: ":method", RawValue: []byte("POST")}, {Key: ":path", RawValue: []byte("/v1/completions")},
	}}}
	if err := stream.Send(&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestHeaders{RequestHeaders: headers}}); err != nil {
		t.Fatal(err)
	}
	return stream
}

// TestSecondSignal: UX-20: a drain may be cut short.
func TestSecondSignal(t *testing.T) {
	p := startServe(t, "--drain-timeout", "10m", "--request-body-mode", "buffered")
	stream := openStream(t, p.line(t, "listening")["ext_proc"].(string))
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err) // the answer to the headers: the stream is known to serve
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.line(t, "draining")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.line(t, "second signal: ending at once")
	if code := p.wait(t); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	if _, err := stream.Recv(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v, want it cut", err)
	}
}

func TestFirstSignal(t *testing.T) {
	p := startServe(t)
	p.line(t, "listening")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}
