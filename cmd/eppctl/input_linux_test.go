package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eppctl/eppctl/internal/testdata"
)

// A signal ends each command that reads stdin, though nobody writes to it any
// more.
func TestSignalWhileReading(t *testing.T) {
	for _, tc := range []struct {
		args, begin string
		want        int
	}{
		{"explain -f -", "{", exitInterrupted},
		{"explain --read - --token-ids 1", "\x89", exitInterrupted},
		{"replay --trace -", " ", exitInterrupted},
		{"tap --read -", "\x89", exitOK},
	} {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			t.Run(tc.args+" "+sig.String(), func(t *testing.T) {
				in, out, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer out.Close()
				var said testdata.Buffer
				cmd := &exec.Cmd{Path: os.Args[0], Args: append([]string{"eppctl"}, strings.Fields(tc.args)...), Stdin: in, Stdout: &said, Stderr: &said}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				in.Close()
				ended := make(chan error, 1)
				go func() { ended <- cmd.Wait() }()
				if _, err := out.WriteString(tc.begin); err != nil {
					t.Fatal(err)
				}
				eventuallyOK(t, "it reads", func() error {
					if n, err := unix.IoctlGetInt(int(out.Fd()), unix.TIOCINQ); n != 0 || err != nil {
						return fmt.Errorf("%d bytes wait, %v", n, err)
					}
					return nil
				})
				if err := cmd.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
				select {
				case <-ended:
				case <-time.After(patience):
					_ = cmd.Process.Kill()
					t.Fatalf("it reads on: %s", said.String())
				}
				if code := cmd.ProcessState.ExitCode(); code != tc.want {
					t.Errorf("exit code %d, want %d: %s", code, tc.want, said.String())
				}
			})
		}
	}
}
