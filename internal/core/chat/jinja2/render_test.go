package jinja2

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestRender: single answers, each of them Python's, that the tests beside Python
// reach seldom.
func TestRender(t *testing.T) {
	vars := []byte(`{"d":{"b":1,"a":[true,null,1.0,"é<>&'\""]},"big":123456789012345678901234567890,"x":"X","tools":["t"],"messages":[{"role":"user"}]}`)
	for source, want := range map[string]string{
		"Effort: {{ x }}{%- if x %}!{% endif %}": "Effort: X!",                                  // TK-31: the library drops the space
		"{{ d|tojson }}":                         `{"b": 1, "a": [true, null, 1.0, "é<>&'\""]}`, // TK-32, TK-33
		"{{ d }}":                                `{'b': 1, 'a': [True, None, 1.0, 'é<>&\'"']}`,
		"{% generation %}{{ x }}{% set x = 1 %}{% endgeneration %}{{ x }}":                                       "XX", // TK-34: tags without effect, but a scope
		"{{ big }} {{ big|tojson }} {{ big is string }} {{ big is integer }} {{ big > 1 }} {{ [big] }}":          "123456789012345678901234567890 123456789012345678901234567890 False True True [123456789012345678901234567890]",
		"{{ d['items'] is defined }}{{ 1 if d['items'] }}{{ d['zz'] is defined }}":                               "True1False", // a method
		"{% if messages|selectattr('role', 'equalto', 'nobody') %}yes{% endif %}":                                "yes",        // a generator is true
		"{% set g = ['a']|map('upper') %}{% for x in g %}{{ x }}{% endfor %}{% for x in g %}{{ x }}{% endfor %}": "A",          // once
		"{% for x in [1] %}{{ tools }}{% endfor %}{% set tools = 2 %}{{ tools }}":                                "2",          // see symbols
		"{% for x in [1] %}{{ tools }}{% endfor %}{% if x %}{% set tools = 2 %}{% endif %}{{ tools }}":           "['t']2",
		"{% set ns = namespace(a=1, items=2) %}{{ ns.items }}{{ ns.zz is defined }}":                             "2False",
		"{{ dict(b=1, a=2) }}":             "{'b': 1, 'a': 2}",
		"{{ 'a{{' }}{{ '{' }}{ {{ '{%' }}": "a{{{{ {%",
	} {
		got, err := renderOnce(t, source, vars)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", source, got, err, want)
		}
	}
}

// TestStrftimeAgainstPython: every conversion that is here, on days where weeks
// and years part.
func TestStrftimeAgainstPython(t *testing.T) {
	p := startPython(t)
	const source = "{{ strftime_now(f) }}"
	for _, day := range []time.Time{
		time.Date(2026, 11, 29, 11, 5, 9, 0, time.UTC), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2024, 12, 30, 23, 59, 59, 0, time.UTC),
		time.Date(2023, 1, 1, 12, 0, 0, 0, time.UTC), time.Date(2028, 2, 29, 13, 30, 0, 0, time.UTC), time.Date(2006, 1, 2, 3, 4, 5, 0, time.UTC),
	} {
		for _, f := range []string{"%d %b %Y", "%Y-%m-%d %H:%M:%S", "%A, %B %d", "%a %y %p %I %j %e|%F|%T|%R|%D|%h", "%-d %-m %-H %-I %-M %-S", "%U %W %V %G %u %w", "%%Y%n%t%f|%Z|%z|", "%c|%x|%X|%r", "2006 January %Y", ""} {
			vars, _ := json.Marshal(map[string]string{"f": f})
			want := p.render(t, source, vars, day)
			tpl, err := Compile(source)
			if err != nil {
				t.Fatal(err)
			}
			out, err := tpl.Render(t.Context(), Input{Vars: variables(t, vars), Now: day})
			if err != nil || want.Text == nil || out.Text != *want.Text || !out.Dated {
				t.Errorf("%q on %s: %q, %v; Python gives %v %s", f, day, out.Text, err, want.Text, want.Error)
			}
		}
	}
	if _, err := strftime(oracleTime, "%Q"); err == nil {
		t.Error("an unknown conversion")
	}
}

// TestMissing: a filter that Jinja2 has and this package has not is an error only
// where it is reached; one that Jinja2 has not is one inside an if, and a refusal
// of the template elsewhere.
func TestMissing(t *testing.T) {
	for _, tc := range []struct {
		source      string
		unsupported bool
		text        string
	}{
		{"a{% if false %}{{ 1|urlize }}{% endif %}", false, "a"},
		{"a{{ 1|urlize }}", true, ""},
		{"a{% if false %}{{ 1|nonsense }}{% endif %}", false, "a"},
		{"a{% if true %}{{ 1|nonsense }}{% endif %}", false, ""},
		{"a{% for x in [] %}{{ 1|nonsense }}{% endfor %}", false, ""},
		{"a{{ '' is nonsense }}", false, ""},
		{"a{{ {}['items']() }}", true, ""},
		{"{% macro m() %}{% endmacro %}{{ m.name }}", true, ""},
		{"{{ (1, 2) }}", true, ""},
		{"{{ range(2) }}", true, ""},
		{"{{ {'a': 1}.keys() }}", true, ""},
		{"{{ {'a': 1}.values() }}", true, ""},
		{"{{ {'a': 1}.items() }}", true, ""},
		{"{{ {'a': 1}.items()|list }}", true, ""},
		{"{{ {'a': 1}|dictsort }}", true, ""},
		{"{{ {'a': 1}.keys()|list }}{{ ({'a': 1}|dictsort)[0][1] }}{{ range(2)|list }}", false, "['a']1[0, 1]"},
		{"{% set t = (1, 2) %}{{ '%s %s' % t }}", true, ""},
		{"{{ '٣'|int }}", true, ""},   // Python: 3
		{"{{ '٣'|float }}", true, ""}, // Python: 3.0
		{"{% set ns = namespace(a=0) %}{% for x in [1, 2] if not ns.a %}{{ loop.index }}{% set ns.a = x %}{% endfor %}", true, ""},
		{"{% set ns = namespace(a=0) %}{% for x in [1, 2] if not ns.a %}{% set ns.a = x %}{% else %}none{% endfor %}", true, ""},
		{"{% set ns = namespace(a=0) %}{% for x in [1, 2] if not ns.a %}{{ x }}{% set ns.a = x %}{% endfor %}", false, "1"},
		{"{% for x in [1] %}{% if x > 1 %}{% continue %}{% endif %}{{ x }}{% else %}none{% endfor %}", true, ""},
		{"{% for x in [1] %}{% if x == 1 %}{% break %}{% endif %}{% else %}none{% endfor %}", true, ""}, // Python: none
		{"{% for x in [] %}{% else %}{% for y in [1] %}{% break %}{% endfor %}a{% endfor %}", false, "a"},
	} {
		text, err := renderOnce(t, tc.source, []byte("{}"))
		if text != tc.text || IsUnsupported(err) != tc.unsupported || (err == nil) != (tc.text != "") {
			t.Errorf("%s: %q, %v", tc.source, text, err)
		}
	}
	if _, err := renderOnce(t, "{{ 1|urlize }}", []byte("{}")); err == nil || !strings.Contains(err.Error(), "urlize") {
		t.Errorf("%v does not name the filter", err)
	}
}
