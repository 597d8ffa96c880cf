package tokenizer_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// TestWriteRender: TK-44. The body reaches the renderer byte by byte, and names
// the base model.
func TestWriteRender(t *testing.T) {
	const chat, completion = tokenizer.Chat, tokenizer.Completion
	for _, c := range []struct {
		name, body, path, want string
		shape                  tokenizer.Shape
		dialect                tokenizer.Dialect
		err                    error
	}{
		{
			name: "chat", shape: chat, body: `{"tools":[{"b": 1.0,  "a":"<é>"}], "model":"sql" ,"messages":[],"stream":true}`,
			path: "/v1/chat/completions/render", want: `{"tools":[{"b": 1.0,  "a":"<é>"}], "model":"base" ,"messages":[],"stream":true}`,
		},
		{name: "no model", shape: chat, body: ` { "messages":[]}`, path: "/v1/chat/completions/render", want: ` { "messages":[],"model":"base"}`},
		{name: "empty", shape: chat, body: `{ }`, path: "/v1/chat/completions/render", want: `{ "model":"base"}`},
		{name: "several prompts", shape: completion, body: `{"prompt":["a","b"],"model":"m"}`, path: "/v1/completions/render", want: `{"prompt":["a","b"],"model":"base"}`},
		{name: "behind NaN", shape: chat, body: `{"model":"x","a":[NaN],"model":"y","messages":[-Infinity]}`, path: "/v1/chat/completions/render", want: `{"model":"x","a":[NaN],"model":"base","messages":[-Infinity]}`},
		{name: "the last of two", shape: chat, body: `{"model":"x","messages":[],"model":"y"}`, path: "/v1/chat/completions/render", want: `{"model":"x","messages":[],"model":"base"}`},
		{name: "SGLang chat", shape: chat, dialect: tokenizer.SGLang, body: `{"model":"x"}`, path: "/v1/chat/completions/render", want: `{"model":"base"}`},
		{name: "SGLang has no completions", shape: completion, dialect: tokenizer.SGLang, body: `{"prompt":"a"}`, err: tokenizer.ErrShape},
		{name: "SGLang's generate", shape: completion, body: `{"text":"a"}`, err: tokenizer.ErrShape},
		{name: "another shape", shape: 99, body: `{}`, err: tokenizer.ErrShape},
		{name: "no object", shape: chat, body: `[1]`, err: tokenizer.ErrBody},
	} {
		path, got, err := tokenizer.WriteRender(c.dialect, tokenizer.Text{Model: "base", Shape: c.shape, Body: []byte(c.body)})
		if path != c.path || string(got) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %s %s %v, want %s %s", c.name, path, got, err, c.path, c.want)
		}
	}
	if _, got, err := tokenizer.WriteRender(0, tokenizer.Text{Shape: chat, Body: []byte(`{"model":"x"}`)}); err != nil || string(got) != `{"model":"x"}` {
		t.Errorf("without a base model: %s %v", got, err)
	}
	for body, want := range map[string]string{ // of images the names are enough
		`{"model":"x","messages":[]}`: `{"model":"base","messages":[],"mm_payload":"none","return_mm_kwargs":false}`,
		`{"messages":[]}`:             `{"messages":[],"model":"base","mm_payload":"none","return_mm_kwargs":false}`,
		`{ }`:                         `{ "model":"base","mm_payload":"none","return_mm_kwargs":false}`,
		// the last one counts
		`{"model":"x","mm_payload":"tensors","return_mm_kwargs":true}`: `{"model":"base","mm_payload":"tensors","return_mm_kwargs":true,"mm_payload":"none","return_mm_kwargs":false}`,
	} {
		_, got, err := tokenizer.WriteRender(tokenizer.VLLM, tokenizer.Text{Model: "base", Shape: chat, Media: true, Body: []byte(body)})
		if err != nil || string(got) != want {
			t.Errorf("with an image: %s %v, want %s", got, err, want)
		}
	}
	if _, got, err := tokenizer.WriteRender(tokenizer.SGLang, tokenizer.Text{Model: "base", Shape: chat, Media: true, Body: []byte(`{"model":"x"}`)}); err != nil || string(got) != `{"model":"base"}` {
		t.Errorf("SGLang with an image: %s %v", got, err)
	}
}

// TestParseRender: TK-41 and TK-42. Ids are token_ids (vLLM) or input_ids (SGLang),
// of one prompt or of a list, and end in effect where media begin.
func TestParseRender(t *testing.T) {
	type prompt = tokenizer.Rendered
	for name, c := range map[string]struct {
		body string
		want []prompt
		err  error
	}{
		"vLLM chat": {
			`{"request_id":"x","token_ids":[7,8],"features":null,"sampling_params":{"token_ids":[9]},"model":"m","stream":false,"cache_salt":null}`,
			[]prompt{{IDs: []uint32{7, 8}, Cut: -1}}, nil,
		},
		"SGLang chat":     {`{"input_ids":[7]}`, []prompt{{IDs: []uint32{7}, Cut: -1}}, nil},
		"vLLM completion": {`[{"token_ids":[7]},{"token_ids":[8,9],"features":{}}]`, []prompt{{IDs: []uint32{7}, Cut: -1}, {IDs: []uint32{8, 9}, Cut: -1}}, nil},
		"an image": {
			`{"token_ids":[1,2,3,4,5],"features":{"mm_hashes":{"image":["abc"]},"mm_placeholders":{"image":[{"offset":2,"length":2}]}}}`,
			[]prompt{{IDs: []uint32{1, 2, 3, 4, 5}, Cut: -1, Items: []tokenizer.Item{{Name: "abc", Offset: 2, Length: 2}}}}, nil,
		},
		"several modalities": {
			`{"token_ids":[1,2,3,4,5],"features":{"mm_hashes":{"image":["b","a"],"audio":["c"]},"mm_placeholders":{"audio":[{"offset":3,"length":1}],"image":[{"length":1,"offset":4},{"offset":0,"length":3,"more":{}}]},"kwargs_data":{"image":["secret"]}}}`,
			[]prompt{{IDs: []uint32{1, 2, 3, 4, 5}, Cut: -1, Items: []tokenizer.Item{{Name: "a", Length: 3}, {Name: "c", Offset: 3, Length: 1}, {Name: "b", Offset: 4, Length: 1}}}}, nil,
		},
		"a second without a name": {
			`{"token_ids":[1,2,3,4,5],"features":{"mm_hashes":{"image":["a",""]},"mm_placeholders":{"image":[{"offset":1,"length":1},{"offset":3,"length":1}]}}}`,
			[]prompt{{IDs: []uint32{1, 2, 3, 4, 5}, Cut: 3, Items: []tokenizer.Item{{Name: "a", Offset: 1, Length: 1}}}}, nil,
		},
		"beyond the end": {
			`{"token_ids":[1,2,3],"features":{"mm_hashes":{"image":["a"]},"mm_placeholders":{"image":[{"offset":1,"length":3}]}}}`,
			[]prompt{{IDs: []uint32{1, 2, 3}, Cut: 1}}, nil,
		},
		"one in another": {
			`{"token_ids":[1,2,3,4],"features":{"mm_hashes":{"image":["a","b"]},"mm_placeholders":{"image":[{"offset":0,"length":3},{"offset":2,"length":1}]}}}`,
			[]prompt{{IDs: []uint32{1, 2, 3, 4}, Cut: 2, Items: []tokenizer.Item{{Name: "a", Length: 3}}}}, nil,
		},
		"without a length": {
			`{"token_ids":[1,2],"features":{"mm_hashes":{"image":["a"]},"mm_placeholders":{"image":[{"offset":1}]}}}`,
			[]prompt{{IDs: []uint32{1, 2}, Cut: 1}}, nil,
		},
		"more names than places":    {`{"token_ids":[1,2],"features":{"mm_hashes":{"image":["a","secret"]},"mm_placeholders":{"image":[{"offset":0,"length":1}]}}}`, nil, tokenizer.ErrNoPlaces},
		"a modality without places": {`{"token_ids":[1,2],"features":{"mm_hashes":{"image":["a"],"audio":["secret"]},"mm_placeholders":{"image":[{"offset":0,"length":1}]}}}`, nil, tokenizer.ErrNoPlaces},
		"names in another form":     {`{"token_ids":[1,2],"features":{"mm_hashes":{"image":{"0":"a"}},"mm_placeholders":{"image":[{"offset":1,"length":1}]}}}`, []prompt{{IDs: []uint32{1, 2}, Cut: 1}}, nil},
		"the first of several media": {
			`{"features":{"mm_placeholders":{"image":[{"length":1,"offset":4},{"offset":3,"length":1}],"audio":[{"offset":1,"length":1}]}},"token_ids":[1,2,3,4,5]}`,
			[]prompt{{IDs: []uint32{1, 2, 3, 4, 5}, Cut: 1}}, nil,
		},
		"placeholders as a list":     {`{"token_ids":[1,2],"features":{"mm_hashes":["a"],"mm_placeholders":[{"offset":0,"length":1}]}}`, []prompt{{IDs: []uint32{1, 2}, Cut: 0}}, nil},
		"a place behind the end":     {`{"token_ids":[1,2],"features":{"mm_placeholders":[{"offset":9,"length":1}]}}`, []prompt{{IDs: []uint32{1, 2}, Cut: 2}}, nil},
		"no media":                   {`{"token_ids":[1],"features":{"mm_hashes":{},"mm_placeholders":{"image":[]}}}`, []prompt{{IDs: []uint32{1}, Cut: -1}}, nil},
		"media without a place":      {`{"token_ids":[1],"features":{"mm_hashes":{"image":["secret"]}}}`, nil, tokenizer.ErrNoPlaces},
		"no ids":                     {`{"token_ids":[]}`, nil, tokenizer.ErrNoIDs},
		"an error":                   {`{"error":{"message":"secret"}}`, nil, tokenizer.ErrNoIDs},
		"an empty list":              {`[]`, nil, tokenizer.ErrNoIDs},
		"one of the list has no ids": {`[{"token_ids":[7]},{}]`, nil, tokenizer.ErrNoIDs},
		"strings":                    {`{"token_ids":["secret"]}`, nil, tokenizer.ErrNotIDs},
		"too many in all":            {`[{"token_ids":[1,2,3,4,5,6]},{"token_ids":[1,2,3,4,5]}]`, nil, tokenizer.ErrManyIDs},
		"a string":                   {`"secret"`, nil, tokenizer.ErrNotObject},
	} {
		got, err := tokenizer.ParseRender([]byte(c.body), 10)
		same := slices.EqualFunc(got, c.want, func(a, b prompt) bool {
			return a.Cut == b.Cut && slices.Equal(a.IDs, b.IDs) && slices.Equal(a.Items, b.Items)
		})
		if !same || !errors.Is(err, c.err) {
			t.Errorf("%s: %v %v, want %v %v", name, got, err, c.want, c.err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error quotes the reply: %v", name, err)
		}
	}
	for _, body := range []string{"", "<html>secret", `[{"token_ids":[1]}`, `[{"token_ids":[1]},`, `[{"token_ids":[1]},7]`, `{"token_ids":[1]`, `{"secret":nope}`} {
		if got, err := tokenizer.ParseRender([]byte(body), 10); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v %v", body, got, err)
		}
	}
	many := "[" + strings.Repeat(`{"token_ids":[1]},`, 5000) + `{"token_ids":[1]}]`
	if _, err := tokenizer.ParseRender([]byte(many), 1<<20); !errors.Is(err, tokenizer.ErrManyPrompts) {
		t.Errorf("5001 prompts: %v", err)
	}
	const quarter = 1 << 18
	for name, features := range map[string]string{
		"names":           `"mm_hashes":{"image":[` + strings.Repeat(`"a",`, quarter) + `"a"]}`,
		"places":          `"mm_placeholders":{"image":[` + strings.Repeat(`{},`, 2*quarter) + `{}]}`,
		"names and again": strings.Repeat(`"mm_hashes":{"image":["a"]},`, quarter) + `"mm_placeholders":{}`,
	} {
		if _, err := tokenizer.ParseRender([]byte(`{"token_ids":[1],"features":{`+features+`}}`), 10); !errors.Is(err, tokenizer.ErrManyItems) {
			t.Errorf("more than a MiB of %s: %v", name, err)
		}
	}
	pixels := `{"token_ids":[1,2],"features":{"mm_hashes":{"image":["a"]},"mm_placeholders":{"image":[{"offset":0,"length":1}]},"kwargs_data":{"image":["` + strings.Repeat("x", 8*quarter) + `"]}}}`
	if got, err := tokenizer.ParseRender([]byte(pixels), 10); err != nil || len(got[0].Items) != 1 {
		t.Errorf("with pixels: %v %v", got, err)
	}
}

func FuzzParseRender(f *testing.F) {
	for _, s := range []string{
		`[{"token_ids":[7]},{"token_ids":[8]}]`, `{"input_ids":[7]}`, `[[[[`,
		`{"token_ids":[1,2],"features":{"mm_hashes":{"image":["a"]},"mm_placeholders":{"image":[{"offset":1,"length":1}]}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := tokenizer.ParseRender(body, 1000)
		total := 0
		for _, r := range got {
			total += len(r.IDs)
			if len(r.IDs) == 0 || r.Cut > len(r.IDs) {
				t.Fatalf("%d ids, cut %d", len(r.IDs), r.Cut)
			}
			from := 0
			for _, it := range r.Items {
				if it.Offset < from || it.Length <= 0 || it.End() > len(r.IDs) && r.Cut < 0 {
					t.Fatalf("%d ids, items %v, cut %d", len(r.IDs), r.Items, r.Cut)
				}
				from = it.Offset
			}
		}
		if (err == nil) != (total > 0) || total > 1000 {
			t.Fatalf("%d ids, %v", total, err)
		}
	})
}

// FuzzWriteRender: a body that is JSON stays JSON and names the model.
func FuzzWriteRender(f *testing.F) {
	f.Add([]byte(`{"model":"x","messages":[]}`))
	f.Add([]byte("\xef\xbb\xbf{ }"))
	f.Fuzz(func(t *testing.T, body []byte) {
		var before, after map[string]json.RawMessage
		if json.Unmarshal(body, &before) != nil || before == nil {
			return
		}
		_, out, err := tokenizer.WriteRender(0, tokenizer.Text{Model: "m", Shape: tokenizer.Chat, Body: body})
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out, &after); err != nil || string(after["model"]) != `"m"` {
			t.Fatalf("%q: %v", out, err)
		}
		delete(before, "model")
		delete(after, "model")
		if len(before) != len(after) {
			t.Fatalf("%q became %q", body, out)
		}
	})
}
