package jinja2

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/testdata"
)

// openTemplates are the names of all chat templates at hand: 13 of the oracle, what
// else the library's module brings, and those of an extra folder.
func openTemplates(tb testing.TB) []string {
	tb.Helper()
	var names []string
	for _, dir := range append(testdata.Dirs(tb, "templates"), testdata.TemplateModule()) {
		files, err := filepath.Glob(filepath.Join(dir, "*.jinja"))
		if err != nil {
			tb.Fatal(err)
		}
		for _, f := range files {
			names = append(names, strings.TrimSuffix(filepath.Base(f), ".jinja"))
		}
	}
	if len(names) < 20 {
		tb.Fatalf("%d templates: the module github.com/ardanlabs/jinja is not there", len(names))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestConversationsAgainstPython renders random conversations with every open
// template: roles in any order, tools, tool calls, reasoning, content as text and
// as parts, options.
func TestConversationsAgainstPython(t *testing.T) {
	p := startPython(t)
	names := openTemplates(t)
	g := &conversation{rand.New(rand.NewPCG(7, 20261129))}
	counts, reasons, rendered := map[verdict]int{}, map[string]int{}, map[string]bool{}
	const each = 60
	for range each {
		vars := g.vars()
		for _, name := range names {
			v, text := against(t, p, testdata.Template(t, name), vars)
			if counts[v]++; v == same {
				rendered[name] = true
			}
			if v == skipped {
				reasons[name+": "+text]++
			}
			if v == wrong {
				t.Errorf("%s with %s\n%s", name, vars, text)
				if counts[wrong] > 20 {
					t.Fatal("more than 20 differences")
				}
			}
		}
	}
	t.Logf("%d renders of %d templates, %d of which give text: %d the same as Python, %d raise in both, %d not supported: %v", each*len(names), len(names), len(rendered), counts[same], counts[raised], counts[skipped], reasons)
	if counts[skipped] > 0 {
		t.Errorf("%d renders not supported: %v", counts[skipped], reasons)
	}
}

// conversation makes random chat requests as templates see them.
type conversation struct{ *rand.Rand }

func (g *conversation) chance(percent int) bool { return g.IntN(100) < percent }

func (g *conversation) pick(options ...string) string { return options[g.IntN(len(options))] }

// object is JSON whose keys come in the order they are given.
type object struct {
	keys   []string
	values []any
}

func (o *object) set(key string, v any) *object {
	o.keys, o.values = append(o.keys, key), append(o.values, v)
	return o
}

func (o *object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, k := range o.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		for j, v := range []any{k, o.values[i]} {
			raw, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			if j == 1 {
				b.WriteByte(':')
			}
			b.Write(raw)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (g *conversation) vars() []byte {
	v := &object{}
	v.set("messages", g.messages())
	if g.chance(50) {
		v.set("tools", g.tools())
	}
	v.set("add_generation_prompt", g.chance(60)).set("bos_token", "<s>").set("eos_token", "</s>")
	for _, name := range []string{"enable_thinking", "thinking", "preserve_thinking", "clear_thinking", "continue_final_message", "add_vision_id"} {
		if g.chance(15) {
			v.set(name, g.chance(50))
		}
	}
	if g.chance(20) {
		v.set("reasoning_effort", g.pick("low", "medium", "high", "none", "max"))
	}
	// What single templates ask for.
	for _, name := range []string{"tools_in_user_message", "keep_past_thinking", "truncate_history_thinking", "xml_tools", "builtin_tools", "python_tools", "date_string", "thinking_budget"} {
		if !g.chance(5) {
			continue
		}
		switch {
		case strings.HasSuffix(name, "_tools"):
			v.set(name, []any{g.pick("brave_search", "code_interpreter")})
		case name == "date_string":
			v.set(name, "30 Nov 2026")
		case name == "thinking_budget":
			v.set(name, g.IntN(3)*512)
		default:
			v.set(name, g.chance(50))
		}
	}
	if g.chance(10) {
		v.set("documents", []any{(&object{}).set("title", g.text()).set("text", g.text())})
	}
	raw, _ := json.Marshal(v)
	return raw
}

func (g *conversation) text() string {
	parts := []string{}
	for range 1 + g.IntN(3) {
		parts = append(parts, g.pick("Hi", "what's the weather in Zürich? 😀", "  leading", "trailing \n", "a <b> & \"c\" 'd'", "", "{{ not a tag }}", "天气", "line\nline", "<think>\nhm\n</think>\n\nthen", "</think>", "<tool_response>x</tool_response>", "42", "\t\u00a0\u2028x"))
	}
	return strings.Join(parts, " ")
}

// tidy is a conversation as every template takes it: turns of text.
func (g *conversation) tidy() []any {
	out := []any{}
	say := func(role string) *object {
		m := (&object{}).set("role", role).set("content", g.text())
		out = append(out, m)
		return m
	}
	if g.chance(50) {
		say("system")
	}
	for turn := range 1 + g.IntN(4) {
		if turn > 0 {
			m := say("assistant")
			if g.chance(30) {
				m.set("reasoning_content", g.text())
			}
		}
		say("user")
		if g.chance(25) {
			say("assistant").set("tool_calls", g.calls()[:1])
			say("tool").set("tool_call_id", "call_10").set("name", "get_weather")
		}
	}
	return out
}

func (g *conversation) messages() []any {
	if g.chance(40) {
		return g.tidy()
	}
	out := []any{}
	if g.chance(50) {
		out = append(out, g.message(g.pick("system", "system", "developer")))
	}
	if g.chance(70) { // in turns
		for range 1 + g.IntN(4) {
			out = append(out, g.message("user"), g.message("assistant"))
			if g.chance(40) {
				call := g.message("assistant").set("tool_calls", g.calls())
				out = append(out, call, g.message("tool").set("tool_call_id", "call_1"))
			}
		}
		if g.chance(60) {
			out = append(out, g.message("user"))
		}
		return out
	}
	for range g.IntN(6) {
		out = append(out, g.message(g.pick("user", "assistant", "tool", "system", "developer", "critic")))
	}
	return out
}

func (g *conversation) message(role string) *object {
	m := (&object{}).set("role", role)
	switch k := g.IntN(20); {
	case k < 13:
		m.set("content", g.text())
	case k < 17:
		parts := []any{}
		for range g.IntN(3) + 1 {
			if g.chance(80) {
				parts = append(parts, (&object{}).set("type", "text").set("text", g.text()))
			} else {
				parts = append(parts, (&object{}).set("type", g.pick("image", "video", "audio", "other")))
			}
		}
		m.set("content", parts)
	case k < 18:
		m.set("content", nil)
	case k < 19:
		m.set("content", "")
	}
	if role == "assistant" && g.chance(30) {
		m.set(g.pick("reasoning_content", "reasoning", "thinking"), g.text())
	}
	if role == "assistant" && g.chance(10) {
		m.set("tool_calls", g.calls())
	}
	if g.chance(10) {
		m.set("name", g.pick("bob", "f"))
	}
	return m
}

func (g *conversation) calls() []any {
	out := []any{}
	for i := range 1 + g.IntN(2) {
		var args any = g.schema(2)
		switch g.IntN(6) {
		case 0:
			raw, _ := json.Marshal(args)
			args = string(raw)
		case 1:
			args = &object{}
		}
		f := (&object{}).set("name", g.pick("get_weather", "zeta")).set("arguments", args)
		out = append(out, (&object{}).set("id", g.pick("call_1", "abcdefghi")+string(rune('0'+i))).set("type", "function").set("function", f))
	}
	return out
}

// schema is an object of random JSON, its keys in no order.
func (g *conversation) schema(depth int) *object {
	o := &object{}
	keys := []string{"zoo", "apple", "unit", "items", "get", "ünit", "type", "values"}
	g.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, k := range keys[:g.IntN(4)] {
		o.set(k, g.json(depth))
	}
	return o
}

func (g *conversation) json(depth int) any {
	switch k := g.IntN(10); {
	case k < 2 && depth > 0:
		return g.schema(depth - 1)
	case k < 4 && depth > 0:
		return []any{g.json(depth - 1), g.json(depth - 1)}
	case k == 4:
		return json.RawMessage(g.pick("1.0", "1e20", "0.1", "1e-7", "12345678901234567890123", "-0.0", "3", "-7", "1E5"))
	case k == 5:
		return g.chance(50)
	case k == 6:
		return nil
	}
	return g.text()
}

func (g *conversation) tools() []any {
	out := []any{}
	for range 1 + g.IntN(2) {
		properties := &object{}
		names := []string{"location", "days", "anything", "deep"}
		g.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, n := range names[:g.IntN(5)] {
			p := (&object{}).set("type", g.pick("string", "integer", "number", "boolean", "array", "object", "null"))
			if g.chance(50) {
				p.set("description", g.text())
			}
			if g.chance(20) {
				p.set("enum", []any{"a", "b"})
			}
			if g.chance(20) {
				p.set("default", g.json(1))
			}
			if g.chance(20) {
				p.set("items", (&object{}).set("type", "string"))
			}
			if g.chance(10) {
				p.set("anyOf", []any{(&object{}).set("type", "string"), (&object{}).set("type", "null")})
			}
			properties.set(n, p)
		}
		params := (&object{}).set("type", "object").set("properties", properties)
		if g.chance(50) {
			params.set("required", slices.Clone(names[:g.IntN(3)]))
		}
		f := (&object{}).set("name", g.pick("get_weather", "zeta")).set("description", g.text()).set("parameters", params)
		out = append(out, (&object{}).set("type", "function").set("function", f))
	}
	return out
}

// TestModuleTemplatesCompile: every open template is read.
func TestModuleTemplatesCompile(t *testing.T) {
	for _, name := range openTemplates(t) {
		if _, err := Compile(testdata.Template(t, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(testdata.TemplateModule()); err != nil {
		t.Fatal(err)
	}
}
