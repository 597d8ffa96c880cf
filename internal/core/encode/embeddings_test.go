package encode_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/encode"
	"github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
	"github.com/eppctl/eppctl/internal/testdata"
)

// hfCase is a prompt that the oracle encodes.
type hfCase struct {
	Text       *string           `json:"text,omitempty"`
	Messages   []map[string]any  `json:"messages,omitempty"`
	Generation bool              `json:"generation"`
	Special    bool              `json:"special"`
	Kwargs     map[string]string `json:"kwargs,omitempty"`
}

// huggingFace encodes prompts with the real libraries and the captures' own model.
func huggingFace(t *testing.T, cases []hfCase) (ids [][]uint32) {
	t.Helper()
	in, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("python3", "testdata/hf.py", testdata.Dirs(t, "engines")[0]+"/models/tiny-llama")
	var stderr strings.Builder
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("this test needs python3 with tokenizers and Jinja2 (`make test` brings them): %v\n%s", err, &stderr)
	}
	if err := json.Unmarshal(out, &ids); err != nil {
		t.Fatal(err)
	}
	return ids
}

// TestEmbeddings: every form of a body of /v1/embeddings has the ids that Hugging
// Face's libraries make of what vLLM gives them.
func TestEmbeddings(t *testing.T) {
	text := "Überraschung: l'été  à Málaga\n\n<|end|> 你好 👍🏽 don't 12345"
	turn := func(role, content string) map[string]any { return map[string]any{"role": role, "content": content} }
	dialogue := []map[string]any{turn("user", text), turn("assistant", "ja"), turn("user", "more")}
	whole := hfCase{Text: &text, Special: true}
	cases := []struct {
		name string
		body map[string]any
		want hfCase
	}{
		{"a text", map[string]any{"input": text}, whole},
		{"without specials", map[string]any{"input": text, "add_special_tokens": false}, hfCase{Text: &text}},
		{"texts", map[string]any{"input": []string{text, "other"}}, whole},
		{"beside what is no input", map[string]any{"prompt": "sesame", "text": "sesame", "input": text, "dimensions": 7, "encoding_format": "base64"}, whole},
		{"a chat", map[string]any{"messages": dialogue}, hfCase{Messages: dialogue}},
		{"and the begin of an answer", map[string]any{"messages": dialogue, "add_generation_prompt": true}, hfCase{Messages: dialogue, Generation: true}},
		{"with specials", map[string]any{"messages": dialogue, "add_special_tokens": true}, hfCase{Messages: dialogue, Special: true}},
		{"with kwargs", map[string]any{"messages": dialogue, "add_generation_prompt": true, "chat_template_kwargs": map[string]string{"style": "own"}}, hfCase{Messages: dialogue, Generation: true, Kwargs: map[string]string{"style": "own"}}},
		{"with what only chats have", map[string]any{"messages": dialogue, "tools": []any{map[string]any{"type": "function"}}, "documents": []any{map[string]any{}}, "reasoning_effort": "low"}, hfCase{Messages: dialogue}},
	}
	oracle := make([]hfCase, len(cases))
	for i, c := range cases {
		oracle[i] = c.want
	}
	m := defaultStyle(t)
	for i, want := range huggingFace(t, oracle) {
		c := cases[i]
		t.Run(c.name, func(t *testing.T) {
			for _, body := range []map[string]any{c.body, {"input": want}, {"input": [][]uint32{want, {1, 2}}}} {
				if got := embedded(t, m, body); !slices.Equal(got, want) || len(got) < 20 {
					t.Errorf("%d ids, HF has %d:\n%v\n%v", len(got), len(want), got, want)
				}
			}
		})
	}
}

// defaultStyle is the captures' model on a server with default kwargs, which what is
// embedded does not get.
func defaultStyle(t *testing.T) *encode.Model {
	t.Helper()
	dir := testdata.Dirs(t, "engines")[0] + "/models/tiny-llama/"
	tok, err := native.LoadHuggingFace(read(t, dir+"tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := chat.New(chat.Files{TokenizerConfig: read(t, dir+"tokenizer_config.json")}, chat.Options{Kwargs: []byte(`{"style":"server"}`)})
	if err != nil {
		t.Fatal(err)
	}
	return encode.New(encode.Options{Tokenizer: tok, Chat: r})
}

// embedded is what a body is routed by.
func embedded(t *testing.T, m *encode.Model, body map[string]any) []uint32 {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, problem := prompt.Parse("/v1/embeddings", "", b, prompt.Limits{DefaultModel: "m"})
	if problem != nil || r.Unmatched != "" {
		t.Fatalf("%s: %+v %+v", b, r, problem)
	}
	if len(r.TokenIDs) > 0 {
		return r.TokenIDs
	}
	return ask(t, m, r.Shape, string(b)).IDs
}

// TestEmbeddingsRefused: what may change the ids and is not known for sure.
func TestEmbeddingsRefused(t *testing.T) {
	const text, chats = tokenizer.Embedding, tokenizer.EmbeddingChat
	for _, c := range []struct {
		shape  tokenizer.Shape
		engine chat.Engine
		body   string
	}{
		{text, chat.VLLM, `{"input":"sesame","truncate_prompt_tokens":3}`},
		{text, chat.VLLM, `{"input":"sesame","padding":"max_length"}`},
		{text, chat.VLLM, `{"prompt":"sesame"}`},
		{text, chat.VLLM, `{"input":[{"text":"sesame"}]}`},
		{chats, chat.VLLM, `{"messages":[{"role":"user","content":"sesame"}],"truncate_prompt_tokens":3}`},
		{chats, chat.VLLM, `{"messages":[{"role":"user","content":"sesame"}],"chat_template":"x"}`},
		{chats, chat.VLLM, `{"messages":[{"role":"user","content":"sesame"}],"add_generation_prompt":true,"continue_final_message":true}`},
		{chats, chat.SGLang, `{"messages":[{"role":"user","content":"sesame"}]}`},
	} {
		_, err := tiny(t, chat.Files{}, c.engine, 0).Encode(t.Context(), tokenizer.Text{Shape: c.shape, Body: []byte(c.body)})
		if err == nil || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v", c.body, err)
		}
	}
	if e := ask(t, tiny(t, chat.Files{}, chat.SGLang, 0), text, `{"input":"Block"}`); len(e.Doubts) != 1 {
		t.Errorf("SGLang: %v", e.Doubts)
	}
	noChat := tiny(t, chat.Files{TokenizerConfig: []byte(`{}`)}, chat.VLLM, 0)
	if _, err := noChat.Encode(t.Context(), tokenizer.Text{Shape: chats, Body: []byte(`{"messages":[]}`)}); !errors.Is(err, encode.ErrNoChat) {
		t.Errorf("without a template: %v", err)
	}
}
