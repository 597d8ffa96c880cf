package jinja2

import (
	"testing"

	"github.com/ardanlabs/jinja"
)

// raises stands for an error.
const raises = "(raises)"

// libraryFaults are the minimal cases of the README: what the library makes of a
// template as it is, and what Python does. A case whose library side changes with
// a new version may need no way around any more.
var libraryFaults = []struct{ source, library, python string }{
	{"A: {{ x }}{%- if y %}{% endif %}", "A:X", "A: X"},
	{"{{ 'a' ~ 1 + 2 }}", "a3", raises},
	{"{{ missing.a }}", "", raises},
	{"{{ missing + 'a' }}", "a", raises},
	{"{{ 'a' in none }}", "False", raises},
	{"{{ 1 / 0 }}", "0.0", raises},
	{"{{ 1 if d['items'] else 2 }}", "2", "1"},
	{"{{ 1 if l|selectattr('a') else 2 }}", "2", "1"},
	{"{% for k, v in m|dictsort %}{{ k }}{% endfor %}", "BCa", "aBC"},
	{"{{ ['b', 'A', 'C']|sort|join }}", "ACb", "AbC"},
	{"{{ big }}", "1.2345678901234567e+19", "12345678901234567890"},
	{"{{ '%5s|%-3d|%05.1f' % ('é', 1, 2) }}", "    é|1  |%!f(int64=    2)", "    é|1  |002.0"},
	{"{{ '%c'|format(65) }}", raises, "A"},
	{"{{ {1: 2} }}|{{ {1: 2}.get('1') }}|{{ 1 in {1: 2} }}", "{'1': 2}|2|False", "{1: 2}|None|True"},
	{"{% set ns = namespace(a=0) %}{% for x in l if not ns.a %}{{ x }}{% set ns.a = 1 %}{% endfor %}", "{'b': 1}{}", "{'b': 1}"},
	{"{% for a in none %}{% endfor %}", "", raises},
	{"{% for a, b in [1] %}{{ a }}{{ b }}{% endfor %}", "01", raises},
	{"{% set y %}{% set z = 1 %}{% endset %}{{ z }}", "1", ""},
	{"{{ 'ß'|upper }}", "ß", "SS"},
	{"{{ ('a\\x1c'|trim)|length }}", "2", "1"},
	{"{% set n = l.append(3) %}{{ l|length }}", "3", raises},
}

// TestLibraryFaults holds the README's table against the library, Python and this
// package.
func TestLibraryFaults(t *testing.T) {
	p := startPython(t)
	vars := []byte(`{"x":"X","d":{"b":1},"l":[{"b":1},{}],"m":{"a":1,"B":2,"C":3},"big":12345678901234567890}`)
	for _, tc := range libraryFaults {
		plain := map[string]Value{}
		for k, v := range variables(t, vars) {
			plain[k] = v
		}
		plain["big"] = jinja.NewFloat(12345678901234567890) // what the library's own decoder makes of it
		got := raises
		if code, err := jinja.Compile(tc.source); err == nil {
			if text, err := code.RenderValues(plain); err == nil {
				got = text
			}
		}
		if got != tc.library {
			t.Errorf("%s: the library gives %q, not %q any more", tc.source, got, tc.library)
		}
		python := raises
		if a := p.render(t, tc.source, vars, oracleTime); a.Text != nil {
			python = *a.Text
		}
		if python != tc.python {
			t.Errorf("%s: Python gives %q, not %q", tc.source, python, tc.python)
		}
		ours, err := renderOnce(t, tc.source, vars)
		if err != nil {
			ours = raises
		}
		if ours != python {
			t.Errorf("%s: we give %q, %v; Python %q", tc.source, ours, err, python)
		}
	}
}
