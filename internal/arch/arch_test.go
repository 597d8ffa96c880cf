package arch

import (
	"slices"
	"strings"
	"testing"
)

func TestArrows(t *testing.T) {
	all := tree(t)
	if len(all) < 50 {
		t.Fatalf("only %d files found: the walk is broken", len(all))
	}
	found := check(all)
	slices.SortFunc(found, func(a, b breach) int { return strings.Compare(a.String(), b.String()) })
	for _, b := range found {
		t.Error(b)
	}
}

// TestRulesCanFail feeds the same checker sources that break one rule each.
func TestRulesCanFail(t *testing.T) {
	imports := func(pkg, imp string) string { return "package " + pkg + "\nimport _ \"" + imp + "\"\n" }
	ours := func(pkg, folder string) string { return imports(pkg, module+"/"+folder) }
	for _, tc := range []struct {
		rule, path, text string
	}{
		{"ST-01", "internal/core/pod/x.go", ours("pod", "internal/core/pick")},
		{"ST-01", "internal/core/event/x.go", ours("event", "internal/core/telemetry")},
		{"ST-01", "internal/core/index/x.go", ours("index", "internal/core/view")},
		{"ST-01", "internal/core/pick/x.go", ours("pick", "internal/serve")},
		{"ST-01", "internal/core/novel/x.go", "package novel\n"},
		{"ST-01", "internal/serve/x.go", ours("serve", "internal/novel")},
		{"ST-02", "internal/core/view/x.go", ours("view", "internal/core/feed")},
		{"ST-03", "internal/core/index/x.go", imports("index", "os")},
		{"ST-03", "internal/core/event/x.go", imports("event", "net/http")},
		{"ST-03", "internal/core/view/x.go", imports("view", "log/slog")},
		{"ST-03", "internal/core/pick/x.go", imports("pick", "os/exec")},
		{"ST-03", "internal/core/pick/x.go", imports("pick", "google.golang.org/grpc/codes")},
		{"ST-04", "internal/core/pick/x.go", "package pick\nimport \"time\"\nvar _ = time.Now()\n"},
		{"ST-04", "internal/core/pick/x.go", "package pick\nimport t \"time\"\nfunc f() { t.Sleep(1) }\n"},
		{"ST-04", "internal/core/pick/x.go", "package pick\nimport \"time\"\nvar clock = time.Now\n"},
		{"ST-04", "internal/core/index/x.go", "package index\nfunc f() { go f() }\n"},
		{"ST-05", "internal/serve/x.go", ours("serve", "internal/sim")},
		{"ST-05", "internal/core/feed/x.go", ours("feed", "internal/sim/zmtp")},
		{"ST-05", "cmd/eppctl/serve.go", ours("main", "internal/sim")},
		{"ST-05", "internal/sim/x.go", ours("sim", "internal/serve")},
		{"ST-05", "internal/core/pick/x.go", ours("pick", "internal/testdata")},
		{"ST-06", "internal/serve/x.go", ours("serve", "internal/inspect/out")},
		{"ST-06", "internal/inspect/explain/x.go", ours("explain", "internal/serve")},
		{"ST-07", "internal/inspect/tap/x.go", imports("tap", "github.com/charmbracelet/bubbletea")},
		{"ST-07", "internal/inspect/out/x.go", imports("out", "charm.land/bubbletea/v2")},
		{"wall", "internal/inspect/top/quiet/x.go", imports("quiet", "strings")},
		{"ST-08", "internal/core/feed/x.go", imports("feed", "google.golang.org/grpc")},
		{"ST-08", "internal/inspect/x.go", imports("inspect", "github.com/envoyproxy/go-control-plane/envoy/config/core/v3")},
		{"ST-08", "cmd/eppctl/x.go", imports("main", "google.golang.org/grpc")},
		{"wall", "internal/core/index/x.go", ours("index", "internal/core/tokenizer")},
		{"wall", "internal/core/reason/x.go", imports("reason", "strings")},
		{"wall", "internal/core/tokenizer/x.go", ours("tokenizer", "internal/core/pod")},
		{"wall", "internal/serve/x.go", imports("serve", "github.com/go-zeromq/zmq4")},
		{"wall", "internal/inspect/x.go", imports("inspect", "github.com/spf13/cobra")},
		{"wall", "internal/core/chat/x.go", imports("chat", "github.com/ardanlabs/jinja")},
		{"ST-01", "internal/core/chat/x.go", ours("chat", "internal/core/prompt")},
		{"ST-13", "internal/core/event/x.go", "package event\nfunc ParseNew(b []byte) {}\n"},
		{"ST-13", "internal/core/event/x.go", "package event\ntype T struct{}\nfunc (T) Decode(n int, parts [][]byte) {}\n"},
		{"ST-16", "internal/novel/x.go", "package novel\nfunc F() {}\n"},
		{"ST-17", "cmd/eppctl/main.go", "package main\nfunc main() { a(); a(); a(); a() }\n"},
		{"ST-17", "cmd/eppctl/main.go", "package main\nfunc main() {}\nvar x = 1\n"},
		{"ST-18", "internal/serve/x.go", "package serve\nimport \"os\"\nfunc f() { os.Exit(1) }\n"},
		{"ST-18", "internal/inspect/x.go", "package inspect\nimport \"log\"\nfunc f() { log.Fatalf(\"x\") }\n"},
	} {
		t.Run(tc.rule+" "+tc.path, func(t *testing.T) {
			found := check([]*source{parse(t, tc.path, tc.text)})
			if !slices.ContainsFunc(found, func(b breach) bool { return b.rule == tc.rule }) {
				t.Errorf("not caught; found %v in\n%s", found, tc.text)
			}
		})
	}
}

// TestRulesAllow: what looks alike and is right.
func TestRulesAllow(t *testing.T) {
	doc := "// Package p is for this test.\n"
	for name, files := range map[string]map[string]string{
		"left of it":         {"internal/core/pick/x.go": doc + "package pick\nimport _ \"" + module + "/internal/core/view\"\n"},
		"netip":              {"internal/core/pod/x.go": doc + "package pod\nimport _ \"net/netip\"\n"},
		"time as a type":     {"internal/core/pick/x.go": doc + "package pick\nimport \"time\"\nvar d time.Duration = time.Second\n"},
		"another time":       {"internal/core/pick/x.go": doc + "package pick\nimport _ \"time\"\ntype c struct{ Now int }\nvar time c\nvar n = time.Now\n"},
		"clock in a test":    {"internal/core/pick/x_test.go": "package pick\nimport \"time\"\nvar _ = time.Now()\n"},
		"simulator in tests": {"internal/serve/x_test.go": "package serve\nimport _ \"" + module + "/internal/sim\"\n"},
		"the sim command":    {"cmd/eppctl/sim.go": doc + "package main\nimport _ \"" + module + "/internal/sim\"\n"},
		"feed by inspect":    {"internal/inspect/check/x.go": doc + "package check\nimport _ \"" + module + "/internal/core/feed\"\n"},
		"fuzzed": {
			"internal/core/event/x.go":      doc + "package event\nfunc ParseNew(b []byte) {}\n",
			"internal/core/event/x_test.go": "package event\nfunc FuzzParseNew(f *testing.F) { ParseNew(nil) }\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var all []*source
			for path, text := range files {
				all = append(all, parse(t, path, text))
			}
			if found := check(all); len(found) > 0 {
				t.Errorf("refused: %v", found)
			}
		})
	}
}
