package jinja2

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// verdict is how a render of ours stands to Python's.
type verdict int

const (
	same    verdict = iota // the same text
	raised                 // in both
	skipped                // we do not render
	wrong
)

// against renders with both. Wrong is another text, a text where Python raises,
// or a refusal where it does not.
func against(tb testing.TB, p *python, source string, vars []byte) (verdict, string) {
	tb.Helper()
	want := p.render(tb, source, vars, oracleTime)
	got, err := renderOnce(tb, source, vars)
	refused, exceeded := new(Refused), new(Exceeded)
	switch {
	case want.Error == "RecursionError" && errors.As(err, &exceeded): // each at its own limit
		return raised, ""
	case want.Text == nil && err != nil && (IsUnsupported(err) || errors.As(err, &refused)):
		return raised, ""
	case IsUnsupported(err):
		return skipped, err.Error()
	case want.Text == nil:
		return wrong, fmt.Sprintf("Python raises %s: %s\nwe give %.300q, %v", want.Error, want.Message, got, err)
	case knownDifference(*want.Text, err):
		return skipped, "a known difference"
	case err != nil:
		return wrong, fmt.Sprintf("Python gives %.300q\nwe return %v", *want.Text, err)
	case got != *want.Text:
		return wrong, fmt.Sprintf("Python gives %.300q\nwe give      %.300q", *want.Text, got)
	}
	return same, ""
}

// knownDifference recognises what the README lists: a view of a dict prints as a
// list, and a slice of a constant that has none is undefined in Python only
// because constants are folded.
func knownDifference(text string, err error) bool {
	return strings.Contains(text, "dict_items(") || err != nil && strings.Contains(err.Error(), "applies a slice to")
}

func renderOnce(tb testing.TB, source string, vars []byte) (string, error) {
	tb.Helper()
	t, err := Compile(source)
	if err != nil {
		return "", err
	}
	out, err := t.Render(context.Background(), Input{Vars: variables(tb, vars), Now: oracleTime})
	return out.Text, err
}

// TestExpressionsAgainstPython renders random small templates: what chat
// templates do, in combinations that they do not.
func TestExpressionsAgainstPython(t *testing.T) {
	p := startPython(t)
	g := &templates_{rand.New(rand.NewPCG(1, 20261129))}
	counts := map[verdict]int{}
	reasons := map[string]int{}
	const n = 500
	for i := range n {
		vars := g.vars()
		source := g.template(3)
		v, text := against(t, p, source, vars)
		counts[v]++
		if v == skipped {
			reasons[text]++
		}
		if v == wrong {
			t.Errorf("template %d:\n%s\nwith %s\n%s", i, source, vars, text)
			if counts[wrong] > 20 {
				t.Fatal("more than 20 differences")
			}
		}
	}
	t.Logf("%d templates: %d the same as Python, %d raise in both, %d not supported: %v", n, counts[same], counts[raised], counts[skipped], reasons)
	if counts[skipped] > n/20 {
		t.Errorf("%d of %d not supported", counts[skipped], n)
	}
}

// templates_ makes random templates and variables.
type templates_ struct{ *rand.Rand }

func (g *templates_) pick(options ...string) string { return options[g.IntN(len(options))] }

// vars are values of every kind, under names that tell it.
func (g *templates_) vars() []byte {
	m := map[string]any{
		"s": g.text(), "t": g.text(), "i": g.IntN(12) - 4, "f": float64(g.IntN(40)-20) / 8, "b": g.IntN(2) == 0, "n": nil,
		"l": []any{g.value(2), g.value(2), g.value(2)}, "d": map[string]any{"a": g.value(2), "items": g.value(1), "z": g.text()},
		"messages": g.messages(),
	}
	if g.IntN(4) == 0 {
		delete(m, g.pick("s", "i", "l", "d", "n"))
	}
	raw, _ := json.Marshal(m)
	return raw
}

func (g *templates_) messages() []any {
	out := []any{}
	for range g.IntN(4) {
		m := map[string]any{"role": g.pick("system", "user", "assistant", "tool"), "content": g.text()}
		switch g.IntN(5) {
		case 0:
			m["content"] = []any{map[string]any{"type": "text", "text": g.text()}}
		case 1:
			m["content"] = nil
		case 2:
			m["tool_calls"] = []any{map[string]any{"function": map[string]any{"name": "f", "arguments": g.value(2)}}}
		}
		out = append(out, m)
	}
	return out
}

func (g *templates_) text() string {
	return g.pick("", " a ", "Hello, World", "x\ny\n", "  <b>&'\"</b>", "ünï–😀", "1", "-2.5", "a,b,,c", "</think>rest", "tab\tend", "\u00a0nb\u2028", "ß İ ΑΣ", "\x7f\u200b")
}

func (g *templates_) value(depth int) any {
	switch k := g.IntN(9); {
	case k == 0:
		return nil
	case k == 1:
		return g.IntN(2) == 0
	case k == 2:
		return g.IntN(9) - 3
	case k == 3:
		return float64(g.IntN(9)) / 4
	case k == 4 && depth > 0:
		return []any{g.value(depth - 1), g.value(depth - 1)}
	case k == 5 && depth > 0:
		return map[string]any{"k": g.value(depth - 1), "a": g.value(depth - 1)}
	}
	return g.text()
}

// template is a few statements.
func (g *templates_) template(depth int) string {
	var b strings.Builder
	for range 1 + g.IntN(3) {
		b.WriteString(g.pick("", "", " ", "\n", "  text\n", "x{ ", "\n  "))
		b.WriteString(g.statement(depth))
	}
	b.WriteString(g.pick("", "\n", " end", "\n\n"))
	return b.String()
}

// tag writes a tag with random white space control.
func (g *templates_) tag(inside string) string {
	return g.pick("{%", "{%", "{%-", "{%+") + " " + inside + " " + g.pick("%}", "%}", "-%}", "+%}")
}

func (g *templates_) print(inside string) string {
	return g.pick("{{", "{{", "{{-") + " " + inside + " " + g.pick("}}", "}}", "-}}")
}

func (g *templates_) statement(depth int) string {
	if depth == 0 {
		return g.print(g.expr(2))
	}
	switch g.IntN(16) {
	case 0:
		return g.tag("if "+g.expr(2)) + g.template(depth-1) + g.tag("elif "+g.expr(1)) + g.template(depth-1) + g.tag("else") + g.template(depth-1) + g.tag("endif")
	case 1:
		return g.tag("if "+g.expr(2)) + g.template(depth-1) + g.tag("endif")
	case 2:
		return g.tag("for x in "+g.expr(1)) + g.template(depth-1) + g.print(g.pick("loop.index", "loop.last", "loop.previtem", "loop.nextitem is defined", "loop.length", "loop.cycle('a', 'b')", "x")) + g.tag("endfor")
	case 3:
		return g.tag("for x in "+g.expr(1)+" if "+g.expr(1)) + g.print("x") + g.tag("else") + g.template(depth-1) + g.tag("endfor")
	case 4:
		return g.tag("for k, v in "+g.pick("d.items()", "d|items", "d|dictsort", "l", "{'a': 1, 'b': s}.items()")) + g.print(g.pick("k", "v", "k ~ v")) + g.tag("endfor")
	case 5:
		return g.tag("set "+g.pick("s", "y", "l", "d")+" = "+g.expr(2)) + g.template(depth-1)
	case 6:
		return g.tag("set y") + g.template(depth-1) + g.tag("endset") + g.print("y")
	case 7:
		return g.tag("set ns = namespace(a="+g.expr(1)+")") + g.tag("for x in [1, 2]") + g.tag("set ns.a = "+g.expr(1)) + g.tag("set s = 'in'") + g.tag("endfor") + g.print("ns.a ~ s")
	case 8:
		return g.tag("macro m(a, b="+g.expr(1)+")") + g.template(depth-1) + g.print("a ~ b") + g.tag("endmacro") + g.print("m("+g.expr(1)+g.pick("", ", b="+g.expr(1), ", "+g.expr(1))+")")
	case 9:
		return "{#" + g.pick("", "-", "+") + " note " + g.pick("", "-", "+") + "#}" + g.pick("\n", "", "  ")
	case 10:
		return g.tag("for x in [1, 2, 3]") + g.tag("if x == 2") + g.tag(g.pick("break", "continue")) + g.tag("endif") + g.print("x") + g.tag("endfor")
	case 11:
		return g.tag("generation") + g.template(depth-1) + g.tag("endgeneration")
	case 12:
		return g.tag("filter "+g.pick("upper", "trim", "length", "replace('a', 'b')")) + g.template(depth-1) + g.tag("endfilter")
	case 13:
		return g.tag("with y = "+g.expr(1)) + g.template(depth-1) + g.print("y") + g.tag("endwith")
	case 14:
		return g.tag("set ns = namespace(a=0)") + g.tag("for x in [1, 2, 3] if ns.a < 2") + g.print(g.pick("x", "x ~ ns.a", "x", "loop.index")) +
			g.tag("set ns.a = "+g.pick("x", "ns.a + 1")) + g.tag("endfor")
	}
	return g.print(g.expr(3))
}

func (g *templates_) expr(depth int) string {
	if depth == 0 {
		return g.atom()
	}
	e := func() string { return g.expr(depth - 1) }
	switch g.IntN(19) {
	case 0:
		return "(" + e() + " " + g.pick("+", "-", "*", "/", "//", "%", "~") + " " + e() + ")"
	case 1:
		return e() + " " + g.pick("+", "~", "-", "*") + " " + e()
	case 2:
		return "(" + e() + " " + g.pick("==", "!=", "<", ">", "<=", ">=", "in", "not in") + " " + e() + ")"
	case 3:
		return "(" + e() + " " + g.pick("and", "or") + " " + e() + ")"
	case 4:
		return g.pick("not ", "-", "+") + e()
	case 5:
		return "(" + e() + " if " + e() + g.pick("", " else "+e()) + ")"
	case 6, 7:
		return "(" + e() + ")." + g.pick("a", "items", "role", "content", "keys", "z", "0")
	case 8:
		return "(" + e() + ")[" + g.pick("0", "-1", "'a'", "'items'", "'role'", "1:", ":-1", "::-1", "::2", "s", "i", "1:i") + "]"
	case 9, 10:
		return "(" + e() + ") is " + g.pick("", "not ") + g.pick("defined", "none", "string", "mapping", "sequence", "iterable", "number", "integer", "float",
			"boolean", "true", "false", "undefined", "odd", "divisibleby 2", "eq(s)", "in(l)", "upper", "callable")
	case 11, 12, 13:
		return "(" + e() + ")|" + g.filter(e)
	case 14, 15:
		return "(" + e() + ")." + g.method(e)
	case 16:
		return "[" + e() + ", " + e() + "]"
	case 17:
		return "{'a': " + e() + ", " + g.pick("'k'", "s", "'items'", "i", "1", "true", "none", "2.5") + ": " + e() + "}"
	}
	return g.atom()
}

func (g *templates_) atom() string {
	return g.pick("s", "t", "i", "f", "b", "n", "l", "d", "messages", "messages[0]", "messages[-1].content", "x", "missing", "d.a", "l[0]",
		"'lit'", `"it's"`, `'a\nb'`, `'\\d\u00e9'`, "0", "3", "-1", "2.5", "1e3", "true", "false", "none", "[]", "{}", "''", "loop.index")
}

func (g *templates_) filter(e func() string) string {
	return g.pick("length", "trim", "upper", "lower", "string", "list", "first", "last", "join(',')", "join", "default('x')", "default("+e()+", true)",
		"tojson", "tojson(indent=2)", "tojson(ensure_ascii=true)", "tojson(separators=(',', ':'), sort_keys=true)", "int", "float", "abs", "round", "round(1)",
		"reverse", "sort", "sort(reverse=true)", "unique|list", "map('upper')|list", "map(attribute='role')|join(' ')", "select|list", "select('string')|list",
		"reject('none')|list", "selectattr('role', 'equalto', 'user')|list", "selectattr('content')|list|length", "rejectattr('role', 'eq', 'tool')|map(attribute='content')|list",
		"items|list", "dictsort", "replace('a', 'b')", "replace('', '-')", "capitalize", "title", "indent", "indent(2, true)", "min", "max", "sum", "wordcount", "batch(2)|list",
		"slice(2)|list", "safe", "count", "trim('a ')", "d(1)", "list|length", "map('length')|sum", "string|length")
}

func (g *templates_) method(e func() string) string {
	return g.pick("strip()", "lstrip()", "rstrip('\n')", "split(',')", "split()", "split('a', 1)", "rsplit(',', 1)", "startswith('a')", "endswith(('b', 'd'))",
		"upper()", "lower()", "title()", "capitalize()", "replace('a', 'bb')", "replace('l', '', 1)", "find('o')", "count('a')", "join(['a', 'b'])", "splitlines()",
		"items()", "keys()|list", "values()|list", "get('a')", "get('zz', "+e()+")", "get(s)", "get(i)", "isdigit()", "isspace()", "isupper()", "format(1)", "partition(',')|list",
		"removeprefix('a')", "zfill(4)", "center(9)", "ljust(5)", "append(1)", "update({})", "pop()", "copy()", "index('a')", "strip("+e()+")", "split("+e()+")[-1]", "split('</think>')[-1].lstrip('\n')")
}
