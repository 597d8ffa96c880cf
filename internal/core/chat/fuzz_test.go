package chat

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
	"github.com/eppctl/eppctl/internal/testdata"
)

// FuzzRender: no body ends in a panic or a hang; a prompt's exact part is in it.
func FuzzRender(f *testing.F) {
	for _, s := range []string{
		`{"messages":[{"role":"system","content":"x-anthropic-billing-header: a\nb"},{"role":"user","content":[{"type":"text","text":"Hi"},{"type":"image_url","image_url":{"url":"x"}}]}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"number"}}}}}]}`,
		`{"messages":[{"role":"assistant","content":null,"reasoning":"r","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1.0}"}}]},{"role":"tool","tool_call_id":"c","content":"x"}],"continue_final_message":true,"add_generation_prompt":false}`,
		`{"messages":[{"role":"tool","tool_call_id":"b","content":"x"},{"role":"developer","content":"d","tools":[{"function":{"name":"f"}}]},{"role":"latest_reminder","content":"r","task":"action"}],"chat_template_kwargs":{"thinking":true,"drop_thinking":false}}`,
		`{"messages":[{"role":"assistant","content":"a","reasoning":NaN,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":[-Infinity,NaN]}"}}]}],"tools":[{"type":"function","function":{"name":"f","parameters":{"a":Infinity}}}],"x":NaN,"stop":[NaN]}`,
		`{"messages":[{"role":"developer","content":"d"},{"role":"user","content":"u"}],"chat_template_kwargs":{"enable_thinking":false},"reasoning_effort":"low"}`,
	} {
		f.Add([]byte(s))
	}
	var all []*Renderer
	for _, source := range []string{plain, looping, testdata.Template(f, "npm-qwen3"), testdata.Template(f, "Qwen3.5-35B-A3B-Q8_0"), testdata.Template(f, "GLM-5.2")} {
		r, err := New(Files{ChatTemplate: []byte(source)}, Options{Limits: jinja2.Limits{Output: 1 << 16, Steps: 20_000, Depth: 50}})
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, r)
	}
	for mode := range encoders {
		r, err := New(Files{}, Options{Model: Model{TokenizerMode: mode}})
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, r)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, r := range all {
			p, err := r.Render(context.Background(), body, time.Unix(1e9, 0))
			var refused *Rejected
			var unknown *Unrenderable
			switch {
			case err != nil && !errors.As(err, &refused) && !errors.As(err, &unknown):
				t.Fatal(err)
			case err == nil && (p.Exact < 0 || p.Exact > len(p.Text)):
				t.Fatalf("exact up to %d of %d", p.Exact, len(p.Text))
			}
		}
	})
}

// FuzzFiles: no file of a model repository ends in a panic.
func FuzzFiles(f *testing.F) {
	f.Add([]byte(`{"bos_token":"<s>","eos_token":{"content":"</s>"},"chat_template":[{"name":"default","template":"{{ bos_token }}"}]}`), []byte(`{"chat_template":"x"}`), []byte("{{ messages }}"))
	f.Fuzz(func(t *testing.T, config, processor, jinja []byte) {
		files := Files{TokenizerConfig: config, SpecialTokens: config, ProcessorJSON: processor}
		if len(jinja) > 0 {
			files.ChatTemplate = jinja
		}
		if r, err := New(files, Options{Limits: jinja2.Limits{Output: 1 << 16, Steps: 20_000, Depth: 50}}); err == nil {
			r.Render(context.Background(), []byte(`{"messages":[{"role":"user","content":"q"}]}`), time.Time{})
		}
	})
}
