package jinja2

import (
	"context"
	"os"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/testdata"
)

// FuzzRender: no template and no variables end in a panic, a hang, or a text that
// is not UTF-8, and what is rendered once is rendered the same again.
func FuzzRender(f *testing.F) {
	vars := `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":{"b":1.0,"a":[12345678901234567890,"é"]}}}]}],"tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"s":"x y","i":3,"add_generation_prompt":true}`
	for _, name := range openTemplates(f) {
		f.Add(testdata.Template(f, name), []byte(vars))
	}
	for _, source := range bombs {
		if len(source) < 1000 {
			f.Add(source, []byte(vars))
		}
	}
	for _, source := range []string{"{{ messages|map(attribute='role')|join }}", "{% for a, b in messages[1].tool_calls[0].function.arguments|items %}{{ a }}{{ b|tojson }}{% endfor %}",
		"{%- raw -%} {{ x }} {%- endraw %}", "{{ '%s %05d' % (s, i) }}{{ s.split()[-1]|title }}", "{% set x %}{{ strftime_now('%d %B') }}{% endset %}{{ x }}", "{% generation %}a{% endgeneration %}"} {
		f.Add(source, []byte(vars))
	}
	limits := Limits{Output: 1 << 16, Steps: 20_000, Depth: 50}
	f.Fuzz(func(t *testing.T, source string, raw []byte) {
		tpl, err := Compile(source)
		if err != nil {
			return
		}
		v, err := ParseJSON(raw)
		if err != nil || !v.IsDict() {
			return
		}
		in := Input{Vars: v.AsDict().Data, Now: time.Unix(1e9, 0).UTC(), Limits: limits}
		out, err := tpl.Render(context.Background(), in)
		if err != nil {
			return
		}
		if utf8.ValidString(source) && !utf8.ValidString(out.Text) {
			t.Fatalf("renders to %q", out.Text)
		}
		again, err := tpl.Render(context.Background(), in)
		if err != nil || again.Text != out.Text {
			t.Fatalf("renders to %q, then to %q, %v", out.Text, again.Text, err)
		}
	})
}

// FuzzParseJSON: what is read is what Python reads, as far as tojson shows it: it
// can be read again, to the same.
func FuzzParseJSON(f *testing.F) {
	for _, s := range []string{`{"a":[NaN,Infinity,-Infinity,"NaN"],"NaN":0.0}`, `[1NaN]`, `[-NaN]`, `{"a":[1,2.0,1e400,-0,12345678901234567890,"\ud83d\ude00",null,true],"a":{}}`, `"\ud800"`, `[NaN]`, ` {"x" : "\u00e9\n"} `, `1e-7`, "\"\xff\""} {
		f.Add([]byte(s))
	}
	if b, err := os.ReadFile("../../../../testdata/templates/cases.json"); err == nil {
		f.Add(b)
	}
	tpl, err := Compile("{{ x|tojson }}")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := ParseJSON(raw)
		if err != nil {
			return
		}
		render := func(v Value) string {
			out, err := tpl.Render(context.Background(), Input{Vars: map[string]Value{"x": v}})
			if err != nil {
				return ""
			}
			return out.Text
		}
		text := render(v)
		if text == "" {
			return
		}
		again, err := ParseJSON([]byte(text))
		if err != nil {
			t.Fatalf("%q is printed as %q, which is %v", raw, text, err)
		}
		if render(again) != text {
			t.Fatalf("%q and then %q", text, render(again))
		}
		// orjson takes nothing else than Python does, and reads but integers otherwise.
		strict, err := ParseOrjson(raw)
		if err != nil {
			return
		}
		if other := render(strict); len(other) > 0 && len(text) < 15 && other != text { // no digits enough to be beyond 64 bits
			t.Fatalf("%q is %q to Python and %q to orjson", raw, text, other)
		}
	})
}
