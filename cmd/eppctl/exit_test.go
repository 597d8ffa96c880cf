package main

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// TestExitCodes: UX-11: no code has two meanings, and every kind of error has one.
func TestExitCodes(t *testing.T) {
	seen := map[int]string{}
	for _, e := range exitTable {
		if other, taken := seen[e.code]; taken {
			t.Errorf("code %d means %q and %q", e.code, other, e.meaning)
		}
		seen[e.code] = e.meaning
	}
	used := map[int]bool{}
	for kind := inspect.Failed; kind <= inspect.Interrupted; kind++ {
		code, ok := kinds[kind]
		if !ok || seen[code] == "" || used[code] || code == exitOK {
			t.Errorf("kind %d has code %d", kind, code)
		}
		used[code] = true
	}
}

func try(stdout *brokenPipe, env map[string]string, args ...string) (code int, text, errs string) {
	var o, e bytes.Buffer
	getenv := func(name string) string { return env[name] }
	if stdout != nil {
		code = run(args, strings.NewReader(""), stdout, &e, getenv)
	} else {
		code = run(args, strings.NewReader(""), &o, &e, getenv)
	}
	return code, o.String(), e.String()
}

// brokenPipe is a stdout whose reader is gone.
type brokenPipe struct{}

func (*brokenPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// TestClosedPipe: UX-17: a reader that has seen enough is no failure.
func TestClosedPipe(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"envoy-config"}, {"version", "-o", "json"}} {
		if code, _, errs := try(&brokenPipe{}, nil, args...); code != exitOK || errs != "" {
			t.Errorf("%v: code %d, stderr %q", args, code, errs)
		}
	}
}

// TestPrecedence: a flag beats its variable.
func TestPrecedence(t *testing.T) {
	env := map[string]string{"EPPCTL_OUTPUT": "yaml", "EPPCTL_COLOR": "always"}
	if _, text, _ := try(nil, env, "version"); !strings.HasPrefix(text, "apiVersion: ") {
		t.Errorf("variable ignored: %s", text)
	}
	if _, text, _ := try(nil, env, "version", "-o", "json"); !strings.HasPrefix(text, `{"apiVersion"`) {
		t.Errorf("flag ignored: %s", text)
	}
	if code, _, errs := try(nil, map[string]string{"EPPCTL_FALLBACKS": "many"}, "envoy-config"); code != exitUsage || !strings.HasPrefix(errs, "eppctl: EPPCTL_FALLBACKS: found \"many\"; expected a whole number\n") {
		t.Errorf("bad variable: code %d, stderr %q", code, errs)
	}
}

func TestErrorText(t *testing.T) {
	var b bytes.Buffer
	writeError(&b, &inspect.Error{What: "what\x1b[2J", Why: "why one\nwhy two", Hint: "try: this"})
	want := "eppctl: what\\x1b[2J\n  why one\n  why two\n  try: this\n"
	if b.String() != want {
		t.Errorf("got %q", b.String())
	}
	if errors.Is(&inspect.Error{Err: syscall.EPIPE}, syscall.EPIPE) == false {
		t.Error("the cause is lost")
	}
}

func streams(t *testing.T) *out.Streams {
	t.Helper()
	return out.NewStreams(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}, nil)
}
