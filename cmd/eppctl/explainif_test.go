package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// TestTyped: a suggested command asks the same serve the same question.
func TestTyped(t *testing.T) {
	var got []string
	a := &app{streams: out.NewStreams(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}, func(string) string { return "" }), getenv: func(string) string { return "" }}
	cmd := newExplain(a, func(_ context.Context, o *explainOptions) error {
		got = o.Typed
		return nil
	})
	cmd.SetArgs([]string{"-f", "x.json", "--model", "m 1", "--subset", "10.0.0.7:8000", "--path", "/v1/completions", "--header", "x-tenant=a", "--addr", "unix:/a", "--set", "a.queue=1"})
	want := []string{"--model 'm 1'", "--path /v1/completions", "--subset 10.0.0.7:8000", "--addr unix:/a", "--header x-tenant=a"}
	if err := cmd.ExecuteContext(t.Context()); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// TestConfigOf: the file is asked of serve, and is to be filled in where that is older
// than the question.
func TestConfigOf(t *testing.T) {
	for answer, want := range map[string]string{
		`{"kind":"Version","config":"/srv/my fleet.yaml"}`: "--config '/srv/my fleet.yaml'",
		`{"kind":"Version"}`: "--config FILE",
	} {
		api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, answer)
		})
		if got := configOf(inspect.NewLocalClient("serve", api))(t.Context()); got != want {
			t.Errorf("%s: %q, want %q", answer, got, want)
		}
	}
}
