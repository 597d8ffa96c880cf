package arch

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The operator's page names each word that the program can say, and none that it
// cannot.
func TestOperationsPage(t *testing.T) {
	all := tree(t)
	page := readPage(t, "operations.md")
	for _, c := range []struct {
		what    string
		said    []string // by the program
		written []string // in the page
	}{
		{"reason", consts(all, "internal/core/reason"), page.words("Reasons", 0)},
		{"finding", findings(all), page.words("Findings", 0)},
		{"refusal", refusals(all), page.words("Requests that are refused", 0)},
		{"metric", metricNames(all), page.words("Metrics", 1)},
		{"sync state", elements(all, "internal/core/view", "syncNames"), page.words("Sync states", 0)},
	} {
		if len(c.said) < 5 {
			t.Errorf("only %d words of %s found in the sources: the search is broken", len(c.said), c.what)
		}
		for _, w := range c.said {
			if !slices.Contains(c.written, w) {
				t.Errorf("docs/operations.md does not tell of %s %q", c.what, w)
			}
		}
		for _, w := range c.written {
			if !slices.Contains(c.said, w) {
				t.Errorf("docs/operations.md tells of %s %q, which there is none", c.what, w)
			}
		}
	}
	for _, section := range []string{"Reasons", "Findings", "Metrics"} {
		for line := range strings.Lines(page[section]) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			if strings.HasPrefix(line, "| ") && (len(cells) != 3 || strings.TrimSpace(cells[2]) == "") {
				t.Errorf("docs/operations.md does not say what to do: %s", line)
			}
		}
	}
}

// The table of packages is that of the tree.
func TestArchitecturePage(t *testing.T) {
	written := readPage(t, "architecture.md").words("Packages", 0)
	var have []string
	for _, s := range tree(t) {
		if strings.HasPrefix(s.pkg, "internal/") || strings.HasPrefix(s.pkg, "cmd/") {
			have = append(have, s.pkg)
		}
	}
	slices.Sort(have)
	have = slices.Compact(have)
	slices.Sort(written)
	if !slices.Equal(have, written) {
		t.Errorf("docs/architecture.md has the packages\n%v, the tree\n%v", written, have)
	}
}

// The import order that pages tell is the one that is held.
func TestOrderTold(t *testing.T) {
	all := tree(t)
	var groups []string
	for _, layer := range layers {
		var names []string
		for _, pkg := range layer {
			if slices.ContainsFunc(all, func(s *source) bool { return s.pkg == pkg }) {
				names = append(names, strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(pkg, "/eppctl"), "internal/"), "core/"))
			}
		}
		if len(names) > 0 {
			groups = append(groups, strings.Join(names, ", "))
		}
	}
	order := strings.Join(groups, " < ")
	for _, path := range []string{"docs/architecture.md", "internal/core/doc.go"} {
		text, err := os.ReadFile(filepath.Join("..", "..", path))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), order+"\n") {
			t.Errorf("%s does not have the import order:\n%s", path, order)
		}
	}
}

// page is a document cut at its headings.
type page map[string]string

func readPage(t *testing.T, name string) page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	p := page{}
	for _, part := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(part, "\n")
		p[title] = body
	}
	return p
}

var (
	code    = regexp.MustCompile("`([^`]+)`")
	reserve = regexp.MustCompile("(?m)^`.* reserved")
)

// words lists what stands in backquotes in one column of a section's tables, and
// in a line that calls its words reserved.
func (p page) words(section string, column int) (words []string) {
	take := func(text string) {
		for _, m := range code.FindAllStringSubmatch(text, -1) {
			words = append(words, m[1])
		}
	}
	for line := range strings.Lines(p[section]) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		switch {
		case strings.HasPrefix(line, "|") && column < len(cells):
			take(cells[column])
		case reserve.MatchString(line):
			take(line)
		}
	}
	return words
}

// inspect visits every node of a folder's files that are no tests.
func inspect(all []*source, folder string, visit func(n ast.Node)) {
	for _, s := range all {
		if s.pkg == folder && !s.test {
			ast.Inspect(s.ast, func(n ast.Node) bool {
				visit(n)
				return true
			})
		}
	}
}

// literal is the text of a string literal, "" for anything else.
func literal(e ast.Expr) string {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
		s, _ := strconv.Unquote(l.Value) // the parser accepted it
		return s
	}
	return ""
}

// consts are the texts of a package's constants.
func consts(all []*source, folder string) (words []string) {
	inspect(all, folder, func(n ast.Node) {
		if v, ok := n.(*ast.ValueSpec); ok {
			for _, e := range v.Values {
				if w := literal(e); w != "" {
					words = append(words, w)
				}
			}
		}
	})
	return words
}

// elements are the texts of a list that a variable holds.
func elements(all []*source, folder, variable string) (words []string) {
	inspect(all, folder, func(n ast.Node) {
		v, ok := n.(*ast.ValueSpec)
		if !ok || v.Names[0].Name != variable {
			return
		}
		for _, e := range v.Values[0].(*ast.CompositeLit).Elts {
			words = append(words, literal(e))
		}
	})
	return words
}

// findings are the codes of check that are no reasons: of literals of a Finding,
// and of calls that make one.
func findings(all []*source) (words []string) {
	add := func(e ast.Expr) {
		if w := literal(e); w != "" {
			words = append(words, w)
		}
	}
	for _, folder := range []string{"internal/core/feed", "internal/inspect/check"} {
		inspect(all, folder, func(n ast.Node) {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if name := typeName(n.Type); name != "Finding" && name != "" { // elided in a list of them
					return
				}
				for i, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok && typeName(kv.Key) == "Code" {
						add(kv.Value)
					} else if !ok && i == 1 && typeName(n.Type) == "Finding" {
						add(e)
					}
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) > 1 && (f.Sel.Name == "report" || f.Sel.Name == "fill") {
					add(n.Args[1])
				}
			}
		})
	}
	return words
}

// typeName is the last part of a name: "Finding" of feed.Finding.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// refusals are the codes of OpenAI's error object that serve or prompt give.
func refusals(all []*source) (words []string) {
	for _, folder := range []string{"internal/serve", "internal/core/prompt"} {
		inspect(all, folder, func(n ast.Node) {
			l, ok := n.(*ast.CompositeLit)
			if !ok {
				return
			}
			if id, ok := l.Type.(*ast.Ident); !ok || id.Name != "refusal" && id.Name != "Problem" {
				return
			}
			for _, e := range l.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok && kv.Key.(*ast.Ident).Name == "Code" && literal(kv.Value) != "" {
					words = append(words, literal(kv.Value))
				}
			}
		})
	}
	// Set on a refusal that another one was made of.
	inspect(all, "internal/serve", func(n ast.Node) {
		a, ok := n.(*ast.AssignStmt)
		if !ok || len(a.Lhs) != len(a.Rhs) {
			return
		}
		for i, l := range a.Lhs {
			if sel, ok := l.(*ast.SelectorExpr); ok && sel.Sel.Name == "Code" && literal(a.Rhs[i]) != "" {
				words = append(words, literal(a.Rhs[i]))
			}
		}
	})
	slices.Sort(words)
	return slices.Compact(words)
}

// metricNames are the first arguments of the functions by which serve makes its
// metrics, without the prefix that those add.
func metricNames(all []*source) (names []string) {
	constants := map[string]string{}
	inspect(all, "internal/serve", func(n ast.Node) {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Names) == len(v.Values) {
			for i, e := range v.Values {
				constants[v.Names[i].Name] = literal(e)
			}
		}
	})
	inspect(all, "internal/serve", func(n ast.Node) {
		c, ok := n.(*ast.CallExpr)
		if !ok || len(c.Args) < 2 {
			return
		}
		f, ok := c.Fun.(*ast.Ident)
		if !ok || !slices.Contains([]string{"desc", "count", "histogram", "total"}, f.Name) {
			return
		}
		name := literal(c.Args[0])
		if id, ok := c.Args[0].(*ast.Ident); ok {
			name = constants[id.Name]
		}
		if name != "" {
			names = append(names, name)
		}
	})
	slices.Sort(names)
	return slices.Compact(names)
}
