package jinja2

import "testing"

// TestSpread: a call takes arguments from a list as in Python, or is not supported.
func TestSpread(t *testing.T) {
	p := startPython(t)
	const macros = "{% macro m(a, b='-', c='+') %}<{{ a }}{{ b }}{{ c }}>{% endmacro %}{% macro one(a) %}[{{ a }}]{% endmacro %}"
	for source, want := range map[string]verdict{
		"{{ m(*[]) }}|{{ m(*[1]) }}|{{ m(*[1, 2]) }}|{{ m(*l) }}":                                          same,
		"{{ m('x', *[1, 2]) }}|{{ m(*['x'], c=2) }}|{{ m('x', *[], **{'b': 3}) }}":                         same,
		"{% set f = [m, one] %}{% set g = [l, ['z']] %}{% for i in [0, 1] %}{{ f[i](*g[i]) }}{% endfor %}": same,
		"{{ one(*d.l[1]) }}{{ one(*d['l'][0]) }}":                                                          same,
		"{{ [one(*['a']), m(*['b'])] | join(',') }}":                                                       same,
		"{{ one(one(*['a'])) }}":                                                                           same,
		"{{ one(*[1, 2]) }}":                                                                               raised,
		"{{ one(*none) }}":                                                                                 raised,
		"{{ one(*7) }}":                                                                                    raised,
		"{{ m(*'xyz') }}":                                                                                  skipped,
		"{{ m(*{'k': 1}) }}":                                                                               skipped,
		"{{ one(one(*['a']), *[]) }}":                                                                      skipped,
		"{% macro v(a) %}{{ varargs|length }}{% endmacro %}{{ v(*[1, 2, 3, 4, 5, 6, 7, 8, 9]) }}": skipped,
	} {
		if got, text := against(t, p, macros+source, []byte(`{"l":["p","q","r"],"d":{"l":[["u"],["v"]]}}`)); got != want {
			t.Errorf("%s: %d %s; want %d", source, got, text, want)
		}
	}
}
