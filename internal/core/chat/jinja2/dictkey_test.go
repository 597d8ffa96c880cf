package jinja2

import "testing"

// TestDictKeysAgainstPython: keys of every type that a template can write, in
// every way to reach them.
func TestDictKeysAgainstPython(t *testing.T) {
	p := startPython(t)
	keys := []string{"0", "1", "-7", "512", "12345678901234567890", "1.0", "2.5", "1e20", "-0.0", "true", "false", "none", "'1'", "'True'", "'None'", "''"}
	for _, key := range keys {
		dict := "{" + key + ": 'v', 'z': 1}"
		sources := []string{
			"{{ " + dict + " }}", "{{ " + dict + "|tojson }}", "{{ " + dict + "|tojson(indent=2, ensure_ascii=true) }}", "{{ " + dict + "|length }}",
			"{% for k in " + dict + " %}{{ k is string }}{{ k is integer }}{{ k }};{% endfor %}",
			"{% for k, v in " + dict + ".items() %}{{ k is number }}{{ k is none }}{{ v }};{% endfor %}",
			"{% for k, v in " + dict + "|items %}{{ [k] }}{% endfor %}", "{{ " + dict + ".keys()|list }}{{ " + dict + "|list }}{{ " + dict + "|first }}",
			"{{ {" + key + ": 'v'}|dictsort|map('last')|list }}", "{{ dict([[" + key + ", 2]]) }}{{ dict({" + key + ": 3}) }}{{ " + dict + ".copy() }}",
			"{{ " + dict + "|tojson(sort_keys=true) }}", "{{ " + dict + "|join(',') }}",
		}
		for _, other := range keys {
			sources = append(sources, "{% set d = "+dict+" %}{{ d["+other+"] }}|{{ d.get("+other+") }}|{{ d.get("+other+", 'no') }}|{{ "+other+" in d }}|{{ "+other+" not in d }}",
				"{{ {"+key+": 1} == {"+other+": 1} }}{{ {"+key+": 1, "+other+": 2} }}")
		}
		for _, source := range sources {
			if v, text := against(t, p, source, []byte(`{}`)); v == wrong {
				t.Errorf("%s\n%s", source, text)
			}
		}
	}
	got, err := renderOnce(t, `{% for k, v in {0: 0, 512: 128, 1024: 256}|dictsort %}{{ k + 1 }}:{{ v }} {% endfor %}`, []byte(`{}`))
	if err != nil || got != "1:0 513:128 1025:256 " {
		t.Errorf("numbers as keys are sorted as numbers: %q, %v", got, err)
	}
}
