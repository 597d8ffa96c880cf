package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/eppctl/eppctl/internal/inspect/out"
)

func config(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "eppctl.yaml")
	text := `
models: [{name: llama, aliases: [gpt], adapters: [sql]}]
pods:
- {name: vllm-0, address: '10.0.0.7:8000'}
- {name: vllm-1, address: '[fd00::1]:8000'}
`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCompletion(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	live := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.String() {
		case "/v1/names?kind=model":
			_, _ = w.Write([]byte(`{"kind":"Names","names":[{"name":"llama-live","state":"ready"}]}`))
		case "/v1/names?kind=pod":
			_, _ = w.Write([]byte(`{"kind":"Names","names":[{"name":"a.ns","state":"ok"},{"name":"b","state":"down"}]}`))
		case "/v1/picks?limit=20":
			_, _ = w.Write([]byte(`{"picks":[{"request_id":"r2","model":"m","pod":"a"},{"request_id":"two words"},{"request_id":"r1","model":"m","pod":null}]}`))
		case "/v1/state":
			_, _ = w.Write([]byte(`{"pods":[{"name":"a","addr":"10.0.0.1:8000","state":"ok"},{"name":"b","addr":""}]}`))
		default:
			http.NotFound(w, r)
		}
	}))
	defer live.Close()
	const noFiles = ":4\n"
	for name, tc := range map[string]struct {
		env  map[string]string
		args []string
		want string
	}{
		"models of a running serve": {map[string]string{"EPPCTL_ADDR": live.Listener.Addr().String()}, []string{"explain", "--model", ""}, "llama-live\tready\n" + noFiles},
		"models of the file":        {map[string]string{"EPPCTL_CONFIG": config(t), "EPPCTL_ADDR": "127.0.0.1:1"}, []string{"explain", "--model", ""}, "llama\ngpt\nsql\n" + noFiles},
		"request ids":               {map[string]string{"EPPCTL_ADDR": live.Listener.Addr().String()}, []string{"explain", "--request-id", ""}, "r2\tm to a\nr1\tm\n:36\n"},
		"request ids, no serve":     {map[string]string{"EPPCTL_ADDR": "127.0.0.1:1"}, []string{"explain", "--request-id", ""}, ":36\n"},
		"live addresses":            {nil, []string{"explain", "--addr", live.Listener.Addr().String(), "--subset", ""}, "10.0.0.1:8000\ta ok\n" + noFiles},
		"a second address":          {nil, []string{"explain", "--addr", live.Listener.Addr().String(), "--subset", "h:1,"}, "h:1,10.0.0.1:8000\ta ok\n" + noFiles},
		"addresses of the file":     {map[string]string{"EPPCTL_CONFIG": config(t), "EPPCTL_ADDR": "127.0.0.1:1"}, []string{"explain", "--subset", ""}, "10.0.0.7:8000\tvllm-0\n[fd00::1]:8000\tvllm-1\n" + noFiles},
		"pods":                      {nil, []string{"check", "--config", config(t), ""}, "vllm-0\t10.0.0.7:8000\nvllm-1\t[fd00::1]:8000\n" + noFiles},
		"pods of a running serve":   {nil, []string{"explain", "--addr", live.Listener.Addr().String(), "--without", ""}, "a.ns\tok\nb\tdown\n" + noFiles},
		"pods of the file":          {map[string]string{"EPPCTL_CONFIG": config(t), "EPPCTL_ADDR": "127.0.0.1:1"}, []string{"explain", "--without", ""}, "vllm-0\t10.0.0.7:8000\nvllm-1\t[fd00::1]:8000\n" + noFiles},
		"pods to suppose of":        {nil, []string{"explain", "--addr", live.Listener.Addr().String(), "--set", ""}, "a.ns.\nb.\n:6\n"},
		"pods that tap asks":        {map[string]string{"EPPCTL_CONFIG": config(t), "EPPCTL_ADDR": live.Listener.Addr().String()}, []string{"tap", "--pod", ""}, "vllm-0\t10.0.0.7:8000\nvllm-1\t[fd00::1]:8000\n" + noFiles},
		"pods that serve knows":     {map[string]string{"EPPCTL_CONFIG": config(t), "EPPCTL_ADDR": live.Listener.Addr().String()}, []string{"tap", "--from", "serve", "--pod", ""}, "a.ns\tok\nb\tdown\n" + noFiles},
		"pods, serve is away":       {map[string]string{"EPPCTL_CONFIG": config(t), "EPPCTL_ADDR": "127.0.0.1:1"}, []string{"tap", "--from", "serve", "--pod", ""}, "vllm-0\t10.0.0.7:8000\nvllm-1\t[fd00::1]:8000\n" + noFiles},
		"formats":                   {nil, []string{"explain", "-o", ""}, "table\nwide\njson\nyaml\n" + noFiles},
		"variants":                  {nil, []string{"envoy-config", "--variant", ""}, "override-host\noriginal-dst\noriginal-dst-header\n" + noFiles},
		"UX-24 a hung admin port":   {map[string]string{"EPPCTL_ADDR": silent.Addr().String(), "EPPCTL_CONFIG": "/nowhere"}, []string{"explain", "--model", ""}, noFiles},
		"no serve, broken file":     {map[string]string{"EPPCTL_ADDR": "127.0.0.1:1", "EPPCTL_CONFIG": "/dev/null/x"}, []string{"explain", "--model", ""}, noFiles},
	} {
		t.Run(name, func(t *testing.T) {
			// On a busy machine serve may answer too late for one TAB.
			eventuallyOK(t, name, func() error {
				code, text, _ := try(nil, tc.env, append([]string{"__complete"}, tc.args...)...)
				if code != exitOK || text != tc.want {
					return fmt.Errorf("code %d, got:\n%swant:\n%s", code, text, tc.want)
				}
				return nil
			})
		})
	}
}

// TestCompleteSuppositions: behind a pod's dot its inputs, and weights by key and term.
func TestCompleteSuppositions(t *testing.T) {
	env := map[string]string{"EPPCTL_CONFIG": config(t), "EPPCTL_ADDR": "127.0.0.1:1"}
	_, text, _ := try(nil, env, "__complete", "explain", "--set", "vllm-0.")
	for _, name := range []string{"vllm-0.queue=\trequests before their first token", "vllm-0.kv_usage=", "vllm-1."} {
		if !strings.Contains(text, name) {
			t.Errorf("%q is missing in\n%s", name, text)
		}
	}
	_, text, _ = try(nil, env, "__complete", "explain", "--weight", "")
	for _, name := range []string{"kv=\n", "alpha=\n", "breaker.depth=\n"} {
		if !strings.Contains(text, name) {
			t.Errorf("%q is missing in\n%s", name, text)
		}
	}
}

// TestEveryEnumCompletes: a flag whose help lists values offers them.
func TestEveryEnumCompletes(t *testing.T) {
	for _, args := range [][]string{
		{"serve", "--log-level"}, {"serve", "--log-format"}, {"serve", "--request-body-mode"}, {"serve", "--end-signal"},
		{"check", "--fail-on"}, {"check", "-o"}, {"version", "-o"}, {"sim", "--engine"}, {"envoy-config", "--body"}, {"version", "--color"},
	} {
		_, text, _ := try(nil, nil, append(append([]string{"__complete"}, args...), "")...)
		if lines := strings.Split(strings.TrimSpace(text), "\n"); len(lines) < 3 || lines[len(lines)-1] != ":4" {
			t.Errorf("%v completes to %q", args, text)
		}
	}
}

// TestFileNames: a shell offers the names of files where a flag takes one, and nowhere
// else; and beside a flag what it is for, without the quotes of the help.
func TestFileNames(t *testing.T) {
	files := 0
	everyCommand(newRoot(&app{streams: &out.Streams{}, getenv: func(string) string { return "" }}), func(cmd *cobra.Command) {
		args := append([]string{"__complete"}, strings.Fields(cmd.CommandPath())[1:]...)
		if _, text, _ := try(nil, nil, append(args, "--")...); strings.Contains(text, "`") {
			t.Errorf("%s: quotes in\n%s", cmd.CommandPath(), text)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			name, _ := pflag.UnquoteUsage(f)
			takesOne := slices.Contains([]string{"FILE", "DIR", "BINARY"}, name)
			if takesOne {
				files++
			}
			if f.NoOptDefVal != "" || f.Hidden { // it takes no value, or nobody is told of it
				return
			}
			_, text, _ := try(nil, map[string]string{"EPPCTL_ADDR": "127.0.0.1:1", "EPPCTL_CONFIG": "/nowhere"}, append(args, "--"+f.Name, "")...)
			lines := strings.Split(strings.TrimSpace(text), "\n")
			last := lines[len(lines)-1]
			if n, err := strconv.Atoi(strings.TrimPrefix(last, ":")); err != nil || takesOne == (cobra.ShellCompDirective(n)&cobra.ShellCompDirectiveNoFileComp != 0) {
				t.Errorf("%s --%s (%s): %q", cmd.CommandPath(), f.Name, name, last)
			}
		})
	})
	if files < 20 {
		t.Errorf("only %d flags take a file", files)
	}
}
