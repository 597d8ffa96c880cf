package tokenizer_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

func TestWriteGenerate(t *testing.T) {
	for _, c := range []struct {
		name, body, path string
		shape            tokenizer.Shape
		err              error
	}{
		{name: "text", shape: tokenizer.Completion, body: `{"prompt":"a","max_tokens":900,"stream":true,"model":"sql"}`, path: "/v1/completions"},
		{name: "chat", shape: tokenizer.Chat, body: ` {"tools":[{"b": 1.0,  "a":"<é>"}], "messages":[] } `, path: "/v1/chat/completions"},
		{name: "nothing to compute", shape: tokenizer.Chat, body: `{"prompt":"a"}`, err: tokenizer.ErrNoPrompt},
		{name: "empty", shape: tokenizer.Completion, body: `{}`, err: tokenizer.ErrNoPrompt},
		{name: "cut", shape: tokenizer.Completion, body: `{"a":{},"prompt":"a"`, err: tokenizer.ErrNoPrompt},
		{name: "no object", shape: tokenizer.Completion, body: `["prompt"]`, err: tokenizer.ErrNoPrompt},
		{name: "another form", shape: tokenizer.Messages, body: `{"messages":[]}`, err: tokenizer.ErrShape},
	} {
		path, got, err := tokenizer.WriteGenerate(tokenizer.Text{Model: "base", Shape: c.shape, Body: []byte(c.body)})
		if path != c.path || !errors.Is(err, c.err) {
			t.Errorf("%s: %s %v", c.name, path, err)
		}
		if c.err != nil {
			continue
		}
		var q struct {
			Model     string
			MaxTokens int `json:"max_tokens"`
			Stream    bool
			Return    bool `json:"return_token_ids"`
		}
		if err := json.Unmarshal(got, &q); err != nil || q.Model != "base" || q.MaxTokens != 1 || q.Stream || !q.Return {
			t.Errorf("%s: %s: %+v %v", c.name, got, q, err)
		}
		if !strings.HasPrefix(string(got), strings.TrimRight(c.body, " }")) {
			t.Errorf("%s: rewritten to %s", c.name, got)
		}
	}
}

func TestParseGenerated(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want []uint32
		err  error
	}{
		"chat":                {`{"choices":[{"message":{"prompt_token_ids":[9]},"token_ids":[5]}],"usage":{"prompt_tokens":2},"prompt_token_ids":[7,8]}`, []uint32{7, 8}, nil},
		"completion":          {`{"choices":[{"index":0,"prompt_token_ids":[7,8],"token_ids":[5]}],"usage":{"prompt_tokens":2}}`, []uint32{7, 8}, nil},
		"several choices":     {`{"choices":[{"prompt_token_ids":[7]},{"prompt_token_ids":[8]}]}`, []uint32{7}, nil},
		"not the first":       {`{"choices":[{},{"prompt_token_ids":[8]}]}`, nil, tokenizer.ErrNoIDs},
		"no usage":            {`{"prompt_token_ids":[7],"usage":null}`, []uint32{7}, nil},
		"a count of no kind":  {`{"prompt_token_ids":[7],"usage":{"prompt_tokens":"secret"}}`, []uint32{7}, nil},
		"another count":       {`{"prompt_token_ids":[7],"usage":{"prompt_tokens":2}}`, nil, tokenizer.ErrCount},
		"an engine without":   {`{"choices":[{"text":"secret"}],"usage":{"prompt_tokens":2}}`, nil, tokenizer.ErrNoIDs},
		"null":                {`{"choices":[{"prompt_token_ids":null}],"prompt_token_ids":null}`, nil, tokenizer.ErrNoIDs},
		"none":                {`{"choices":[],"prompt_token_ids":[]}`, nil, tokenizer.ErrNoIDs},
		"choices of no kind":  {`{"choices":"secret"}`, nil, tokenizer.ErrNoIDs},
		"a choice of no kind": {`{"choices":["secret"]}`, nil, tokenizer.ErrNotObject},
		"an error":            {`{"error":{"message":"secret"}}`, nil, tokenizer.ErrNoIDs},
		"strings":             {`{"prompt_token_ids":["secret"]}`, nil, tokenizer.ErrNotIDs},
		"too many":            {`{"prompt_token_ids":[1,2,3,4,5,6,7,8,9,10,11]}`, nil, tokenizer.ErrManyIDs},
		"a list":              {`[{"prompt_token_ids":[1]}]`, nil, tokenizer.ErrNotObject},
	} {
		got, err := tokenizer.ParseGenerated([]byte(c.body), 10)
		if !slices.Equal(got, c.want) || !errors.Is(err, c.err) || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v %v, want %v %v", name, got, err, c.want, c.err)
		}
	}
	for _, body := range []string{"", "<html>secret", `{"prompt_token_ids":[1]`, `{"prompt_token_ids":[1]}secret`, `{"choices":[{"prompt_token_ids":[1]}`, `{"choices":[{"prompt_token_ids":[1]},`} {
		if got, err := tokenizer.ParseGenerated([]byte(body), 10); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v %v", body, got, err)
		}
	}
}

func FuzzParseGenerated(f *testing.F) {
	for _, s := range []string{
		`{"choices":[{"prompt_token_ids":[7,8]}],"usage":{"prompt_tokens":2}}`, `{"prompt_token_ids":[7],"choices":[]}`, `{"choices":[[[[`, `{"usage":{"prompt_tokens":-1}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		ids, err := tokenizer.ParseGenerated(body, 1000)
		if (err == nil) != (len(ids) > 0) || len(ids) > 1000 {
			t.Fatalf("%d ids, %v", len(ids), err)
		}
	})
}

// FuzzWriteGenerate: a body that is JSON stays JSON, and one token is asked for.
func FuzzWriteGenerate(f *testing.F) {
	f.Add([]byte(`{"model":"x","messages":[],"max_tokens":7}`))
	f.Add([]byte("\xef\xbb\xbf{\"prompt\":\"}\"} "))
	f.Fuzz(func(t *testing.T, body []byte) {
		var before, after map[string]json.RawMessage
		if json.Unmarshal(body, &before) != nil || before == nil {
			return
		}
		for shape, main := range map[tokenizer.Shape]string{tokenizer.Chat: "messages", tokenizer.Completion: "prompt"} {
			_, out, err := tokenizer.WriteGenerate(tokenizer.Text{Model: "m", Shape: shape, Body: body})
			if _, has := before[main]; has != (err == nil) {
				t.Fatal(err)
			}
			if err != nil {
				continue
			}
			if err := json.Unmarshal(out, &after); err != nil || string(after["model"]) != `"m"` || string(after["max_tokens"]) != "1" || string(after[main]) != string(before[main]) {
				t.Fatalf("%q: %v", out, err)
			}
		}
	})
}
