package feed

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// TestForms: /tokenize gets the chat that the engine makes of a request of another
// form, and no request whose ids it could not place.
func TestForms(t *testing.T) {
	for name, c := range map[string]struct {
		engine pod.Engine
		text   tokenizer.Text
		sent   string
		status tokenizer.Status
		refuse error
	}{
		"messages": {engine: pod.EngineVLLM, status: tokenizer.Exact,
			text: tokenizer.Text{Shape: tokenizer.Messages, Body: []byte(`{"model":"sql","max_tokens":9,"system":[{"type":"text","text":"S"}],"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`)},
			sent: `{"model":"base","messages":[{"role": "system", "content": "S"}, {"role": "user", "content": "a"}],"add_generation_prompt":true,"continue_final_message":false}`},
		"responses": {engine: pod.EngineVLLM, status: tokenizer.Exact,
			text: tokenizer.Text{Shape: tokenizer.Responses, Body: []byte(`{"model":"sql","input":"a"}`)},
			sent: `{"model":"base","messages":[{"role": "user", "content": "a"}],"add_generation_prompt":true,"continue_final_message":false,"add_special_tokens":true}`},
		"a call without an id": {engine: pod.EngineVLLM, status: tokenizer.Unverified,
			text: tokenizer.Text{Shape: tokenizer.Messages, Body: []byte(`{"messages":[{"role":"assistant","content":[{"type":"tool_use","name":"f"}]}]}`)},
			sent: `{"model":"base","messages":[{"role": "assistant", "tool_calls": [{"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}],"add_generation_prompt":true,"continue_final_message":false}`},
		"SGLang": {engine: pod.EngineSGLang, status: tokenizer.Unverified,
			text: tokenizer.Text{Shape: tokenizer.Messages, Body: []byte(`{"system":"S","messages":[{"role":"user","content":"a"}]}`)},
			sent: `{"model":"base","messages":[{"role": "system", "content": "S"}, {"role": "user", "content": "a"}],"add_generation_prompt":true,"continue_final_message":false}`},
		"an inline system message": {engine: pod.EngineVLLM, refuse: tokenizer.ErrShape,
			text: tokenizer.Text{Shape: tokenizer.Messages, Body: []byte(`{"messages":[{"role":"system","content":"a"}]}`)}},
		"SGLang with tools": {engine: pod.EngineSGLang, refuse: tokenizer.ErrShape,
			text: tokenizer.Text{Shape: tokenizer.Messages, Body: []byte(`{"tools":[{}],"messages":[{"role":"user","content":"a"}]}`)}},
		"an image": {engine: pod.EngineVLLM, refuse: tokenizer.ErrMedia,
			text: tokenizer.Text{Shape: tokenizer.Chat, Media: true, Body: []byte(`{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			sent := ""
			e, asked := tokenizeServer(t, func(w http.ResponseWriter, r *http.Request) {
				b, err := io.ReadAll(r.Body)
				if err != nil || !json.Valid(b) {
					t.Errorf("%s: %v", b, err)
				}
				sent = string(b)
				_, _ = io.WriteString(w, `{"tokens":[1]}`)
			})
			e.Engine = c.engine
			c.text.Model = "base"
			res, err := tokenizeClient(t, e).Tokenize(t.Context(), c.text)
			if c.refuse != nil {
				if !errors.Is(err, c.refuse) || asked.Load() > 0 {
					t.Errorf("%v, asked %d times", err, asked.Load())
				}
				return
			}
			if err != nil || sent != c.sent || res.Status != c.status {
				t.Errorf("%v, %s\n got %s\nwant %s", err, res.Status, sent, c.sent)
			}
		})
	}
}

// TestRenderForms: each form is asked at its own render endpoint, and where there is
// none, which says nothing about the others, by the chat that the engine makes of it.
func TestRenderForms(t *testing.T) {
	const anthropic = `{"model":"sql","max_tokens":9,"system":[{"type":"text","text":"S"}],"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`
	for name, c := range map[string]struct {
		engine pod.Engine
		offers []string // paths before /render
		shape  tokenizer.Shape
		body   string
		media  bool
		asked  []string // in two prompts; a path that is not there is asked once
		sent   string   // last; "" = the body with the base model
		status tokenizer.Status
		fails  error
	}{
		"messages": {offers: []string{"/v1/messages", "/v1/chat/completions"}, shape: tokenizer.Messages, body: anthropic,
			asked: []string{"/v1/messages", "/v1/messages"}, status: tokenizer.Exact},
		"no thinking": {offers: []string{"/v1/messages"}, shape: tokenizer.Messages, body: `{"model":"sql","messages":[],"thinking":{"type":"disabled"}}`,
			asked: []string{"/v1/messages", "/v1/messages"}, status: tokenizer.Unverified},
		"thinking is null": {offers: []string{"/v1/messages"}, shape: tokenizer.Messages, body: `{"model":"sql","messages":[],"thinking":null}`,
			asked: []string{"/v1/messages", "/v1/messages"}, status: tokenizer.Exact},
		"messages as a chat": {offers: []string{"/v1/chat/completions"}, shape: tokenizer.Messages, body: anthropic,
			asked:  []string{"/v1/messages", "/v1/chat/completions", "/v1/chat/completions"},
			sent:   `{"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "a"}], "add_generation_prompt": true, "continue_final_message": false,"model":"base"}`,
			status: tokenizer.Exact},
		"responses as a chat": {offers: []string{"/v1/chat/completions"}, shape: tokenizer.Responses, body: `{"model":"sql","input":"a"}`,
			asked:  []string{"/v1/responses", "/v1/chat/completions", "/v1/chat/completions"},
			sent:   `{"messages": [{"role": "user", "content": "a"}], "add_generation_prompt": true, "continue_final_message": false, "add_special_tokens": true,"model":"base"}`,
			status: tokenizer.Exact},
		"a call without an id": {offers: []string{"/v1/chat/completions"}, shape: tokenizer.Messages,
			body:   `{"model":"sql","messages":[{"role":"assistant","content":[{"type":"tool_use","name":"f"}]}]}`,
			asked:  []string{"/v1/messages", "/v1/chat/completions", "/v1/chat/completions"},
			sent:   `{"messages": [{"role": "assistant", "tool_calls": [{"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}], "add_generation_prompt": true, "continue_final_message": false,"model":"base"}`,
			status: tokenizer.Unverified},
		"SGLang, which has chats alone": {engine: pod.EngineSGLang, offers: []string{"/v1/chat/completions"}, shape: tokenizer.Messages,
			body:   `{"system":"S","messages":[{"role":"user","content":"a"}]}`,
			asked:  []string{"/v1/chat/completions", "/v1/chat/completions"},
			sent:   `{"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "a"}], "add_generation_prompt": true, "continue_final_message": false,"model":"base"}`,
			status: tokenizer.Exact},
		"it depends on the template": {offers: []string{"/v1/chat/completions"}, shape: tokenizer.Messages, body: `{"messages":[{"role":"system","content":"a"}]}`,
			asked: []string{"/v1/messages"}, fails: tokenizer.ErrShape},
		"an image": {offers: []string{"/v1/chat/completions"}, shape: tokenizer.Messages, body: anthropic, media: true,
			asked: []string{"/v1/messages"}, fails: ErrNotOffered},
		"neither": {shape: tokenizer.Responses, body: `{"input":"a"}`, asked: []string{"/v1/responses", "/v1/chat/completions"}, fails: ErrNotOffered},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			sent := ""
			e, _ := tokenizeServer(t, func(w http.ResponseWriter, r *http.Request) {
				path := strings.TrimSuffix(r.URL.Path, "/render")
				asked = append(asked, path)
				if !slices.Contains(c.offers, path) {
					http.NotFound(w, r)
					return
				}
				b, err := io.ReadAll(r.Body)
				if err != nil || !json.Valid(b) {
					t.Errorf("%s: %v", b, err)
				}
				sent = string(b)
				_, _ = io.WriteString(w, `{"token_ids":[1]}`)
			})
			e.Engine = c.engine
			client := renderClient(t, e)
			for range 2 {
				res, err := client.Tokenize(t.Context(), tokenizer.Text{Model: "base", Shape: c.shape, Body: []byte(c.body), Media: c.media})
				if c.fails != nil && !errors.Is(err, c.fails) || c.fails == nil && (err != nil || res.Status != c.status) {
					t.Errorf("%+v %v", res, err)
				}
			}
			if !slices.Equal(asked, c.asked) {
				t.Errorf("asked %v, want %v", asked, c.asked)
			}
			want := c.sent
			if want == "" {
				want = strings.Replace(c.body, `"sql"`, `"base"`, 1)
			}
			if c.fails == nil && sent != want {
				t.Errorf("\n got %s\nwant %s", sent, want)
			}
		})
	}
}
