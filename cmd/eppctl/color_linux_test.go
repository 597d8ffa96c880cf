package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// colour matches a sequence that sets a colour, whatever else it sets.
var colour = regexp.MustCompile(`\x1b\[[0-9;]*\b(3[0-8]|9[0-7])[0-9;]*m`)

// UX-03, UX-04, UX-05: the flag, then NO_COLOR, CLICOLOR_FORCE, CLICOLOR, and last what
// stdout is; of a table and of the screen of top alike.
func TestColourPrecedence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "eppctl.yaml")
	if err := os.WriteFile(file, []byte("pods: [{address: 'h:1'}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		env            []string
		flag           string
		terminal, pipe bool // is there colour
	}{
		{nil, "", true, false},
		{[]string{"TERM=dumb"}, "", false, false},
		{[]string{"NO_COLOR=1"}, "", false, false},
		{[]string{"NO_COLOR="}, "", true, false}, // empty is as if it were not there
		{[]string{"CLICOLOR=0"}, "", false, false},
		{[]string{"CLICOLOR=1"}, "", true, false}, // it allows, and forces nothing
		{[]string{"CLICOLOR_FORCE=1"}, "", true, true},
		{[]string{"CLICOLOR_FORCE=0"}, "", true, false},
		{[]string{"CLICOLOR_FORCE=1", "TERM=dumb"}, "", true, true},
		{[]string{"CLICOLOR=0", "CLICOLOR_FORCE=1"}, "", true, true},
		{[]string{"NO_COLOR=1", "CLICOLOR_FORCE=1"}, "", false, false},
		{[]string{"CI=1"}, "", true, false}, // a terminal is one, in CI too
		{[]string{"NO_COLOR=1"}, "always", true, true},
		{[]string{"CLICOLOR=0"}, "always", true, true},
		{[]string{"TERM=dumb"}, "always", true, true},
		{[]string{"CLICOLOR_FORCE=1"}, "never", false, false},
		{nil, "never", false, false},
		{[]string{"NO_COLOR=1"}, "auto", false, false},
		{[]string{"NO_COLOR=1", "EPPCTL_COLOR=always"}, "", true, true},
		{[]string{"EPPCTL_COLOR=always"}, "never", false, false},
	} {
		var flag []string
		if tc.flag != "" {
			flag = []string{"--color", tc.flag}
		}
		t.Run(strings.Join(append(tc.env, flag...), " "), func(t *testing.T) {
			table := append([]string{"check", "--config-only", "--config", file}, flag...)
			_, text := onTerminal(t, tc.env, table...).wait()
			holdColour(t, "on a terminal", text, tc.terminal)
			cmd := exec.Cmd{Path: os.Args[0], Args: append([]string{"eppctl"}, table...), Env: append([]string{"TERM=xterm-256color"}, tc.env...)}
			var errs bytes.Buffer
			cmd.Stderr = &errs
			piped, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, &errs)
			}
			holdColour(t, "on a pipe", string(piped), tc.pipe)
			if !slices.Contains(tc.env, "TERM=dumb") { // top refuses such a terminal
				holdColour(t, "in top", topScreen(t, tc.env, flag...), tc.terminal)
			}
		})
	}
}

func holdColour(t *testing.T, where, text string, want bool) {
	t.Helper()
	if text == "" {
		t.Errorf("%s: it says nothing", where)
	}
	if got := colour.MatchString(text); got != want {
		t.Errorf("%s: colour %v, want %v: %q", where, got, want, text)
	}
}

// topScreen is what top writes until it is told to end.
func topScreen(t *testing.T, env []string, flag ...string) string {
	t.Helper()
	s := onTerminal(t, env, append([]string{"top", "--addr", recordedAPI(t)}, flag...)...)
	eventuallyOK(t, "the screen", func() error {
		if text := s.out.String(); !strings.Contains(text, "LIVE") {
			return fmt.Errorf("%q", text)
		}
		return nil
	})
	if _, err := s.master.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	_, text := s.wait()
	return text
}
