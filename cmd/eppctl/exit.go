package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/serve"
)

// The exit codes, each with one meaning for all commands.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNegative    = 3
	exitUnreachable = 4
	exitIncomplete  = 5
	exitInterrupted = 130
)

// exitTable is the one list of codes: help and man pages print it.
var exitTable = []struct {
	code    int
	meaning string
}{
	{exitOK, "done"},
	{exitFailed, "failed while running"},
	{exitUsage, "wrong usage or configuration"},
	{exitNegative, "the answer is negative: no eligible pod, a difference, or check has findings"},
	{exitUnreachable, "serve or an engine cannot be reached in time"},
	{exitIncomplete, "incomplete, where that is an error"},
	{exitInterrupted, "interrupted"},
}

// kinds maps the errors of the inspect commands.
var kinds = map[inspect.Kind]int{
	inspect.Failed:      exitFailed,
	inspect.Usage:       exitUsage,
	inspect.Negative:    exitNegative,
	inspect.Unreachable: exitUnreachable,
	inspect.Incomplete:  exitIncomplete,
	inspect.Interrupted: exitInterrupted,
}

// finish reports err on stderr and returns the exit code.
func finish(err error, s *out.Streams, asJSON bool) int {
	var own *inspect.Error
	var config *serve.ConfigError
	var listen *serve.ListenError
	switch {
	case err == nil, errors.Is(err, syscall.EPIPE):
		return exitOK // a reader that has seen enough is no failure
	case errors.Is(err, errInterrupted):
		own = &inspect.Error{Kind: inspect.Interrupted, Code: "E_INTERRUPTED", What: "interrupted", Err: err}
	case errors.As(err, &own):
	case errors.As(err, &config):
		own = &inspect.Error{Kind: inspect.Usage, Code: "E_CONFIG", What: "the configuration cannot be used", Why: config.Error(), Err: err}
	case errors.As(err, &listen):
		own = &inspect.Error{Kind: inspect.Failed, Code: "E_LISTEN", What: err.Error(), Hint: listenHint(listen), Err: err}
	case errors.Is(err, context.Canceled):
		own = &inspect.Error{Kind: inspect.Interrupted, Code: "E_INTERRUPTED", What: "interrupted", Err: err}
	default:
		own = &inspect.Error{Kind: inspect.Failed, Code: "E_FAILED", What: err.Error(), Err: err}
	}
	code := kinds[own.Kind]
	if asJSON {
		writeJSONError(s.Err, own, code)
	} else {
		writeError(s.Err, own)
	}
	return code
}

// listenHint names the flag of an address that cannot be had.
func listenHint(e *serve.ListenError) string {
	flag := "--" + strings.ReplaceAll(strings.TrimPrefix(e.Key, "listen."), "_", "-") + "-addr"
	switch {
	case errors.Is(e, syscall.EADDRINUSE):
		return "try: " + flag + " with a free port, or end what has this one (ss -ltnp shows it)"
	case errors.Is(e, syscall.EACCES):
		return "try: " + flag + " with a port above 1023"
	}
	return "try: " + flag + ", or " + e.Key + " in the configuration"
}

// writeError prints what failed, why, and what to do.
func writeError(w io.Writer, e *inspect.Error) {
	first, more, _ := strings.Cut(e.What, "\n")
	fmt.Fprintf(w, "eppctl: %s\n", out.Clean(first))
	for _, part := range []string{more, e.Why, e.Hint} {
		for line := range strings.Lines(part) {
			fmt.Fprintf(w, "  %s\n", out.Clean(strings.TrimRight(line, "\n")))
		}
	}
}

func writeJSONError(w io.Writer, e *inspect.Error, code int) {
	b, err := json.Marshal(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Code       string `json:"code"`
		Message    string `json:"message"`
		Why        string `json:"why,omitempty"`
		Hint       string `json:"hint,omitempty"`
		Exit       int    `json:"exit"`
	}{"eppctl/v1", "Error", e.Code, e.What, e.Why, e.Hint, code})
	if err == nil {
		fmt.Fprintf(w, "%s\n", out.JSON(b))
	}
}
