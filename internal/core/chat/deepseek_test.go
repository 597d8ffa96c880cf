package chat

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

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

// TestDeepSeekV4Request: from a body to the prompt.
func TestDeepSeekV4Request(t *testing.T) {
	r, err := New(Files{}, Options{Model: Model{Architectures: []string{"DeepseekV4ForCausalLM"}}})
	if err != nil {
		t.Fatal(err)
	}
	const turns = `{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
		{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"2","type":"function","function":{"name":"g","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"2","content":"two"},{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"one"}]}]`
	const said = "Be brief.<｜User｜>a\n\nb<｜Assistant｜>"
	const calls = "\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n\n</｜DSML｜invoke>\n<｜DSML｜invoke name=\"g\">\n\n</｜DSML｜invoke>\n</｜DSML｜tool_calls><｜end▁of▁sentence｜>" +
		"<｜User｜><tool_result>one</tool_result>\n\n<tool_result>two</tool_result><｜Assistant｜>"
	for name, tc := range map[string]struct{ body, want string }{
		"a low effort": {turns + `,"reasoning_effort":"low"}`, dsBegin + said + "</think>" + calls + "<think>"},
		"no thinking":  {turns + `,"chat_template_kwargs":{"thinking":false}}`, dsBegin + said + "</think>" + calls + "</think>"},
		"no effort":    {turns + `,"reasoning_effort":"none"}`, dsBegin + said + "</think>" + calls + "</think>"},
		"by default":   {turns + `}`, dsBegin + dsEfforts["high"] + said + "</think>" + calls + "<think>"},
		"thoughts are kept": {turns + `,"reasoning_effort":"max","chat_template_kwargs":{"drop_thinking":false}}`,
			dsBegin + dsEfforts["max"] + said + "<think>hm</think>" + calls + "<think>"},
	} {
		if got := mustRender(t, r, tc.body).Text; got != tc.want {
			t.Errorf("%s:\n%q\nwant\n%q", name, got, tc.want)
		}
	}
	for name, body := range map[string]string{
		"an image":           `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}]}`,
		"a number":           `{"messages":[{"role":"user","content":"q"}],"chat_template_kwargs":{"drop_thinking":1}}`,
		"a tool's reference": `{"messages":[{"role":"user","content":"q"},{"role":"tool","tool_call_id":"1","content":[{"type":"tool_reference","name":"f"}]}]}`,
	} {
		if u := new(Unrenderable); !unrenders(r, Completions, body, &u) {
			t.Errorf("%s is rendered", name)
		}
	}
}
