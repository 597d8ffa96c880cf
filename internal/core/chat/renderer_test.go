package chat

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// plain prints all of what it is given.
const plain = `{{ bos_token }}{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}{{ m.content|tojson }}{% endif %}` +
	`{% if m.tool_calls %}{{ m.tool_calls|tojson }}{% endif %}{% if m.reasoning_content %}[{{ m.reasoning_content }}]{% endif %}{{ '\n' }}{% endfor %}{% if tools %}{{ tools|tojson }}{% endif %}{% if add_generation_prompt %}<assistant>{% endif %}`

// looping is a template for lists of parts.
const looping = `{% for m in messages %}<{{ m.role }}>{% if m.content is string %}STRING{{ m.content }}{% else %}{% for c in m.content %}` +
	`{% if c.type == 'text' %}{{ c.text }}{% else %}<|{{ c.type }}|>{% endif %}{% endfor %}{% endif %}{{ '\n' }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}`

func renderer(t *testing.T, source string, o Options) *Renderer {
	t.Helper()
	r, err := New(Files{TokenizerConfig: []byte(`{"bos_token":"<s>","eos_token":{"content":"</s>","lstrip":false}}`), ChatTemplate: []byte(source)}, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustRender(t *testing.T, r *Renderer, body string) *Prompt {
	t.Helper()
	p, err := r.Render(context.Background(), []byte(body), time.Time{})
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return p
}

func TestPrompts(t *testing.T) {
	for name, tc := range map[string]struct{ source, body, want string }{
		"text": {plain, `{"messages":[{"role":"user","content":" Hi\n"}]}`, "<s><user> Hi\n\n<assistant>"},
		"parts joined, empty ones left out": {plain, `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":""},{"type":"input_text","text":"b"}]}]}`,
			"<s><user>a\nb\n<assistant>"},
		"text wrapped: TK-37": {looping, `{"messages":[{"role":"user","content":"Hi"}]}`, "<user>Hi\n<assistant>"},
		"a tool's parts are joined in both formats": {looping, `{"messages":[{"role":"tool","content":[{"type":"text","text":"a"},{"type":"text","text":""},{"type":"text","text":"b"}]}]}`,
			"<tool>STRINGa\n\nb\n<assistant>"},
		"null content": {plain, `{"messages":[{"role":"assistant","content":null}],"add_generation_prompt":false}`, "<s><assistant>\n"},
		"calls": {plain, `{"messages":[{"role":"assistant","tool_calls":[{"type":"function","id":"c","x":1,"function":{"name":"f","arguments":"{\"b\": 1.0, \"a\": [1e20, 12345678901234567890, \"\\u00e9<&>'\"], \"b\": true}"}}]}]}`,
			`<s><assistant>[{"id": "c", "function": {"arguments": {"b": true, "a": [1e+20, 12345678901234567890, "é<&>'"]}, "name": "f"}, "type": "function"}]` + "\n<assistant>"},
		"reasoning": {plain, `{"messages":[{"role":"assistant","content":"a","reasoning":"r"}]}`, "<s><assistant>a[r]\n<assistant>"},
		"tools, in vLLM's order": {plain, `{"messages":[{"role":"user","content":"q"}],"tools":[{"function":{"zzz":1,"parameters":{"b":1,"a":2},"name":"f"},"type":"function"},{"function":{"name":"g","strict":true,"description":"d"}}]}`,
			`<s><user>q` + "\n" + `[{"type": "function", "function": {"name": "f", "description": null, "parameters": {"b": 1, "a": 2}}}, {"type": "function", "function": {"name": "g", "description": "d", "parameters": null, "strict": true}}]<assistant>`},
		"developer becomes system, in front":          {plain, `{"messages":[{"role":"user","content":"q"},{"role":"developer","content":"d","tools":[]},{"role":"system","content":"s"}]}`, "<s><system>d\n\ns\n<user>q\n<assistant>"},
		"developer stays where the template knows it": {`{# 'developer' #}` + plain, `{"messages":[{"role":"user","content":"q"},{"role":"developer","content":"d"}]}`, "<s><user>q\n<developer>d\n<assistant>"},
		"systems stay without a developer":            {plain, `{"messages":[{"role":"user","content":"q"},{"role":"system","content":"s"}]}`, "<s><user>q\n<system>s\n<assistant>"},
		"continued":                                   {plain, `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"The answer "}],"add_generation_prompt":false,"continue_final_message":true}`, "<s><user>q\n<assistant>The answer "},
		"continued where it is trimmed":               {`{% for m in messages %}{{ m.content|trim }}|{% endfor %}`, `{"messages":[{"role":"assistant","content":"The answer "}],"add_generation_prompt":false,"continue_final_message":true}`, "The answer"},
		"continued part":                              {looping, `{"messages":[{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}],"add_generation_prompt":false,"continue_final_message":true}`, "<assistant>ab"},
		"duplicate keys: last value, first place":     {plain, `{"messages":[],"x":1,"messages":[{"role":"user","content":"old","content":"new"}]}`, "<s><user>new\n<assistant>"},
		"duplicate keys in arguments":                 {`{{ messages[0].tool_calls[0].function.arguments|tojson }}`, `{"messages":[{"role":"assistant","tool_calls":[{"type":"function","id":"c","function":{"name":"f","arguments":"{\"b\":1,\"a\":2,\"b\":3}"}}]}]}`, `{"b": 3, "a": 2}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mustRender(t, renderer(t, tc.source, Options{}), tc.body); got.Text != tc.want || got.Exact != len(got.Text) {
				t.Errorf("got  %q\nwant %q, exact up to %d", got.Text, tc.want, got.Exact)
			}
		})
	}
}

// TestRejected: what vLLM answers with 400.
func TestRejected(t *testing.T) {
	r := renderer(t, plain, Options{})
	for _, body := range []string{
		``, `[]`, `{`, `{"messages":[]}`, `{"messages":"x"}`, `{"messages":[1]}`, `{"messages":[{"content":"x"}]}`,
		`{"messages":[{"role":"user","content":null}]}`, `{"messages":[{"role":"user","content":3}]}`, `{"messages":[{"role":"user","content":["a"]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"image"}]}]}`, `{"messages":[{"role":"user","content":[{"text":"a"}]}]}`,
		`{"messages":[{"role":"user","content":"q"}],"tools":[]}`, `{"messages":[{"role":"user","content":"q"}],"tools":[{"type":"x","function":{"name":"f"}}]}`,
		`{"messages":[{"role":"user","content":"q"}],"tools":[{"type":"function","function":{}}]}`,
		`{"messages":[{"role":"user","content":"q"}],"tool_choice":"auto"}`,
		`{"messages":[{"role":"user","content":"q"}],"tools":[{"function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"g"}}}`,
		`{"messages":[{"role":"user","content":"q"}],"tools":[{"function":{"name":"f"}}],"tool_choice":"sometimes"}`,
		`{"messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":{}}}]}]}`,
		`{"messages":[{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f","arguments":"{}"}}]}]}`,
		`{"messages":[{"role":"user","content":"q"}],"continue_final_message":true}`,
		`{"messages":[{"role":"user","content":"q"}],"reasoning_effort":"extreme"}`,
		`{"messages":[{"role":"user","content":"q"}],"documents":[1]}`, `{"messages":[{"role":"user","content":"q"}],"documents":[{"title":1}]}`,
		`{"messages":[{"role":"user","content":"q","name":1}]}`, `{"messages":[{"role":"user","content":"q","tool_calls":true}]}`,
		`{"messages":[{"role":"tool","content":"q","tool_call_id":1}]}`,
		`{"messages":[{"role":"user","content":"q"}],"top_p":NaN}`, `{"messages":[{"role":"user","content":"q"}],"stop":["a",-Infinity]}`,
		`{"messages":[{"role":"user","content":"q"}],"max_tokens":1e999}`, `{"messages":[{"role":"user","content":"q"}],"x":-NaN}`,
		`{"messages":[{"role":"user","content":"q"}],"chat_template_kwargs":[]}`,
		`{"messages":[{"role":"user","content":"q"}],"add_generation_prompt":null}`,
	} {
		_, err := r.Render(context.Background(), []byte(body), time.Time{})
		if refused := new(Rejected); !errors.As(err, &refused) {
			t.Errorf("%s: %v", body, err)
		}
	}
	raises := renderer(t, `{{ raise_exception(messages[0].content) }}`, Options{})
	_, err := raises.Render(context.Background(), []byte(`{"messages":[{"role":"user","content":"SECRET"}]}`), time.Time{})
	if refused := new(Rejected); !errors.As(err, &refused) || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("raise_exception: %v", err)
	}
}

// TestUnrenderable: what may have a prompt, and it is not known.
func TestUnrenderable(t *testing.T) {
	r := renderer(t, plain+`{% if when is defined %}{{ strftime_now('%Y') }}{% endif %}`, Options{})
	for _, body := range []string{
		`{"messages":[{"role":"user","content":"\ud800"}]}`,
		`{"messages":[{"role":"user","content":"x"}],"deep":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`,
		`{"messages":[{"role":"user","content":"x"}],"chat_template":"{{ 1 }}"}`,
		`{"messages":[{"role":"user","content":"x"}],"chat_template_kwargs":{"tokenize":false}}`,
		`{"messages":[{"role":"user","content":[{"type":"prompt_embeds","data":"AA"}]}]}`,
		`{"messages":[{"role":"user","content":"x"}],"chat_template_kwargs":{"when":true}}`,
	} {
		_, err := r.Render(context.Background(), []byte(body), time.Time{})
		if u := new(Unrenderable); !errors.As(err, &u) {
			t.Errorf("%.100s: %v", body, err)
		}
	}
}

func TestKwargs(t *testing.T) {
	r := renderer(t, `{{ a }},{{ b }},{{ enable_thinking }},{{ reasoning_effort }},{{ documents }},{{ messages|length }}`, Options{Kwargs: []byte(`{"a":"server","b":"server"}`)})
	for body, want := range map[string]string{
		``: "server,server,,,None,1",
		`,"chat_template_kwargs":{"a":"request","nonsense":1}`:                                     "request,server,,,None,1",
		`,"chat_template_kwargs":{"a":null,"b":"auto"}`:                                            "server,server,,,None,1",
		`,"chat_template_kwargs":{"b":false}`:                                                      "server,False,,,None,1",
		`,"reasoning_effort":"high"`:                                                               "server,server,True,high,None,1",
		`,"reasoning_effort":"none"`:                                                               "server,server,False,none,None,1",
		`,"reasoning_effort":"high","chat_template_kwargs":{"enable_thinking":false}`:              "server,server,False,high,None,1",
		`,"documents":[{"title":"t"}],"chat_template_kwargs":{"documents":1,"reasoning_effort":2}`: "server,server,,2,[{'title': 't'}],1",
	} {
		if got := mustRender(t, r, `{"messages":[{"role":"user","content":"x"}]`+body+`}`); got.Text != want {
			t.Errorf("%s: %q instead of %q", body, got.Text, want)
		}
	}
}

// TestBillingHeader: TK-38.
func TestBillingHeader(t *testing.T) {
	for _, source := range []string{plain, looping} {
		r := renderer(t, source, Options{})
		a := mustRender(t, r, `{"messages":[{"role":"system","content":"x-anthropic-billing-header: cch=1\nreal"},{"role":"user","content":"q"}]}`)
		b := mustRender(t, r, `{"messages":[{"role":"system","content":"x-anthropic-billing-header: cch=2\nreal"},{"role":"user","content":"q"}]}`)
		if a.Text != b.Text || !strings.Contains(a.Text, "<system>real") || !slices.Contains(a.Warnings, BillingHeaderRemoved) {
			t.Errorf("%q and %q, %v", a.Text, b.Text, a.Warnings)
		}
		user := mustRender(t, r, `{"messages":[{"role":"user","content":"x-anthropic-billing-header: cch=2\nreal"}]}`)
		if !strings.Contains(user.Text, "billing") || len(user.Warnings) > 0 {
			t.Errorf("a user's text: %q", user.Text)
		}
	}
}

// TestMedia: the prompt is exact up to the first part that is no text.
func TestMedia(t *testing.T) {
	const head = `{"messages":[{"role":"user","content":"before"},{"role":"user","content":[{"type":"text","text":"look"},`
	const image = `{"type":"image_url","image_url":{"url":"data:x"}}`
	for name, tc := range map[string]struct{ source, body, want, exact string }{
		"a part": {looping, head + image + `,{"type":"text","text":"after"}]}]}`,
			"<user>before\n<user>look<|image|>after\n<assistant>", "<user>before\n<user>look"},
		"a string: in front of the message's text": {plain, head + image + `]}]}`,
			"<s><user>before\n<user>look\n<assistant>", "<s><user>before\n<user>"},
		"counted in front": {`{{ messages|map(attribute='content')|map('selectattr', 'type', 'equalto', 'image')|map('list')|map('length')|sum }}{% for m in messages %}{% for c in m.content %}{{ c.text }}{% endfor %}{% endfor %}`,
			head + image + `]}]}`, "1beforelook", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := mustRender(t, renderer(t, tc.source, Options{}), tc.body)
			if p.Text != tc.want || p.Text[:p.Exact] != tc.exact || !slices.Contains(p.Warnings, MediaReached) {
				t.Errorf("%q, exact %q, %v", p.Text, p.Text[:p.Exact], p.Warnings)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	body := `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a","reasoning":"because"},{"role":"user","content":"q2"}]}`
	if p := mustRender(t, renderer(t, plain, Options{}), body); len(p.Warnings) > 0 {
		t.Errorf("reasoning that is printed: %v", p.Warnings)
	}
	if p := mustRender(t, renderer(t, looping, Options{}), body); !slices.Contains(p.Warnings, ReasoningLeftOut) {
		t.Errorf("reasoning that is left out: %v", p.Warnings)
	}
	inline := `{"messages":[{"role":"assistant","content":"<think>\nwhy\n</think>\n\na"}]}`
	if p := mustRender(t, renderer(t, `{{ messages[0].content.split('</think>')[-1] }}`, Options{}), inline); !slices.Contains(p.Warnings, ReasoningLeftOut) {
		t.Errorf("reasoning inside of the text: %v", p.Warnings)
	}
	dated := renderer(t, `{{ strftime_now('%d %b %Y %H') }}`, Options{})
	zone := time.FixedZone("", 14*3600)
	p, err := dated.Render(context.Background(), []byte(body), time.Date(2026, 11, 29, 11, 0, 0, 0, time.UTC).In(zone))
	if err != nil || p.Text != "30 Nov 2026 01" || !slices.Contains(p.Warnings, DateInPrompt) {
		t.Errorf("a date: %+v, %v", p, err)
	}
	bad := mustRender(t, renderer(t, plain, Options{}), `{"messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"[1"}}]}]}`)
	if !slices.Contains(bad.Warnings, ArgumentsReplaced) || !strings.Contains(bad.Text, `"arguments": {}`) {
		t.Errorf("arguments: %q, %v", bad.Text, bad.Warnings)
	}
}

func TestSGLang(t *testing.T) {
	r := renderer(t, looping, Options{Engine: SGLang})
	if p := mustRender(t, r, `{"messages":[{"role":"user","content":"Hi"}]}`); p.Text != "<user>STRINGHi\n<assistant>" || len(p.Warnings) > 0 {
		t.Errorf("%q, %v", p.Text, p.Warnings)
	}
	for _, body := range []string{`{"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}]}`, `{"messages":[{"role":"user","content":"q"}],"tools":[{"function":{"name":"f"}}]}`,
		`{"messages":[{"role":"assistant","content":"q","reasoning_content":"r"}]}`} {
		if p := mustRender(t, r, body); !slices.Contains(p.Warnings, Unverified) {
			t.Errorf("%s: %v", body, p.Warnings)
		}
	}
}

func TestServerOptions(t *testing.T) {
	tools := `{"messages":[{"role":"user","content":"q"}],"tools":[{"function":{"name":"f"}}]`
	r := renderer(t, plain, Options{DropToolsOnNone: true, NoToolParser: true})
	if p := mustRender(t, r, tools+`,"tool_choice":"none"}`); strings.Contains(p.Text, "function") {
		t.Errorf("%q", p.Text)
	}
	_, err := r.Render(context.Background(), []byte(tools+`}`), time.Time{})
	if refused := new(Rejected); !errors.As(err, &refused) {
		t.Errorf("auto without a parser: %v", err)
	}
	if p := mustRender(t, renderer(t, plain, Options{}), tools+`,"tool_choice":"none"}`); !strings.Contains(p.Text, "function") {
		t.Errorf("tools with none: %q", p.Text)
	}
}

// TestBypass: TK-35.
func TestBypass(t *testing.T) {
	arch := func(names ...string) Model { return Model{Architectures: names} }
	for _, m := range []Model{
		arch("GptOssForCausalLM"), {Type: "gpt_oss_next", Architectures: []string{"GptOssForCausalLM"}, TokenizerMode: "hf"},
		{TokenizerMode: "mistral"}, {MistralFormat: true}, {TokenizerMode: "auto", MistralFormat: true}, {Type: "deepseek_v4", MistralFormat: true},
		{TokenizerMode: "deepseek_v41"}, {Type: "deepseek_v41"}, arch("DeepseekV41ForCausalLM"), arch("Other", "DeepseekV41ForCausalLM"),
		{Type: "deepseek_v3", Architectures: []string{"DeepseekV41ForCausalLM"}},
		{Type: "kimi_k3"}, arch("KimiK3ForConditionalGeneration"), {TokenizerMode: "kimi_audio"}, arch("MoonshotKimiaForCausalLM"),
		arch("InklingForCausalLM"), arch("InklingForConditionalGeneration"), {TokenizerMode: "cohere"}, {TokenizerMode: "something new"},
	} {
		_, err := New(Files{ChatTemplate: []byte(plain)}, Options{Model: m})
		if u := new(Unrenderable); !errors.As(err, &u) || u.Reason == "" {
			t.Errorf("%+v: %v", m, err)
		}
	}
	for own, models := range map[string][]Model{
		"harmony":      {{Type: "gpt_oss"}, {Type: "gpt_oss", Architectures: []string{"GptOssForCausalLM"}, TokenizerMode: "hf"}, {Type: "gpt_oss", TokenizerMode: "deepseek_v32"}, {Type: "gpt_oss", MistralFormat: true}},
		"deepseek_v32": {{TokenizerMode: "deepseek_v32"}, {Type: "deepseek_v32"}, arch("DeepseekV32ForCausalLM"), {Type: "deepseek_v3", Architectures: []string{"Other", "DeepseekV32ForCausalLM"}}},
		"deepseek_v4":  {{TokenizerMode: "deepseek_v4"}, {Type: "deepseek_v4", TokenizerMode: "auto"}, arch("DeepseekV4ForCausalLM"), arch("DeepseekV4ForConditionalGeneration")},
	} {
		for _, m := range models {
			r, err := New(Files{ChatTemplate: []byte(plain)}, Options{Model: m})
			if err != nil || r.Encoder() != own {
				t.Errorf("%+v: %v", m, err)
			}
			if _, err := New(Files{ChatTemplate: []byte(plain)}, Options{Model: m, Engine: SGLang}); err == nil {
				t.Errorf("%+v of SGLang is rendered", m)
			}
		}
	}
	for _, m := range []Model{{}, {Type: "qwen3", Architectures: []string{"Qwen3ForCausalLM"}, TokenizerMode: "auto"}, {TokenizerMode: "hf", MistralFormat: true}, {TokenizerMode: "slow"}, {Type: "deepseek_v4", TokenizerMode: "hf"}} {
		if why := m.Bypass(); why != "" {
			t.Errorf("%+v: %s", m, why)
		}
		if r, err := New(Files{ChatTemplate: []byte(plain)}, Options{Model: m}); err != nil || r.Encoder() != "" {
			t.Errorf("%+v is not rendered from its template: %v", m, err)
		}
	}
}

// TestBypassWithTools: Kimi-K2.5's own code writes the tools of a chat, and a template
// that wants them so is one of its family, whatever the model is called. Chats without
// tools are rendered.
func TestBypassWithTools(t *testing.T) {
	const wants = "{% if tools %}{% if tools_ts_str %}{{ tools_ts_str }}{% else %}{{ tools|tojson }}{% endif %}{% endif %}{{ messages[0].content }}"
	for name, tc := range map[string]struct {
		template string
		model    Model
		bypass   bool
	}{
		"by the template":     {wants, Model{}, true},
		"by the type":         {plain, Model{Type: "kimi_k25"}, true},
		"by the architecture": {plain, Model{Architectures: []string{"KimiK25ForConditionalGeneration"}}, true},
		"Kimi-K2":             {plain, Model{Type: "kimi_k2"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := renderer(t, tc.template, Options{Model: tc.model})
			mustRender(t, r, `{"messages":[{"role":"user","content":"q"}]}`)
			_, err := r.Render(t.Context(), []byte(`{"messages":[{"role":"user","content":"q"}],"tools":[{"type":"function","function":{"name":"f"}}]}`), time.Time{})
			if u := new(Unrenderable); errors.As(err, &u) != tc.bypass || !tc.bypass && err != nil {
				t.Errorf("with tools: %v", err)
			}
		})
	}
}

func TestFiles(t *testing.T) {
	ask := func(f Files, o Options, tools bool) string {
		r, err := New(f, o)
		if err != nil {
			return err.Error()
		}
		body := `{"messages":[{"role":"user","content":"q"}]`
		if tools {
			body += `,"tools":[{"function":{"name":"f"}}]`
		}
		return mustRender(t, r, body+`}`).Text
	}
	named := []byte(`{"eos_token":{"content":"E"},"chat_template":[{"name":"default","template":"default{{ eos_token }}"},{"name":"tool_use","template":"tools"},{"name":"rag","template":"rag"}]}`)
	for name, tc := range map[string]struct {
		files       Files
		options     Options
		plain, tool string
	}{
		"one":                  {Files{TokenizerConfig: []byte(`{"chat_template":"one"}`)}, Options{}, "one", "one"},
		"named":                {Files{TokenizerConfig: named}, Options{}, "defaultE", "tools"},
		"a file of its own":    {Files{TokenizerConfig: []byte(`{"bos_token":"B","chat_template":"one"}`), ChatTemplate: []byte("file{{ bos_token }}\n")}, Options{}, "fileB", "fileB"},
		"more files":           {Files{ChatTemplate: []byte("file"), Additional: map[string][]byte{"tool_use": []byte("more")}}, Options{}, "file", "more"},
		"a processor's":        {Files{TokenizerConfig: named, ProcessorJSON: []byte(`{"chat_template":"processor"}`)}, Options{}, "processor", "tools"},
		"the engine's":         {Files{TokenizerConfig: named}, Options{Template: "given"}, "given", "given"},
		"special tokens":       {Files{SpecialTokens: []byte(`{"eos_token":"X","bos_token":"Y"}`), TokenizerConfig: []byte(`{"eos_token":"Z","chat_template":"{{ eos_token }}{{ bos_token }}"}`)}, Options{}, "ZY", "ZY"},
		"none":                 {Files{}, Options{}, "cannot be rendered here: the model has no chat template", "cannot be rendered here: the model has no chat template"},
		"no default":           {Files{TokenizerConfig: []byte(`{"chat_template":[{"name":"rag","template":"x"}]}`)}, Options{}, "cannot be rendered here: the model has no default chat template, only rag", "cannot be rendered here: the model has no default chat template, only rag"},
		"not JSON":             {Files{TokenizerConfig: []byte(`{`)}, Options{}, "tokenizer_config.json: the template is given what is no JSON", "tokenizer_config.json: the template is given what is no JSON"},
		"a broken template":    {Files{ChatTemplate: []byte("{% if %}")}, Options{}, "the engine refuses the request: the template is no Jinja2: template line 1: expected an expression, got end of statement block", "the engine refuses the request: the template is no Jinja2: template line 1: expected an expression, got end of statement block"},
		"a template we lack":   {Files{ChatTemplate: []byte("{% include 'x' %}")}, Options{}, "cannot be rendered here: template line 1: the statement include is not supported", "cannot be rendered here: template line 1: the statement include is not supported"},
		"kwargs are no JSON":   {Files{ChatTemplate: []byte("x")}, Options{Kwargs: []byte("{")}, "default chat template kwargs: the template is given what is no JSON", "default chat template kwargs: the template is given what is no JSON"},
		"kwargs are no object": {Files{ChatTemplate: []byte("x")}, Options{Kwargs: []byte("[]")}, "default chat template kwargs: not a JSON object", "default chat template kwargs: not a JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ask(tc.files, tc.options, false); got != tc.plain {
				t.Errorf("without tools: %q instead of %q", got, tc.plain)
			}
			if got := ask(tc.files, tc.options, true); got != tc.tool {
				t.Errorf("with tools: %q instead of %q", got, tc.tool)
			}
		})
	}
}

// TestConcurrentRenders: one renderer, many goroutines, both of its templates.
func TestConcurrentRenders(t *testing.T) {
	r, err := New(Files{TokenizerConfig: []byte(`{"chat_template":[{"name":"default","template":"{{ messages[0].content }}{{ a }}"},{"name":"tool_use","template":"{{ tools|length }}"}]}`)}, Options{Kwargs: []byte(`{"a":[1,{"b":2}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			body, want := `{"messages":[{"role":"user","content":"q"}]}`, "q[1, {'b': 2}]"
			if g%2 == 0 {
				body, want = `{"messages":[{"role":"user","content":"q"}],"tools":[{"function":{"name":"f"}}]}`, "1"
			}
			for range 50 {
				if p, err := r.Render(context.Background(), []byte(body), time.Time{}); err != nil || p.Text != want {
					t.Errorf("%+v, %v", p, err)
				}
			}
		})
	}
	wg.Wait()
}
