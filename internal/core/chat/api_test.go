package chat

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
	"github.com/eppctl/eppctl/internal/testdata"
)

// chatForms are requests in other forms and what a real vLLM tokenized for them
// (testdata/engines/README.md).
type chatForms struct {
	Cases []struct {
		Name, Path string
		Body       json.RawMessage
	}
	Templates map[string]struct {
		SHA256  string `json:"template_sha256"`
		Renders []struct {
			Status, Bytes int
			SHA256        string
			Text, Error   string
		}
	}
}

func readForms(tb testing.TB) (dir string, c chatForms) {
	tb.Helper()
	dir = testdata.Dirs(tb, "engines")[0]
	testdata.GzipJSON(tb, filepath.Join(dir, "chat-forms", "chat-forms.json.gz"), &c)
	return dir, c
}

func apiOf(path string) API {
	if path == "/v1/messages" {
		return Messages
	}
	return Responses
}

// unknown are the cases whose prompts are not known here, with why.
var unknown = map[string]string{"previous": "the history of previous_response_id is in the memory of one engine"}

// lenient are those that vLLM refuses and we do not: there is nothing to miss.
var lenient = map[string]bool{"tool unknown": true, "choice required no tools": true, "choice wrong": true}

// TestForms: every request to /v1/messages and /v1/responses, with every template,
// is the text that vLLM tokenized, or refused where vLLM refuses.
func TestForms(t *testing.T) {
	dir, forms := readForms(t)
	config := readFile(t, filepath.Join(dir, "models", "tiny-llama", "tokenizer_config.json"))
	for name, want := range forms.Templates {
		t.Run(name, func(t *testing.T) {
			source := testdata.Template(t, name)
			if sum := sha256.Sum256([]byte(source)); hex.EncodeToString(sum[:]) != want.SHA256 {
				t.Fatal("not the template of the capture")
			}
			// The render server takes no thinking for the effort none.
			r, err := New(Files{TokenizerConfig: config}, Options{Template: source, DisabledEffort: "none"})
			if err != nil {
				t.Fatal(err)
			}
			right, refused := 0, 0
			for i, w := range want.Renders {
				c := forms.Cases[i]
				got, err := r.RenderAPI(context.Background(), apiOf(c.Path), c.Body, capturedAt)
				no, open := new(Rejected), new(Unrenderable)
				switch {
				case errors.As(err, &open):
					if unknown[c.Name] != open.Reason {
						t.Errorf("%s %s: %v, vLLM answers %d", c.Path, c.Name, err, w.Status)
					}
				case w.Status != 200:
					if refused++; !errors.As(err, &no) && !lenient[c.Name] {
						t.Errorf("%s %s: vLLM answers %d %s, we return %v %v\n%s", c.Path, c.Name, w.Status, w.Error, got, err, c.Body)
					}
				case err != nil:
					t.Errorf("%s %s: %v\n%s", c.Path, c.Name, err, c.Body)
				default:
					if got.Special {
						got.Text = "<|bos|>" + got.Text
					}
					if diff := differs(got.Text, w.Bytes, w.SHA256, w.Text, nil); diff != "" {
						t.Errorf("%s %s: %s\n%s", c.Path, c.Name, diff, c.Body)
					} else {
						right++
					}
				}
			}
			t.Logf("%d prompts are vLLM's, %d requests are refused by both", right, refused)
		})
	}
	if len(forms.Templates) < 3 {
		t.Errorf("%d templates", len(forms.Templates))
	}
}

// TestToCompletions: the chat request that another form is turned into is the same
// prompt.
func TestToCompletions(t *testing.T) {
	_, forms := readForms(t)
	r, err := New(Files{ChatTemplate: []byte(testdata.Template(t, "npm-qwen3"))}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	for _, c := range forms.Cases {
		want, err := r.RenderAPI(t.Context(), apiOf(c.Path), c.Body, capturedAt)
		if err != nil {
			continue
		}
		body, _, err := ToCompletions(VLLM, apiOf(c.Path), c.Body)
		if open := new(Unrenderable); errors.As(err, &open) {
			continue // an inline system message, or thinking disabled
		}
		if err != nil {
			t.Errorf("%s %s: %v", c.Path, c.Name, err)
			continue
		}
		if got, err := r.Render(t.Context(), body, capturedAt); err != nil || got.Text != want.Text || want.Special != bytes.Contains(body, []byte(`"add_special_tokens": true`)) {
			t.Errorf("%s %s: by way of a chat request: %v", c.Path, c.Name, err)
			continue
		}
		same++
	}
	if same < 300 {
		t.Errorf("only %d are compared", same)
	}
}

func TestSGLangForms(t *testing.T) {
	for _, c := range []struct{ api, body, want string }{
		{"messages", `{"system":"S","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"text","text":"b"}]}]}`,
			`{"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "add_generation_prompt": true, "continue_final_message": false}`},
		{"messages", `{"system":[{"type":"text","text":"S"},{"type":"text","text":"T"}],"messages":[{"role":"user","content":""}]}`,
			`{"messages": [{"role": "system", "content": "S\nT"}, {"role": "user", "content": ""}], "add_generation_prompt": true, "continue_final_message": false}`},
		{"messages", `{"system":" ","messages":[{"role":"user","content":"a"}]}`,
			`{"messages": [{"role": "user", "content": "a"}], "add_generation_prompt": true, "continue_final_message": false}`},
		{"messages", `{"tools":[],"messages":[{"role":"user","content":"a"}]}`, ""},
		{"messages", `{"messages":[{"role":"system","content":"a"}]}`, ""},
		{"messages", `{"messages":[{"role":"user","content":[{"type":"image"}]}]}`, ""},
		{"responses", `{"instructions":"S","input":"a"}`,
			`{"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "a"}], "add_generation_prompt": true, "continue_final_message": false}`},
		{"responses", `{"input":[{"role":"assistant","content":"a"},{"role":"assistant","content":"b"}]}`, ""},
		{"responses", `{"input":[{"role":"developer","content":"a"}]}`, ""},
		{"responses", `{"input":[{"type":"function_call"}]}`, ""},
	} {
		api := Messages
		if c.api == "responses" {
			api = Responses
		}
		got, _, err := ToCompletions(SGLang, api, []byte(c.body))
		if open := new(Unrenderable); string(got) != c.want || c.want == "" && !errors.As(err, &open) {
			t.Errorf("%s: %s %v", c.body, got, err)
		}
	}
}

// TestNoThinking: vLLM's rule for thinking of type disabled.
func TestNoThinking(t *testing.T) {
	for source, want := range map[string]string{
		`{{ messages[0].content }}`: "low", // every effort prints the same
		`{{ reasoning_effort }}`:    "none",
		`{% if reasoning_effort == 'none' %}{{ raise_exception('x') }}{% endif %}{{ reasoning_effort }}`: "low",
		`{% if reasoning_effort in ['low', 'high'] %}{{ reasoning_effort }}{% else %}max{% endif %}`:     "low",
		`{% if enable_thinking %}think{% endif %}`:                                                       "none",
	} {
		r, err := New(Files{ChatTemplate: []byte(source)}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time from memory
			if got, err := r.noThinking(t.Context(), time.Time{}); err != nil || got != want {
				t.Errorf("%s: %q, %v instead of %q", source, got, err, want)
			}
		}
	}
}

// TestSystemFirst: vLLM's rule for system messages inside of a conversation.
func TestSystemFirst(t *testing.T) {
	for source, want := range map[string]bool{
		`{% for m in messages %}{{ m.content }}{% endfor %}`:                                                                     false,
		`{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('x') }}{% endif %}{% endfor %}`: true,
		`{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('x') }}{% endif %}{% endfor %}`:                      false,
		`{{ strftime_now('%Y') }}`:                          true, // no such function where vLLM tries
		`{% if tools %}{{ strftime_now('%Y') }}{% endif %}`: false,
		`{% generation %}{% endgeneration %}`:               true, // nor such a tag
	} {
		r, err := New(Files{ChatTemplate: []byte(source)}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.systemFirst(t.Context(), capturedAt); err != nil || got != want {
			t.Errorf("%s: %v, %v", source, got, err)
		}
	}
}

// FuzzForms: no body ends in a panic, and what a form is turned into is a chat
// request that can be read.
func FuzzForms(f *testing.F) {
	_, forms := readForms(f)
	for _, c := range forms.Cases[:150] {
		f.Add(c.Path == "/v1/messages", []byte(c.Body))
	}
	f.Fuzz(func(t *testing.T, anthropic bool, body []byte) {
		api := Responses
		if anthropic {
			api = Messages
		}
		for _, engine := range []Engine{VLLM, SGLang} {
			out, _, err := ToCompletions(engine, api, body)
			no, open := new(Rejected), new(Unrenderable)
			switch {
			case err != nil && !errors.As(err, &no) && !errors.As(err, &open):
				t.Fatal(err)
			case err == nil:
				v, err := jinja2.ParseJSON(out)
				if err != nil || !member(v, "messages").IsList() {
					t.Fatalf("%q: %v", out, err)
				}
			}
		}
	})
}
