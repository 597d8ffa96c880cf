package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/eppctl/eppctl"

// source is one parsed Go file.
type source struct {
	path string // from the root of the module: "internal/core/pod/id.go"
	pkg  string // its folder
	test bool
	fset *token.FileSet
	ast  *ast.File
}

// at is where a node stands.
func (s *source) at(n ast.Node) string {
	return s.path + ":" + strconv.Itoa(s.fset.Position(n.Pos()).Line)
}

// imports returns path -> the name the file uses for it.
func (s *source) imports() map[string]string {
	m := map[string]string{}
	for _, i := range s.ast.Imports {
		p, _ := strconv.Unquote(i.Path.Value) // the parser accepted it
		m[p] = path.Base(p)
		if i.Name != nil {
			m[p] = i.Name.Name
		}
	}
	return m
}

// own cuts an import path of this module down to its folder.
func own(importPath string) (folder string, ok bool) {
	return strings.CutPrefix(importPath, module+"/")
}

// calls visits every use of pkg.Name of an imported package.
func (s *source) calls(importPath string, visit func(name string, n ast.Node)) {
	local, imported := s.imports()[importPath]
	if !imported {
		return
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == local && id.Obj == nil {
				visit(sel.Sel.Name, n)
			}
		}
		return true
	})
}

func parse(t *testing.T, name, text string) *source {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return &source{path: name, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), fset: fset, ast: f}
}

// tree parses every Go file of the module.
func tree(t *testing.T) []*source {
	t.Helper()
	root := filepath.Join("..", "..")
	var all []*source
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" && name != "internal/testdata" || name == "out") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		all = append(all, parse(t, filepath.ToSlash(name), string(text)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
