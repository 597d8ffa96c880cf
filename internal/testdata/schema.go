package testdata

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Valid holds a JSON text against a schema of docs/schema.
func Valid(tb testing.TB, schema string, text []byte) {
	tb.Helper()
	s, err := jsonschema.NewCompiler().Compile(filepath.Join(repository(tb), "docs", "schema", schema))
	if err != nil {
		tb.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		tb.Fatalf("%v: %.200s", err, text)
	}
	if err := s.Validate(v); err != nil {
		tb.Errorf("not as docs/schema/%s has it: %v", schema, err)
	}
}

// repository is the root of the source tree that the test was built from.
func repository(tb testing.TB) string {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		tb.Fatal("the test does not know where it stands")
	}
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// Schema writes the JSON Schema of a type: every field that it has and no other, with
// the first sentences of its source's comments as descriptions. enums are the words that strings may
// be, by "Type.Field".
func Schema(tb testing.TB, title string, v any, enums map[string][]string) []byte {
	tb.Helper()
	g := &schemas{tb: tb, defs: map[string]any{}, comments: map[string]map[string]string{}, enums: enums}
	top := g.object(reflect.TypeOf(v))
	top["$schema"], top["title"], top["$defs"] = "https://json-schema.org/draft/2020-12/schema", title, g.defs
	for name := range enums {
		if !g.used[name] {
			tb.Errorf("%s: no such field", name)
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(top); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// schemas makes schemas of types that refer to each other.
type schemas struct {
	tb       testing.TB
	defs     map[string]any
	comments map[string]map[string]string // by package path: of "Type" and "Type.Field"
	enums    map[string][]string
	used     map[string]bool
}

// object describes a struct.
func (g *schemas) object(t reflect.Type) map[string]any {
	o := map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{}, "required": []string{}}
	if text := g.comment(t, t.Name()); text != "" {
		o["description"] = text
	}
	g.fields(t, o)
	return o
}

func (g *schemas) fields(t reflect.Type, o map[string]any) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.Tag.Get("json") == "" {
			g.fields(f.Type, o)
			continue
		}
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		s := g.value(f.Type, option == "omitempty")
		key := t.Name() + "." + f.Name
		if words := g.enums[key]; words != nil {
			s["enum"] = words
			if g.used == nil {
				g.used = map[string]bool{}
			}
			g.used[key] = true
			if f.Type.Kind() == reflect.Pointer && option != "omitempty" {
				s["enum"] = append(toAny(words), nil)
			}
		}
		if text := g.comment(t, key); text != "" {
			s["description"] = text
		}
		o["properties"].(map[string]any)[name] = s
		if option != "omitempty" {
			o["required"] = append(o["required"].([]string), name)
		}
	}
}

func toAny(words []string) (list []any) {
	for _, w := range words {
		list = append(list, w)
	}
	return list
}

// value describes a field. A pointer that is always written may be null; one that is
// left out when it is nil is never.
func (g *schemas) value(t reflect.Type, omitted bool) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		s := g.value(t.Elem(), omitted)
		switch {
		case omitted:
		case s["$ref"] != nil:
			return map[string]any{"anyOf": []any{s, map[string]any{"type": "null"}}}
		default:
			s["type"] = []any{s["type"], "null"}
		}
		return s
	case reflect.Struct:
		if _, ok := g.defs[t.Name()]; !ok {
			g.defs[t.Name()] = nil // it may refer to itself
			g.defs[t.Name()] = g.object(t)
		}
		return map[string]any{"$ref": "#/$defs/" + t.Name()}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": g.value(t.Elem(), false)}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": g.value(t.Elem(), false)}
	case reflect.Interface:
		return map[string]any{"type": []string{"string", "number", "boolean", "null"}}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	}
	g.tb.Fatalf("a field of kind %s has no schema", t.Kind())
	return nil
}

// comment is what the source says of a type or a field.
func (g *schemas) comment(t reflect.Type, key string) string {
	all, ok := g.comments[t.PkgPath()]
	if !ok {
		all = map[string]string{}
		_, folder, _ := strings.Cut(t.PkgPath(), "/eppctl/eppctl/")
		files, err := filepath.Glob(filepath.Join(repository(g.tb), folder, "*.go"))
		if err != nil || len(files) == 0 {
			g.tb.Fatalf("%s: no source: %v", t.PkgPath(), err)
		}
		for _, file := range files {
			g.read(file, all)
		}
		g.comments[t.PkgPath()] = all
	}
	return all[key]
}

func (g *schemas) read(file string, all map[string]string) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		g.tb.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		d, ok := n.(*ast.GenDecl)
		if !ok || d.Tok != token.TYPE {
			return true
		}
		for _, spec := range d.Specs {
			s := spec.(*ast.TypeSpec)
			st, ok := s.Type.(*ast.StructType)
			if !ok {
				continue
			}
			all[s.Name.Name] = sentence(d.Doc)
			for _, field := range st.Fields.List {
				for _, name := range field.Names {
					all[s.Name.Name+"."+name.Name] = sentence(field.Doc, field.Comment)
				}
			}
		}
		return false
	})
}

// sentence is the first one of a comment: what a thing is, not how it came to be.
func sentence(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if g != nil {
			text, _, _ := strings.Cut(strings.Join(strings.Fields(g.Text()), " "), ". ")
			return strings.TrimSuffix(text, ".")
		}
	}
	return ""
}
