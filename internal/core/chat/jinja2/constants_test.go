package jinja2

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestConstantsAgainstPython: NaN and the infinities of a request in a template, beside
// Python: printed, compared, counted with. What cannot be told here is unsupported.
func TestConstantsAgainstPython(t *testing.T) {
	p := startPython(t)
	unsupported, compared := map[string]bool{}, 0
	for _, vars := range []string{
		`{"x": NaN, "y": 1}`, `{"x": Infinity, "y": NaN}`, `{"x": -Infinity, "y": Infinity}`, `{"x": [NaN, 1, Infinity], "y": NaN}`,
		`{"x": {"a": NaN, "NaN": -Infinity, "a": Infinity}, "y": "NaN"}`, `{"x": 1e400, "y": 0.0}`, `{"x": [Infinity, 2, -Infinity], "y": Infinity}`,
	} {
		for _, source := range []string{
			`{{ x }}`, `{{ x|tojson }}`, `{{ x|tojson(indent=2) }}`, `{{ x|string }}`, `{{ '%s' % x }}`, `{{ [x, {'k': y}] }}`, `{{ {'a': x}|tojson }}`,
			`{{ x if x else 'false' }}`, `{{ x is number }} {{ x is float }} {{ x is integer }} {{ x is string }} {{ x is iterable }}`,
			`{{ x == x }} {{ x == y }} {{ x != y }}`, `{{ x < y }} {{ x > y }} {{ x <= y }}`, `{{ x == 1 }} {{ 1 == x }}`,
			`{{ x + 1 }}`, `{{ -x }}`, `{{ x * 0 }}`, `{{ x - x }}`, `{{ x / 2 }}`, `{{ x // 2 }}`, `{{ x % 2 }}`, `{{ x ** 2 }}`,
			`{{ x|int }}`, `{{ x|float }}`, `{{ x|abs }}`, `{{ x|round }}`, `{{ x|round(2) }}`, `{{ '%.2f %F %8f %-8f| %08.2f %5s' % (x, x, x, x, x, x) }}`, `{{ '%r %i' % (x, 1) }}`, `{{ '%f' % y }}`, `{{ '%d' % y }}`, `{{ y|round(1, 'floor') }}`, `{{ y < 1 }} {{ 1 < y }} {{ y < y }}`, `{{ [y, y]|join }}`, `{{ '%d' % x }}`,
			`{{ x in [1, 2] }}`, `{{ y in x }}`, `{{ 1 in x }}`, `{{ x|first }}`, `{{ x|max }}`, `{{ x|min }}`, `{{ x|sum }}`, `{{ x|sort|tojson }}`, `{{ x|unique|list }}`,
			`{{ x|join(',') }}`, `{% for a in x %}{{ a }} {% endfor %}`, `{% for k, v in x|items %}{{ k }}={{ v }} {% endfor %}`, `{{ x|length }}`, `{{ x.index(1) }}`,
			`{{ [x] == [1] }}`, `{{ [x, 1] == [y, 1] }}`, `{{ x|default(3) }}`, `{{ x|lower }}`, `{{ x ~ y }}`,
		} {
			in, err := ParseJSON([]byte(vars))
			if err != nil {
				t.Fatal(err)
			}
			tpl, err := Compile(source)
			if err != nil {
				t.Fatal(err)
			}
			got, err := tpl.Render(context.Background(), Input{Vars: in.AsDict().Data, Now: oracleTime})
			want := p.render(t, source, []byte(vars), oracleTime)
			refused := new(Refused)
			switch compared++; {
			case IsUnsupported(err):
				unsupported[source] = true
			case want.Text == nil:
				if !errors.As(err, &refused) {
					t.Errorf("%s of %s: %q, %v; Python has %s %s", source, vars, got.Text, err, want.Error, want.Message)
				}
			case err != nil:
				t.Errorf("%s of %s: %v; Python has %q", source, vars, err, *want.Text)
			case got.Text != *want.Text:
				t.Errorf("%s of %s: %q; Python has %q", source, vars, got.Text, *want.Text)
			}
		}
	}
	if t.Logf("%d renders, unsupported among them: %v", compared, slices.Sorted(maps.Keys(unsupported))); len(unsupported) > 6 {
		t.Errorf("%d templates are unsupported", len(unsupported))
	}
}

// TestConstantsInSource: a template cannot write them; the words are names.
func TestConstantsInSource(t *testing.T) {
	tpl, err := Compile(`[{{ NaN }}{{ Infinity is defined }}]`)
	if err != nil {
		t.Fatal(err)
	}
	out, err := tpl.Render(context.Background(), Input{})
	if err != nil || out.Text != "[False]" {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestConstantsNested: the limits hold for a text with constants as for any other.
func TestConstantsNested(t *testing.T) {
	for n, fine := range map[int]bool{maxJSONDepth - 1: true, maxJSONDepth + 2: false} {
		_, err := ParseJSON([]byte(strings.Repeat("[", n) + "NaN" + strings.Repeat("]", n)))
		if (err == nil) != fine || err != nil && !IsUnsupported(err) {
			t.Errorf("%d levels: %v", n, err)
		}
	}
	if _, err := ParseJSON([]byte(`[NaN,` + strings.Repeat("9", maxDigits+1) + `]`)); err == nil {
		t.Error("an integer of too many digits was read")
	}
}
