package chat

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
	"github.com/eppctl/eppctl/internal/testdata"
)

// TestDeepSeekV32 holds the encoder against what the published one writes for random
// conversations (testdata/encoders).
func TestDeepSeekV32(t *testing.T) {
	v, err := jinja2.ParseJSON(testdata.Gunzip(t, filepath.Join(testdata.Dirs(t, "encoders")[0], "deepseek_v32.json.gz")))
	if err != nil {
		t.Fatal(err)
	}
	same, refused := 0, 0
	for i, c := range v.AsList().Items {
		vars := map[string]jinja2.Value{}
		for _, name := range []string{"tools", "thinking", "enable_thinking"} {
			if x, ok := jinja2.Get(c, name); ok {
				vars[name] = x
			}
		}
		got, err := encodeDeepSeekV32(member(c, "messages").AsList().Items, vars)
		want, renders := jinja2.Get(c, "text")
		var no *Rejected
		switch {
		case !renders && errors.As(err, &no):
			refused++
		case renders && err == nil && got == want.AsString():
			same++
		case renders:
			t.Errorf("conversation %d: %v\n%q\nwant\n%q", i, err, got, want.AsString())
		default:
			t.Errorf("conversation %d: %v\n%q\nPython raises %s", i, err, got, text(c, "error"))
		}
		if t.Failed() && same+refused < i-3 {
			t.FailNow()
		}
	}
	t.Logf("%d texts are the same, %d are refused by both", same, refused)
	if same < 300 || refused < 50 {
		t.Error("the conversations are too one-sided")
	}
}

// TestDeepSeekV32Request: from a body to the prompt, and what is left to others.
func TestDeepSeekV32Request(t *testing.T) {
	model := Model{Architectures: []string{"DeepseekV32ForCausalLM"}}
	r, err := New(Files{ChatTemplate: []byte("not used")}, Options{Model: model})
	if err != nil || r.Encoder() != "deepseek_v32" {
		t.Fatalf("%v, encoder %q", err, r.Encoder())
	}
	const turns = `{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
		{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"n\": 1.0, \"s\": \"x\"}"}}]},
		{"role":"tool","tool_call_id":"1","content":"42"}]`
	const said = "<｜begin▁of▁sentence｜>Be brief.<｜User｜>a\nb<｜Assistant｜>"
	const call = "\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"n\" string=\"false\">1.0</｜DSML｜parameter>\n" +
		"<｜DSML｜parameter name=\"s\" string=\"true\">x</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls><｜end▁of▁sentence｜>" +
		"\n\n<function_results>\n<result>42</result>\n</function_results>\n\n"
	for name, tc := range map[string]struct{ body, want string }{
		"by default":    {turns + `}`, said + "</think>" + call + "</think>"},
		"thinking":      {turns + `,"chat_template_kwargs":{"thinking":true}}`, said + "<think>hm</think>" + call + "<think>"},
		"by its effort": {turns + `,"reasoning_effort":"high"}`, said + "<think>hm</think>" + call + "<think>"},
		"no effort":     {turns + `,"reasoning_effort":"none"}`, said + "</think>" + call + "</think>"},
	} {
		if got := mustRender(t, r, tc.body).Text; got != tc.want {
			t.Errorf("%s:\n%q\nwant\n%q", name, got, tc.want)
		}
	}
	tools := mustRender(t, r, turns+`,"tools":[{"type":"function","function":{"name":"f","parameters":{"z":1,"a":2}}}]}`).Text
	if !strings.Contains(tools, "\n<functions>\n{\"name\": \"f\", \"description\": null, \"parameters\": {\"z\": 1, \"a\": 2}") {
		t.Errorf("tools: %q", tools)
	}
	for name, body := range map[string]string{
		"an image":          `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}]}`,
		"a message to end":  `{"messages":[{"role":"user","content":"q"}],"add_generation_prompt":false,"continue_final_message":true}`,
		"an odd kwarg":      `{"messages":[{"role":"user","content":"q"}],"chat_template_kwargs":{"thinking":"yes"}}`,
		"a kwarg in a list": `{"messages":[{"role":"user","content":"q"}],"chat_template_kwargs":{"enable_thinking":[]}}`,
	} {
		if u := new(Unrenderable); !unrenders(r, Completions, body, &u) {
			t.Errorf("%s is rendered", name)
		}
	}
	if u := new(Unrenderable); !unrenders(r, Messages, `{"max_tokens":1,"messages":[{"role":"user","content":"q"}]}`, &u) {
		t.Error("another form is rendered")
	}
	if _, err := New(Files{}, Options{Engine: SGLang, Model: model}); err == nil {
		t.Error("SGLang's encoder is another")
	}
}

func unrenders(r *Renderer, api API, body string, u **Unrenderable) bool {
	_, err := r.RenderAPI(context.Background(), api, []byte(body), time.Time{})
	return errors.As(err, u)
}
