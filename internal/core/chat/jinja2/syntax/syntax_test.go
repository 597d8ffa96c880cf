package syntax

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// shape writes a tree in one line.
func shape(nodes ...Node) string {
	var parts []string
	for _, n := range nodes {
		switch n := n.(type) {
		case nil:
			parts = append(parts, "_")
		case *TemplateData:
			parts = append(parts, fmt.Sprintf("%q", n.Text))
		case *Const:
			parts = append(parts, fmt.Sprintf("%#v", n.Value))
		case *Name:
			parts = append(parts, n.Name)
		case *BinExpr:
			parts = append(parts, "("+shape(n.Left)+n.Op+shape(n.Right)+")")
		case *UnaryExpr:
			parts = append(parts, "("+n.Op+" "+shape(n.Node)+")")
		case *Getattr:
			parts = append(parts, shape(n.Node)+"."+n.Attr)
		case *Filter:
			parts = append(parts, shape(n.Node)+"|"+n.Name+"("+shape(n.Args...)+")")
		case *Test:
			parts = append(parts, shape(n.Node)+" is "+n.Name+"("+shape(n.Args...)+")")
		case *Compare:
			s := shape(n.Expr)
			for _, o := range n.Ops {
				s += " " + o.Op + " " + shape(o.Expr)
			}
			parts = append(parts, "<"+s+">")
		default:
			parts = append(parts, fmt.Sprintf("%s[%s]", strings.TrimPrefix(fmt.Sprintf("%T", n), "*syntax."), shape(n.children()...)))
		}
	}
	return strings.Join(parts, " ")
}

func TestParse(t *testing.T) {
	for source, want := range map[string]string{
		// White space around tags. The whole of it is held against Python by the
		// random templates of package jinja2.
		"a\n  {% if x %}\n  b\n  {% endif %}\nc\n": `Output["a\n"] If[x Output["  b\n"]] Output["c"]`,
		"a {%- if x -%} b {%- endif -%} c":         `Output["a"] If[x Output["b"]] Output["c"]`,
		"a\n  {%+ if x +%}\nb{% endif %}":          `Output["a\n  "] If[x Output["\nb"]]`,
		"a: {{ x }}{%- if y %}b{% endif %}":        `Output["a: " x] If[y Output["b"]]`, // reference case R2
		"{# {{ x }} -#}  a{#- b #}\nc":             `Output["a" "c"]`,
		"{%- raw -%} {{ x }} {% endraw %}\nb":      `Output["{{ x }} " "b"]`,
		"a\r\nb\r":                                 `Output["a\nb"]`,
		// Precedence: ~ binds more than +, a sign more than a filter, filters
		// and tests more than operators.
		"{{ a + b ~ c * d }}":             `Output[(a+Concat[b (c*d)])]`,
		"{{ a - b - c }}":                 `Output[((a-b)-c)]`,
		"{{ -a|abs }}":                    `Output[(- a)|abs()]`,
		"{{ -2 ** 2 }}":                   `Output[((- 2)**2)]`,
		"{{ not a is b and c }}":          `Output[((not a is b())andc)]`,
		"{{ a is b c.d }}":                `Output[a is b(c.d)]`,
		"{{ a is not b('x') or c }}":      `Output[((not a is b("x"))orc)]`,
		"{{ a if b else c if d }}":        `Output[CondExpr[b a CondExpr[d c _]]]`,
		"{{ a < b in c not in d }}":       `Output[<a < b in c not in d>]`,
		"{{ a.0.1 }}":                     `Output[Getitem[Getitem[a 0] 1]]`,
		"{{ a[1:][::b] }}":                `Output[Getitem[Getitem[a Slice[1 _ _]] Slice[_ _ b]]]`,
		"{{ 'a' \"b\" }}":                 `Output["ab"]`,
		`{{ 'é\n\x41\u00e9\d\101' }}`:     "Output[\"é\\nAé\\\\dA\"]",
		"{{ 1_000 + 0x1F + 1e3 + 1.5 }}":  `Output[(((1000+31)+1000)+1.5)]`,
		"{{ {'a': 1,}, [1,], (1,), () }}": `Output[Tuple[Dict["a" 1] List[1] Tuple[1] Tuple[]]]`,
		"{{ f(1, *a, b=2, **c) }}":        `Output[Call[f 1 2 a c]]`,
		"{% for a, (b, c) in d if e recursive %}{% else %}{% endfor %}":      `For[Tuple[a Tuple[b c]] d e]`,
		"{% set a.b = 1, 2 %}{% set c | d %}{% endset %}":                    `Assign[NSRef[] Tuple[1 2]] AssignBlock[c _|d()]`,
		"{% macro m(a, b=1) %}{% endmacro %}{% call(x) m(1) %}{% endcall %}": `Macro[a b 1] CallBlock[Call[m 1 _ _] x]`,
		"{% generation %}a{% endgeneration %}":                               `Generation[Output["a"]]`,
		"{{ '}}' }}{{ {'a': {}} }}{{ \"%}\" }}":                              `Output["}}" Dict["a" Dict[]] "%}"]`,
	} {
		nodes, err := Parse(source)
		if err != nil {
			t.Errorf("%q: %v", source, err)
			continue
		}
		if got := shape(nodes...); got != want {
			t.Errorf("%q:\n%s\n%s", source, got, want)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, source := range []string{"{{", "{{ a", "{{ a ]", "{{ (a }}", "{{ 'a }}", "{% if a %}", "{% endif %}", "{% fi %}", "{% break %}", "{% for a.b in c %}{% endfor %}",
		"{{ a b }}", "{{ f(a=1, 2) }}", "{{ f(a=1, a=2) }}", "{{ a is b is c }}", "{# a", "{% raw %}", "{{ a; b }}", "{{ 'a\\x' }}", "{{ a @ b }}", "{{ }}", "{% set 1 = 2 %}", "{% macro m(a=1, b) %}{% endmacro %}",
		"{% for x in y %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "{% do x %}"} {
		_, err := Parse(source)
		if e := new(Error); !errors.As(err, &e) {
			t.Errorf("%q: %v", source, err)
		}
	}
	for _, source := range []string{"{% include 'a' %}", "{% block a %}{% endblock %}", "{{ naïve }}", "{{ '\\N{DASH}' }}", "{{ '\\ud800' }}", strings.Repeat("{% if a %}", 200), strings.Repeat("x", MaxSource+1)} {
		_, err := Parse(source)
		if e := new(Unsupported); !errors.As(err, &e) {
			t.Errorf("%.60q: %v", source, err)
		}
	}
}

// FuzzParse: no source ends in a panic, and lines are counted within it.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"a {%- if x -%} {{ y|f(1, a=2)[1:] }}{% endif %}", "{% raw %}{{{% endraw %}", "{# x -#}\n{{ 1.5e3 ~ 'a\\n' }}", "{% macro m(a, b=1) %}{% for x in y recursive %}{% break %}{% endfor %}{% endmacro %}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		nodes, err := Parse(source)
		var e *Error
		if errors.As(err, &e) && (e.Line < 1 || e.Line > 1+strings.Count(normalize(source), "\n")) {
			t.Fatalf("line %d of %q", e.Line, source)
		}
		if err == nil {
			Walk(nodes, func(Node) bool { return true })
		}
	})
}
