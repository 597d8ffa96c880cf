package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/eppctl/eppctl/internal/testdata"
)

// program is the real main, run in a process of its own by the scripts.
func program() int { return run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv) }

func TestMain(m *testing.M) {
	if os.Args[0] != "eppctl" {
		// Where the tests run under nohup, what they start would ignore a hang-up too:
		// only a signal that is caught here is not ignored there.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	os.Exit(testscript.RunMain(m, map[string]func() int{"eppctl": program}))
}

// TestScripts runs the command line as a user does. Besides testscript's own
// commands there are
//
//	status N CMD…     run CMD and want exit code N
//	await FILE        wait until FILE exists
//	eventually CMD…   run CMD until it succeeds
//	signal SIG WORD   send INT, TERM or HUP to the background eppctl with that argument
func TestScripts(t *testing.T) {
	closed := testdata.Deaf(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("CLOSED", closed)
			return mute(env)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": status, "await": await, "eventually": eventually, "signal": sendSignal,
		},
	})
}

// mute sets SILENT, the address of a server that never answers. It makes the file
// asked when somebody connects.
func mute(env *testscript.Env) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			_ = os.WriteFile(filepath.Join(env.WorkDir, "asked"), nil, 0o644)
		}
	}()
	env.Defer(func() { l.Close(); <-ended })
	env.Setenv("SILENT", l.Addr().String())
	return nil
}

func status(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	if err != nil || neg || len(args) < 2 {
		ts.Fatalf("usage: status N command...")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// patience bounds the waiting in scripts; it is never reached in a good run.
const patience = 2 * time.Minute

func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: await FILE")
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
	}
	ts.Fatalf("%s never came", args[0])
}

func eventually(ts *testscript.TestScript, neg bool, args []string) {
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err = ts.Exec(args[0], args[1:]...); (err == nil) != neg {
			return
		}
	}
	ts.Fatalf("never so: %v", err)
}

func sendSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}
	if neg || len(args) != 2 || signals[args[0]] == nil {
		ts.Fatalf("usage: signal INT|TERM|HUP ARGUMENT")
	}
	for _, cmd := range ts.BackgroundCmds() {
		if slices.Contains(cmd.Args, args[1]) {
			ts.Check(cmd.Process.Signal(signals[args[0]]))
			return
		}
	}
	ts.Fatalf("no eppctl with %s is running", args[1])
}
