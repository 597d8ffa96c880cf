package tokenizer_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pyjson"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

func TestWriteRequests(t *testing.T) {
	for _, c := range []struct {
		name, body, want string
		shape            tokenizer.Shape
		dialect          tokenizer.Dialect
		status           tokenizer.Status
	}{
		{
			name: "completion", shape: tokenizer.Completion, status: tokenizer.Exact,
			body: `{"model":"sql","prompt":"a \u00e9 b","max_tokens":4,"add_special_tokens":false,"stream":true}`,
			want: `{"model":"base","prompt":"a \u00e9 b","add_special_tokens":false}`,
		},
		{
			name: "a batch", shape: tokenizer.Completion, status: tokenizer.Exact,
			body: `{"prompt":["a, \"b\"" , "c"],"add_special_tokens":true}`,
			want: `{"model":"base","prompt":"a, \"b\"","add_special_tokens":true} {"model":"base","prompt":"c","add_special_tokens":true}`,
		},
		{
			name: "SGLang's generate", shape: tokenizer.Completion, dialect: tokenizer.SGLang, status: tokenizer.Exact,
			body: `{"text":"a","sampling_params":{}}`, want: `{"model":"base","prompt":"a"}`,
		},
		{
			name: "a text to embed", shape: tokenizer.Embedding, status: tokenizer.Exact,
			body: `{"prompt":"no","text":"no","input":["a","b"],"messages":[],"dimensions":3,"add_special_tokens":true}`,
			want: `{"model":"base","prompt":"a","add_special_tokens":true} {"model":"base","prompt":"b","add_special_tokens":true}`,
		},
		{
			name: "SGLang's text to embed", shape: tokenizer.Embedding, dialect: tokenizer.SGLang, status: tokenizer.Unverified,
			body: `{"input":"a"}`, want: `{"model":"base","prompt":"a"}`,
		},
		{
			name: "a chat to embed", shape: tokenizer.EmbeddingChat, status: tokenizer.Unverified,
			body: `{"tools":[],"reasoning_effort":"low","documents":[{}],"messages":[1],"chat_template_kwargs":{"x":1}}`,
			want: `{"model":"base","add_generation_prompt":false,"messages":[1],"chat_template_kwargs":{"x":1}}`,
		},
		{
			name: "and the begin of an answer", shape: tokenizer.EmbeddingChat, status: tokenizer.Unverified,
			body: `{"messages":[1],"add_generation_prompt":true}`, want: `{"model":"base","add_generation_prompt":true,"messages":[1]}`,
		},
		{
			name: "chat byte by byte", shape: tokenizer.Chat, status: tokenizer.Exact,
			body: `{"tools":[{"b": 1.0,  "a":1e+20}],"model":"x","messages":[ {"role":"user","content":"hi"} ],"tool_choice":"none","continue_final_message":true}`,
			want: `{"model":"base","tools":[{"b": 1.0,  "a":1e+20}],"messages":[ {"role":"user","content":"hi"} ],"continue_final_message":true}`,
		},
		{
			name: "NaN as it is", shape: tokenizer.Chat, status: tokenizer.Unverified,
			body: `{"tools":[{"a": NaN}],"temperature":NaN,"messages":[0.0],"chat_template_kwargs":{"x":-Infinity ,"y":1e999999},"documents":[Infinity],"stop":NaN}`,
			want: `{"model":"base","tools":[{"a": NaN}],"messages":[0.0],"chat_template_kwargs":{"x":-Infinity ,"y":1e999999,"documents":[Infinity]}}`,
		},
		{
			name: "NaN before a prompt", shape: tokenizer.Completion, status: tokenizer.Exact,
			body: `{"x":[NaN],"prompt":["a NaN"]}`, want: `{"model":"base","prompt":"a NaN"}`,
		},
		{
			name: "the last of two keys", shape: tokenizer.Chat, status: tokenizer.Exact,
			body: `{"messages":[1],"tools":[],"messages":[2]}`, want: `{"model":"base","messages":[2],"tools":[]}`,
		},
		{
			name: "variables without kwargs", shape: tokenizer.Chat, status: tokenizer.Unverified,
			body: `{"messages":[],"reasoning_effort":"low","documents":null}`,
			want: `{"model":"base","messages":[],"chat_template_kwargs":{"reasoning_effort":"low"}}`,
		},
		{
			name: "variables win over kwargs", shape: tokenizer.Chat, status: tokenizer.Unverified,
			body: `{"chat_template_kwargs":{ "x":1,"reasoning_effort":"high" },"messages":[],"reasoning_effort":"low","documents":[{}]}`,
			want: `{"model":"base","chat_template_kwargs":{"x":1,"reasoning_effort":"high","reasoning_effort":"low","documents":[{}]},"messages":[]}`,
		},
		{
			name: "empty kwargs", shape: tokenizer.Chat, status: tokenizer.Unverified,
			body: `{"chat_template_kwargs":{ },"messages":[],"reasoning_effort":"low"}`,
			want: `{"model":"base","chat_template_kwargs":{"reasoning_effort":"low"},"messages":[]}`,
		},
		{
			name: "kwargs for SGLang", shape: tokenizer.Chat, dialect: tokenizer.SGLang, status: tokenizer.Unverified,
			body: `{"messages":[],"chat_template_kwargs":{"x":1}}`, want: `{"model":"base","messages":[],"chat_template_kwargs":{"x":1}}`,
		},
		{
			name: "tools for SGLang", shape: tokenizer.Chat, dialect: tokenizer.SGLang, status: tokenizer.Exact,
			body: `{"messages":[],"tools":[]}`, want: `{"model":"base","messages":[],"tools":[]}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, status, err := tokenizer.WriteRequests(c.dialect, tokenizer.Text{Model: "base", Shape: c.shape, Body: []byte(c.body)})
			if err != nil {
				t.Fatal(err)
			}
			if string(bytes.Join(got, []byte(" "))) != c.want || status != c.status {
				t.Errorf("%s\n got %s\nwant %s %s", status, got, c.want, c.status)
			}
			for _, body := range got {
				if numbers := pyjson.Numbers(body); !json.Valid(body) && !json.Valid(numbers) {
					t.Error("not JSON to Python")
				}
			}
		})
	}
}

func TestWriteRequestsRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		shape tokenizer.Shape
		body  string
		want  error
	}{
		"no shape":      {0, `{"prompt":"secret"}`, tokenizer.ErrShape},
		"ids":           {tokenizer.Completion, `{"prompt":[1]}`, tokenizer.ErrNoPrompt},
		"nothing":       {tokenizer.Completion, `{"messages":["secret"]}`, tokenizer.ErrNoPrompt},
		"null":          {tokenizer.Completion, `{"prompt":null}`, tokenizer.ErrNoPrompt},
		"empty list":    {tokenizer.Completion, `{"prompt":[]}`, tokenizer.ErrNoPrompt},
		"a mixture":     {tokenizer.Completion, `{"prompt":["secret",7]}`, tokenizer.ErrNoPrompt},
		"NaN behind it": {tokenizer.Completion, `{"prompt":["secret",NaN]}`, tokenizer.ErrNoPrompt},
		"too many":      {tokenizer.Completion, `{"prompt":["secret"` + strings.Repeat(`,"secret"`, 16) + `]}`, tokenizer.ErrManyPrompts},
		"truncated":     {tokenizer.Completion, `{"prompt":"secret","truncate_prompt_tokens":70}`, tokenizer.ErrTruncated},
		"no messages":   {tokenizer.Chat, `{"prompt":"secret"}`, tokenizer.ErrNoPrompt},
		"not an object": {tokenizer.Chat, `["secret"]`, tokenizer.ErrBody},
		"not JSON":      {tokenizer.Chat, `{"secret":nope}`, tokenizer.ErrBody},
		"ends early":    {tokenizer.Chat, `{"messages":[]`, tokenizer.ErrBody},
		"goes on":       {tokenizer.Chat, `{"messages":[]} secret`, tokenizer.ErrBody},
	} {
		_, _, err := tokenizer.WriteRequests(tokenizer.VLLM, tokenizer.Text{Shape: c.shape, Body: []byte(c.body)})
		if !errors.Is(err, c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestParseResponse(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want []uint32
		err  error
	}{
		"vLLM":         {`{"count":3,"max_model_len":2048,"tokens":[0,50,4294967295],"token_strs":null}`, []uint32{0, 50, 4294967295}, nil},
		"SGLang":       {`{"tokens":[1, 2],"count":2,"max_model_len":4096}`, []uint32{1, 2}, nil},
		"wrong count":  {`{"count":3,"tokens":[1,2]}`, nil, tokenizer.ErrCount},
		"no ids":       {`{"count":0,"tokens":[]}`, nil, tokenizer.ErrNoIDs},
		"other object": {`{"error":{"message":"secret"}}`, nil, tokenizer.ErrNoIDs},
		"empty list":   {`[]`, nil, tokenizer.ErrNotObject},
		"strings":      {`{"tokens":["secret"]}`, nil, tokenizer.ErrNotIDs},
		"negative":     {`{"tokens":[-1]}`, nil, tokenizer.ErrNotIDs},
		"too large":    {`{"tokens":[4294967296]}`, nil, tokenizer.ErrNotIDs},
		"nested":       {`{"tokens":[[1]]}`, nil, tokenizer.ErrNotIDs},
		"a string":     {`"secret"`, nil, tokenizer.ErrNotObject},
	} {
		got, err := tokenizer.ParseResponse([]byte(c.body), 10)
		if !slices.Equal(got, c.want) || !errors.Is(err, c.err) {
			t.Errorf("%s: %v %v, want %v %v", name, got, err, c.want, c.err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error quotes the reply: %v", name, err)
		}
	}
	if _, err := tokenizer.ParseResponse([]byte(`{"tokens":[1,2,3]}`), 2); !errors.Is(err, tokenizer.ErrManyIDs) {
		t.Errorf("beyond the limit: %v", err)
	}
	for _, body := range []string{"", "<html>secret", `{"tokens":[1`, `{"tokens":[1]`, `{"secret":nope}`} {
		if got, err := tokenizer.ParseResponse([]byte(body), 10); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v %v", body, got, err)
		}
	}
}

func FuzzTokenizeResponse(f *testing.F) {
	for _, s := range []string{
		`{"count":3,"max_model_len":2048,"tokens":[0,50,17]}`, `{"tokens":[7]}`,
		`{"error":{"message":"The model does not exist.","type":"NotFoundError","code":404}}`, `[[[[`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := tokenizer.ParseResponse(body, 1000)
		if (err == nil) != (len(got) > 0) || len(got) > 1000 || len(got) > len(body) {
			t.Fatalf("%d ids, %v", len(got), err)
		}
	})
}

// FuzzWriteRequests: what is sent is JSON, and the engine's reader finds in it
// what it would find in the client's body.
func FuzzWriteRequests(f *testing.F) {
	f.Add(true, []byte(`{"chat_template_kwargs":{"x":1},"messages":[{"role":"user"}],"reasoning_effort":"low"}`))
	f.Add(false, []byte(`{"model":"m","prompt":["a","b"]}`))
	f.Add(true, []byte(`{"messages":[NaN,"NaN"],"x":-Infinity,"documents":Infinity}`))
	f.Fuzz(func(t *testing.T, chat bool, body []byte) {
		shape, key := tokenizer.Completion, "prompt"
		if chat {
			shape, key = tokenizer.Chat, "messages"
		}
		list, _, err := tokenizer.WriteRequests(tokenizer.VLLM, tokenizer.Text{Model: "m", Shape: shape, Body: body})
		if err != nil {
			return
		}
		for _, out := range list {
			sent(t, key, body, out)
		}
	})
}

func sent(t *testing.T, key string, body, out []byte) {
	if numbers := pyjson.Numbers(out); numbers != nil && pyjson.Numbers(body) != nil {
		out = numbers
	}
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(out, &sent); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) && strings.Contains(syntax.Error(), "max depth") {
			return
		}
		t.Fatalf("%s: %v", strconv.Quote(string(out)), err)
	}
	if sent[key] == nil || string(sent["model"]) != `"m"` {
		t.Fatalf("%s", out)
	}
}
