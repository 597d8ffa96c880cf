package serve

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/eppctl/eppctl/internal/core/spelling"
)

// decoder fills tagged structs from a YAML tree. Unlike the library's own strict
// mode it goes on after a mistake, so that one run names them all, and it
// remembers where each value stood for the checks that come later.
type decoder struct {
	path     string
	anchors  map[string]ast.Node
	places   map[string]*token.Position // by key path
	blame    map[string]string          // key path -> flag or variable that set it
	meant    map[string]bool            // key paths that a misspelt key stands for
	problems []Problem
	nodes    int
}

// maxNodes bounds the values visited, so that aliases of aliases end.
const maxNodes = 1 << 20

// nodeDecoder is a value that can be written in several forms.
type nodeDecoder interface {
	decodeNode(d *decoder, n ast.Node, key string)
}

// preparer is a section in which one key sets the defaults of the others.
type preparer interface {
	prepare(d *decoder, m *ast.MappingNode, key string)
}

func newDecoder(path string) *decoder {
	return &decoder{path: path, anchors: map[string]ast.Node{}, places: map[string]*token.Position{}, blame: map[string]string{}, meant: map[string]bool{}}
}

// decode reads text into the struct that into points to.
func (d *decoder) decode(text []byte, into any) {
	tokens := lexer.Tokenize(string(text))
	if t := tooDeep(tokens); t != nil {
		d.problems = append(d.problems, Problem{
			File: d.path, Line: t.Position.Line, Column: t.Position.Column, Found: "found text nested or indented beyond any configuration",
		})
		return
	}
	tree, err := parser.Parse(tokens, 0)
	if err != nil {
		d.syntax(err, text)
		return
	}
	for i, doc := range tree.Docs {
		if doc.Body == nil {
			continue
		}
		if i > 0 {
			d.problem(doc.Body, "", "found a second document", "one YAML document", "")
			return
		}
		d.value(doc.Body, reflect.ValueOf(into).Elem(), "")
	}
}

// tooDeep returns the token at which the text nests deeper than the parser, which
// recurses without a limit of its own, should be asked to follow. Nesting shows
// as open brackets, as a column outside of them, or as a pile of anchors and tags.
func tooDeep(tokens token.Tokens) *token.Token {
	const brackets, columns, marks = 32, 1024, 4096
	open, marked := 0, 0
	for _, t := range tokens {
		if open == 0 && t.Position.Column > columns {
			return t
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			open++
		case token.SequenceEndType, token.MappingEndType:
			open--
		case token.AnchorType, token.AliasType, token.TagType:
			marked++
		}
		if open > brackets || marked > marks {
			return t
		}
	}
	return nil
}

func (d *decoder) syntax(err error, text []byte) {
	p := Problem{File: d.path, Expected: "YAML: lines of KEY: VALUE, entries of a list behind \"- \""}
	said, line := err.Error(), ""
	var ye yaml.Error
	if errors.As(err, &ye) {
		said = ye.GetMessage()
		if t := ye.GetToken(); t != nil && t.Position != nil {
			p.Line, p.Column = t.Position.Line, t.Position.Column
		}
	}
	if lines := strings.Split(string(text), "\n"); p.Line > 0 && p.Line <= len(lines) {
		line = lines[p.Line-1]
	}
	p.Found = fmt.Sprintf("found %q", clip(strings.TrimSpace(line)))
	switch _, v, list := strings.Cut(line, ": ["); {
	case strings.Contains(said, "already defined"):
		p.Found, p.Expected = p.Found+" a second time", "each key of a section once"
	case list && strings.Contains(v, "]:"):
		p.Hint = `an IPv6 address needs quotes: "[fd00::1]:8000"`
	case strings.HasPrefix(strings.TrimLeft(line, " "), "\t"):
		p.Found, p.Expected = "found a tab in front of the text", "blanks"
	default:
		p.Hint = "the parser says: " + clip(said)
	}
	d.problems = append(d.problems, p)
}

// value decodes one node; key is its path, as in "pods[2].address".
func (d *decoder) value(n ast.Node, v reflect.Value, key string) {
	if d.nodes++; d.nodes > maxNodes {
		return
	}
	n = d.plain(n)
	if n == nil || n.Type() == ast.NullType {
		return // "key:" with nothing behind it keeps the default
	}
	if _, seen := d.places[key]; !seen {
		d.places[key] = n.GetToken().Position
	}
	if nd, ok := v.Addr().Interface().(nodeDecoder); ok {
		nd.decodeNode(d, n, key)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, v, key)
	case reflect.Slice:
		d.list(n, v, key)
	default:
		d.scalar(n, v, key)
	}
}

// plain looks through anchors, aliases and tags.
func (d *decoder) plain(n ast.Node) ast.Node {
	for range 16 {
		switch t := n.(type) {
		case *ast.AnchorNode:
			d.anchors[t.Name.GetToken().Value] = t.Value
			n = t.Value
		case *ast.AliasNode:
			name := t.Value.GetToken().Value
			to, known := d.anchors[name]
			if !known {
				d.problem(t, "", "found alias *"+clip(name), "the name of an anchor above it", "")
				return nil
			}
			n = to
		case *ast.TagNode:
			n = t.Value
		default:
			return n
		}
	}
	return nil
}

func (d *decoder) structure(n ast.Node, v reflect.Value, key string) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		d.problem(n, key, describe(n), "a section with "+strings.Join(keysOf(v.Type()), ", "), "")
		return
	}
	if p, ok := v.Addr().Interface().(preparer); ok {
		p.prepare(d, m, key)
	}
	fields := fieldsOf(v.Type())
	for _, kv := range m.Values {
		if kv.Key.IsMergeKey() {
			if from, ok := d.plain(kv.Value).(*ast.MappingNode); ok {
				d.structure(from, v, key)
			}
			continue
		}
		name := kv.Key.GetToken().Value
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
		sub := join(key, name)
		if i < 0 {
			d.unknown(kv.Key, sub, name, v.Type())
			continue
		}
		d.places[sub] = kv.Key.GetToken().Position
		d.value(kv.Value, v.FieldByIndex(fields[i].index), sub)
	}
}

func (d *decoder) unknown(n ast.Node, key, name string, t reflect.Type) {
	keys := keysOf(t)
	hint := didYouMean(name, keys)
	if hint != "" {
		d.problem(n, key, "unknown key", "", hint)
		d.meant[strings.TrimSuffix(key, name)+spelling.Nearest(name, keys)] = true
		return
	}
	if at := keyElsewhere(name); at != "" {
		hint = fmt.Sprintf("%s is such a key", at)
	}
	d.problem(n, key, "unknown key", "one of "+strings.Join(keys, ", "), hint)
}

func (d *decoder) list(n ast.Node, v reflect.Value, key string) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		d.problem(n, key, describe(n), "a list", "")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(s.Values), len(s.Values)))
	for i, x := range s.Values {
		d.value(x, v.Index(i), key+"["+strconv.Itoa(i)+"]")
	}
}

func (d *decoder) problem(n ast.Node, key, found, expected, hint string) {
	p := Problem{File: d.path, Key: key, Found: found, Expected: expected, Hint: hint}
	if n != nil {
		if t := n.GetToken(); t != nil && t.Position != nil {
			p.Line, p.Column = t.Position.Line, t.Position.Column
		}
	}
	d.problems = append(d.problems, p)
}

// bad reports a value that was read but makes no sense; the place is the flag or
// variable it came from, else that of the key, or of the nearest section that
// stands in the file.
func (d *decoder) bad(key, found, expected, hint string) {
	if from := d.blame[key]; from != "" {
		d.problems = append(d.problems, Problem{Key: from, Found: found, Expected: expected, Hint: hint})
		return
	}
	if slices.ContainsFunc(d.problems, func(p Problem) bool { return p.Key == key }) {
		return // it could not be read at all, which was said already
	}
	if d.meant[key] && d.places[key] == nil {
		return // it is missing because it is misspelt, which was said already
	}
	p := Problem{File: d.path, Key: key, Found: found, Expected: expected, Hint: hint}
	for at := key; at != ""; at = parent(at) {
		if pos := d.places[at]; pos != nil {
			p.Line, p.Column = pos.Line, pos.Column
			break
		}
	}
	d.problems = append(d.problems, p)
}

// name is a key as its setter knows it.
func (d *decoder) name(key string) string {
	if from := d.blame[key]; from != "" {
		return from
	}
	return key
}

func (d *decoder) err() error {
	if len(d.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(d.problems, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return &ConfigError{Problems: d.problems}
}
