package arch

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// breach is a place where a rule does not hold.
type breach struct{ rule, at, text string }

func (b breach) String() string { return fmt.Sprintf("%s: %s: %s", b.at, b.rule, b.text) }

// rules are checked over all sources at once.
var rules = []func([]*source) []breach{order, pure, walls, endings, mainFile, fuzzed, described}

func check(all []*source) []breach {
	var out []breach
	for _, rule := range rules {
		out = append(out, rule(all)...)
	}
	return out
}

// layers is the import order: a package may use what stands in a group above its
// own. New packages must be placed here on purpose.
var layers = [][]string{
	{"internal/core/reason", "internal/core/spelling", "internal/core/pod", "internal/core/block", "internal/core/pyjson"},
	{"internal/core/event", "internal/core/telemetry", "internal/core/tokenizer", "internal/core/recording", "internal/core/chat"},
	{"internal/core/prompt", "internal/core/encode", "internal/core/index", "internal/core/affinity", "internal/core/parity"},
	{"internal/core/view"},
	{"internal/core/pick"},
	{"internal/core/flow"},
	{"internal/core/feed"},
	{"internal/modelsource", "internal/recorder"},
	{"internal/serve", "internal/inspect"},
	{"cmd/eppctl"},
}

// layer returns the group of a folder and the layered package it belongs to.
func layer(folder string) (rank int, pkg string) {
	for i, group := range layers {
		for _, p := range group {
			if folder == p || strings.HasPrefix(folder, p+"/") {
				return i, p
			}
		}
	}
	return -1, ""
}

// order: ST-01, ST-02, ST-05, ST-06. Tests may look anywhere.
func order(all []*source) []breach {
	var out []breach
	for _, s := range all {
		rank, from := layer(s.pkg)
		if strings.HasPrefix(s.pkg, "internal/core/") && rank < 0 {
			out = append(out, breach{"ST-01", s.path, "package " + s.pkg + " has no place in the import order"})
		}
		if s.test {
			continue
		}
		for imp := range s.imports() {
			to, ours := own(imp)
			if !ours {
				continue
			}
			toRank, toPkg := layer(to)
			switch {
			case under(to, "internal/sim"):
				if !under(s.pkg, "internal/sim") && !under(s.pkg, "scripts") && s.path != "cmd/eppctl/sim.go" {
					out = append(out, breach{"ST-05", s.path, "imports " + to + ", which is for the sim command, tests and scripts"})
				}
			case to == "internal/testdata" || to == "internal/arch":
				out = append(out, breach{"ST-05", s.path, "imports " + to + ", which is for tests"})
			case under(s.pkg, "internal/sim"):
				if !under(to, "internal/core") && to != "internal/report" {
					out = append(out, breach{"ST-05", s.path, "the simulator imports " + to + ", which is not core"})
				}
			case from == toPkg && from != "":
			case under(from, "internal/serve") && under(to, "internal/inspect"), under(from, "internal/inspect") && under(to, "internal/serve"):
				out = append(out, breach{"ST-06", s.path, "imports " + to + ": serve and inspect never meet"})
			case toPkg == "internal/core/feed" && rank >= 0 && rank <= toRank:
				out = append(out, breach{"ST-02", s.path, "imports feed, which only serve and inspect may"})
			case rank >= 0 && (toRank < 0 || toRank >= rank):
				out = append(out, breach{"ST-01", s.path, "imports " + to + ", which does not stand left of " + from})
			}
		}
	}
	return out
}

func under(folder, root string) bool { return folder == root || strings.HasPrefix(folder, root+"/") }

// isPure reports whether a folder belongs to the part of core that opens
// nothing, reads no clock and leaves nothing running.
func isPure(folder string) bool {
	return under(folder, "internal/core") && !under(folder, "internal/core/feed")
}

// edges are imports that do something to the world.
var edges = []string{"net", "os", "log", "syscall", "github.com/go-zeromq/zmq4", "google.golang.org/grpc", "github.com/envoyproxy/go-control-plane"}

// clocks are the functions of package time that read or wait for the clock.
var clocks = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// hugepages tells the kernel where large tables may lie: it reads and changes nothing
// that a result depends on.
const hugepages = "internal/core/tokenizer/bpe/hugepages_linux.go"

// deadline asks how long a context lasts, as contexts do by themselves: a search by a
// pattern takes a time and no context.
const deadline = "internal/core/tokenizer/split/deadline.go"

// pure: ST-03, ST-04.
func pure(all []*source) []breach {
	var out []breach
	for _, s := range all {
		if s.test || !isPure(s.pkg) {
			continue
		}
		for imp := range s.imports() {
			if s.path == hugepages && imp == "syscall" {
				continue
			}
			if imp != "net/netip" && imp != "net/url" && slices.ContainsFunc(edges, func(e string) bool { return under(imp, e) }) {
				out = append(out, breach{"ST-03", s.path, "imports " + imp})
			}
		}
		s.calls("time", func(name string, n ast.Node) {
			if slices.Contains(clocks, name) && !(s.path == deadline && name == "Until") {
				out = append(out, breach{"ST-04", s.at(n), "calls time." + name})
			}
		})
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				out = append(out, breach{"ST-04", s.at(g), "starts a goroutine"})
			}
			return true
		})
	}
	return out
}

// quiet must be initialised before os/exec, hence before any package that runs a
// program: it says itself why that holds.
const quiet = "internal/inspect/top/quiet"

// walls: packages and libraries that only some may use. ST-07, ST-08, and the
// promises of single packages.
func walls(all []*source) []breach {
	var out []breach
	for _, w := range []struct {
		rule, what string
		who        []string
	}{
		{"ST-07", "charm.land", []string{"internal/inspect/top"}},
		{"ST-07", "github.com/charmbracelet", []string{"internal/inspect/top"}},
		{"ST-08", "github.com/envoyproxy/go-control-plane", []string{"internal/serve", "internal/sim"}},
		{"ST-08", "google.golang.org/grpc", []string{"internal/serve", "internal/sim"}},
		{"wall", "github.com/go-zeromq/zmq4", []string{"internal/core/feed", "internal/sim"}},
		{"wall", "github.com/spf13", []string{"cmd/eppctl"}},
		{"wall", "github.com/ardanlabs/jinja", []string{"internal/core/chat/jinja2"}},
	} {
		for _, s := range all {
			for imp := range s.imports() {
				if !s.test && under(imp, w.what) && !slices.ContainsFunc(w.who, func(f string) bool { return under(s.pkg, f) }) {
					out = append(out, breach{w.rule, s.path, "imports " + imp})
				}
			}
		}
	}
	for _, s := range all {
		for imp := range s.imports() {
			to, ours := own(imp)
			switch {
			case s.test:
			case (s.pkg == "internal/core/index" || s.pkg == "internal/core/pick") && (to == "internal/core/tokenizer" || to == "internal/core/prompt"):
				out = append(out, breach{"wall", s.path, "imports " + to + ": matching does not care where keys come from"})
			case s.pkg == "internal/core/reason":
				out = append(out, breach{"wall", s.path, "imports " + imp + ", but reason imports nothing"})
			case s.pkg == quiet && (imp != "os" || module+"/"+quiet > "os/exec"):
				out = append(out, breach{"wall", s.path, "imports " + imp + ", but nothing may come before quiet"})
			case s.pkg == "internal/core/tokenizer" && ours && to != "internal/core/pyjson":
				out = append(out, breach{"wall", s.path, "imports " + to + ", but the tokenizer knows nothing of ours but pyjson"})
			}
		}
	}
	return out
}

// endings: ST-18. A developer's script is a main of its own.
func endings(all []*source) []breach {
	var out []breach
	for _, s := range all {
		if s.test || !under(s.pkg, "internal") {
			continue
		}
		s.calls("os", func(name string, n ast.Node) {
			if name == "Exit" {
				out = append(out, breach{"ST-18", s.at(n), "calls os.Exit"})
			}
		})
		s.calls("log", func(name string, n ast.Node) {
			if strings.HasPrefix(name, "Fatal") || strings.HasPrefix(name, "Panic") {
				out = append(out, breach{"ST-18", s.at(n), "calls log." + name})
			}
		})
	}
	return out
}

// mainFile: ST-17: main.go holds main, and main holds three statements at most.
func mainFile(all []*source) []breach {
	var out []breach
	for _, s := range all {
		if s.path != "cmd/eppctl/main.go" {
			continue
		}
		for _, d := range s.ast.Decls {
			f, isFunc := d.(*ast.FuncDecl)
			switch {
			case isFunc && f.Name.Name == "main" && len(f.Body.List) <= 3:
			case isFunc:
				out = append(out, breach{"ST-17", s.at(d), "func " + f.Name.Name + " is more than three lines of main"})
			case d.(*ast.GenDecl).Tok.String() != "import":
				out = append(out, breach{"ST-17", s.at(d), "main.go declares more than main"})
			}
		}
	}
	return out
}

// fuzzed: ST-13: an exported function that takes bytes from outside apart is
// named in a test file of its package that holds a fuzz target.
func fuzzed(all []*source) []breach {
	seen := map[string]map[string]bool{} // package -> identifiers in files with fuzz targets
	for _, s := range all {
		if !s.test || !slices.ContainsFunc(s.ast.Decls, isFuzz) {
			continue
		}
		if seen[s.pkg] == nil {
			seen[s.pkg] = map[string]bool{}
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				seen[s.pkg][id.Name] = true
			}
			return true
		})
	}
	var out []breach
	for _, s := range all {
		if s.test || !under(s.pkg, "internal") {
			continue
		}
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && isParser(f) && !seen[s.pkg][f.Name.Name] {
				out = append(out, breach{"ST-13", s.at(f), "no fuzz target reaches " + f.Name.Name})
			}
		}
	}
	return out
}

func isFuzz(d ast.Decl) bool {
	f, ok := d.(*ast.FuncDecl)
	return ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz")
}

// isParser recognises Parse…, Decode… and the like over []byte or [][]byte.
func isParser(f *ast.FuncDecl) bool {
	verbs := []string{"Parse", "Decode", "Unmarshal"}
	if !f.Name.IsExported() || !slices.ContainsFunc(verbs, func(v string) bool { return strings.HasPrefix(f.Name.Name, v) }) {
		return false
	}
	return slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool { return isBytes(p.Type) })
}

func isBytes(e ast.Expr) bool {
	a, ok := e.(*ast.ArrayType)
	if !ok || a.Len != nil {
		return false
	}
	id, ok := a.Elt.(*ast.Ident)
	return ok && id.Name == "byte" || isBytes(a.Elt)
}

// described: ST-16, as far as a program can see: every package says what it is
// for, and every package with code has tests.
func described(all []*source) []breach {
	type facts struct{ doc, code, test bool }
	pkgs := map[string]*facts{}
	for _, s := range all {
		p := pkgs[s.pkg]
		if p == nil {
			p = &facts{}
			pkgs[s.pkg] = p
		}
		if s.test {
			p.test = true
			continue
		}
		p.doc = p.doc || s.ast.Doc != nil
		p.code = p.code || slices.ContainsFunc(s.ast.Decls, func(d ast.Decl) bool {
			f, ok := d.(*ast.FuncDecl)
			return ok && f.Body != nil
		})
	}
	var out []breach
	for name, p := range pkgs {
		if !p.doc && (p.code || !p.test) {
			out = append(out, breach{"ST-16", name, "the package has no comment"})
		}
		// internal/testdata is itself a part of the tests.
		if p.code && !p.test && name != "internal/testdata" {
			out = append(out, breach{"ST-16", name, "the package has no test"})
		}
	}
	return out
}
