package prompt_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

const (
	completions = "/v1/completions"
	chat        = "/v1/chat/completions"
	responses   = "/v1/responses"
	embeddings  = "/v1/embeddings"
)

func TestParse(t *testing.T) {
	image := `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", 5000) + `"}}`
	for _, c := range []struct {
		name, path, body string
		want             prompt.Request // Kind, N, Model "m" and Prompts 1 are filled in where zero
		noModel          bool
	}{
		{name: "EP-16d no stream field", path: completions, body: `{"model":"m","prompt":"hi"}`, want: prompt.Request{Shape: tokenizer.Completion, Chars: 2}},
		{name: "stream", path: completions, body: `{"model":"m","prompt":"hi","stream":true,"n":2,"max_tokens":7}`, want: prompt.Request{Shape: tokenizer.Completion, Chars: 2, Stream: true, N: 2, MaxTokens: 7}},
		{name: "O-73 ids", path: completions, body: `{"model":"m","prompt":[1, 2,3 ,4294967295]}`, want: prompt.Request{TokenIDs: []uint32{1, 2, 3, 4294967295}}},
		{name: "O-73 lists of ids", path: completions, body: `{"model":"m","prompt":[[1,2],[3]]}`, want: prompt.Request{TokenIDs: []uint32{1, 2}, Prompts: 2, Further: [][]uint32{{3}}}},
		{name: "lists of ids behind a salt", path: completions, body: `{"model":"m","cache_salt":"s","prompt":[ [1 , 2],[3], [4,5,6] ],"n":2}`, want: prompt.Request{TokenIDs: []uint32{1, 2}, Prompts: 3, Further: [][]uint32{{3}, {4, 5, 6}}, Salt: "s", N: 2}},
		{name: "an empty list among them", path: completions, body: `{"model":"m","prompt":[[1,2],[],[3]]}`, want: prompt.Request{Prompts: 3, Unmatched: reason.Shape, IDs: 3}},
		{name: "a text among them", path: completions, body: `{"model":"m","prompt":[[1,2],"abc",[3]]}`, want: prompt.Request{Prompts: 3, Chars: 3, Unmatched: reason.Shape, IDs: 3}},
		{name: "ids among texts", path: completions, body: `{"model":"m","prompt":["abc",[3,4]]}`, want: prompt.Request{Prompts: 2, Chars: 3, Unmatched: reason.Shape, IDs: 2}},
		{name: "lists of a private cache", path: completions, body: `{"model":"m","prompt":[[1,2],[3]],"extra_key":"x"}`, want: prompt.Request{Prompts: 2, Private: true, Unmatched: reason.PrivateCache, IDs: 3}},
		{name: "as many prompts as may be", path: completions, body: `{"model":"m","prompt":["a"` + strings.Repeat(`,"a"`, 2047) + `]}`, want: prompt.Request{Shape: tokenizer.Completion, Prompts: 2048, Chars: 2048}},
		{name: "too many texts", path: completions, body: `{"model":"m","prompt":["a"` + strings.Repeat(`,"a"`, 2048) + `]}`, want: prompt.Request{Prompts: 2049, Chars: 2049, Unmatched: reason.Shape}},
		{name: "too many lists", path: completions, body: `{"model":"m","prompt":[[7]` + strings.Repeat(`,[7]`, 2048) + `]}`, want: prompt.Request{Prompts: 2049, Unmatched: reason.Shape, IDs: 2049}},
		{name: "one list of ids", path: completions, body: `{"model":"m","prompt":[[1,2]]}`, want: prompt.Request{TokenIDs: []uint32{1, 2}}},
		{name: "O-74 texts", path: completions, body: `{"model":"m","prompt":["ab","c"]}`, want: prompt.Request{Shape: tokenizer.Completion, Chars: 3, Prompts: 2}},
		{name: "mixed batch", path: completions, body: `{"model":"m","prompt":[7,"c"]}`, want: prompt.Request{Prompts: 2, Chars: 1, Unmatched: reason.Shape}},
		{name: "id beyond 32 bits", path: completions, body: `{"model":"m","prompt":[4294967296]}`, want: prompt.Request{Unmatched: reason.Shape}},
		{name: "negative id", path: completions, body: `{"model":"m","prompt":[-1]}`, want: prompt.Request{Unmatched: reason.Shape}},
		{name: "fraction as id", path: completions, body: `{"model":"m","prompt":[1.0]}`, want: prompt.Request{Unmatched: reason.Shape}},
		{name: "exponent as id", path: completions, body: `{"model":"m","prompt":[1e3]}`, want: prompt.Request{Unmatched: reason.Shape}},
		{name: "no ids", path: completions, body: `{"model":"m","prompt":[]}`, want: prompt.Request{Prompts: -1, Unmatched: reason.Shape}},
		{name: "no prompt", path: completions, body: `{"model":"m"}`, want: prompt.Request{Prompts: -1, Unmatched: reason.Shape}},
		{name: "null prompt", path: completions, body: `{"model":"m","prompt":null}`, want: prompt.Request{Prompts: -1, Unmatched: reason.Shape}},
		{name: "prompt is a number", path: completions, body: `{"model":"m","prompt":5}`, want: prompt.Request{Prompts: -1, Unmatched: reason.Shape}},
		{name: "embeddings as prompt", path: completions, body: `{"model":"m","prompt":[1],"prompt_embeds":"AA=="}`, want: prompt.Request{Unmatched: reason.Shape}},
		{name: "salt", path: completions, body: `{"model":"m","prompt":[1],"cache_salt":"tenant-a"}`, want: prompt.Request{TokenIDs: []uint32{1}, Salt: "tenant-a"}},
		{name: "salt is null", path: completions, body: `{"model":"m","prompt":[1],"cache_salt":null}`, want: prompt.Request{TokenIDs: []uint32{1}}},
		{name: "salt is no string", path: completions, body: `{"model":"m","prompt":[1],"cache_salt":7}`, want: prompt.Request{Unmatched: reason.Shape}},
		{name: "extra_key", path: completions, body: `{"model":"m","prompt":[1],"extra_key":"ek"}`, want: prompt.Request{Private: true, Unmatched: reason.PrivateCache}},
		{name: "extra_key is null", path: completions, body: `{"model":"m","prompt":[1],"extra_key":null}`, want: prompt.Request{TokenIDs: []uint32{1}}},
		{name: "truncated text", path: completions, body: `{"model":"m","prompt":"ab","truncate_prompt_tokens":70}`, want: prompt.Request{Shape: tokenizer.Completion, Chars: 2}},
		{name: "truncated ids", path: completions, body: `{"model":"m","prompt":[1],"truncate_prompt_tokens":70}`, want: prompt.Request{Unmatched: reason.Shape}},
		{name: "prompt_logprobs 0", path: completions, body: `{"model":"m","prompt":[1],"prompt_logprobs":0}`, want: prompt.Request{Unmatched: reason.CacheBypassed}},
		{name: "echo", path: completions, body: `{"model":"m","prompt":[1],"echo":true}`, want: prompt.Request{TokenIDs: []uint32{1}}},
		{name: "echo with logprobs", path: completions, body: `{"model":"m","prompt":[1],"echo":true,"logprobs":1}`, want: prompt.Request{Unmatched: reason.CacheBypassed}},

		{name: "EP-16e duplicate keys", path: completions, body: `{"model":"x","prompt":[9,9],"cache_salt":"s","model":"m","prompt":"last","cache_salt":null}`, want: prompt.Request{Shape: tokenizer.Completion, Chars: 4}},
		{name: "EP-16e members of another case", path: completions, body: `{"Model":"x","model":"m","PROMPT":[9],"prompt":"lower","Prompt":"x","Cache_Salt":"s"}`, want: prompt.Request{Shape: tokenizer.Completion, Chars: 5}},
		{name: "EP-16e duplicate messages", path: chat, body: `{"model":"m","messages":[{"role":"user","content":[` + image + `]}],"messages":[{"role":"u","content":"a"}]}`, want: prompt.Request{Shape: tokenizer.Chat, Chars: 6}},
		{name: "EP-16e invalid UTF-8", path: completions, body: "{\"model\":\"m\",\"prompt\":\"\xff\xfe\"}", want: prompt.Request{Shape: tokenizer.Completion, Chars: 2}},
		{name: "EP-16e lone surrogate", path: completions, body: `{"model":"m","prompt":"\ud800","cache_salt":"\udc00"}`, want: prompt.Request{Shape: tokenizer.Completion, Chars: 6, Salt: "\ufffd"}},
		{name: "EP-16e NaN", path: completions, body: `{"model":"m","prompt":"a NaN","temperature":NaN,"top_p":-Infinity}`, want: prompt.Request{Shape: tokenizer.Completion, Chars: 5}},
		{name: "EP-16e NaN before ids", path: completions, body: `{"x":[NaN,{"y":-Infinity}],"model":"m","prompt":[1,2],"model":"m"}`, want: prompt.Request{TokenIDs: []uint32{1, 2}}},
		{name: "EP-16e NaN among ids", path: completions, body: `{"model":"m","prompt":[1,NaN]}`, want: prompt.Request{Prompts: 2, Unmatched: reason.Shape}},
		{name: "EP-16e lists of NaN", path: completions, body: `{"model":"m","prompt":[[1,Infinity]]}`, want: prompt.Request{Unmatched: reason.Shape}},
		{name: "EP-16e NaN as prompt", path: completions, body: `{"model":"m","prompt":NaN}`, want: prompt.Request{Prompts: -1, Unmatched: reason.Shape}},
		{name: "EP-16e NaN as options", path: completions, body: `{"model":"m","prompt":"a","n":NaN,"max_tokens":Infinity,"stream":NaN}`, want: prompt.Request{Shape: tokenizer.Completion, Chars: 1}},
		{name: "EP-16e NaN as salt", path: completions, body: `{"model":"m","prompt":"a","cache_salt":NaN}`, want: prompt.Request{Chars: 1, Unmatched: reason.Shape}},
		{name: "EP-16e NaN and deep", path: completions, body: `{"model":"m","prompt":"a","y":NaN,"x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, want: prompt.Request{Chars: 1, Unmatched: reason.BodyNotJSON}},
		{name: "EP-16e NaN in a schema", path: chat, body: `{"model":"m","tools":[{"a":NaN}],"messages":[{"role":"user","content":"NaN"}]}`, want: prompt.Request{Shape: tokenizer.Chat, Chars: 22}},
		{name: "EP-16e 9000 levels", path: completions, body: `{"model":"m","prompt":"a","x":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`, want: prompt.Request{Shape: tokenizer.Completion, Chars: 1}},
		{name: "EP-16e 10k deep", path: completions, body: `{"model":"m","prompt":"a","x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, want: prompt.Request{Chars: 1, Unmatched: reason.BodyNotJSON}},
		{name: "EP-16e 10k deep before the model", path: completions, body: `{"x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `,"model":"m"}`, noModel: true, want: prompt.Request{Prompts: -1, Unmatched: reason.BodyNotJSON}},
		{name: "EP-16e huge numbers", path: completions, body: `{"model":"m","prompt":"a","n":1e400,"max_tokens":` + strings.Repeat("9", 400) + `,"seed":-1e-999}`, want: prompt.Request{Shape: tokenizer.Completion, Chars: 1}},
		{name: "escaped key", path: completions, body: `{"\u006dodel":"m","prom\u0070t":[5]}`, want: prompt.Request{TokenIDs: []uint32{5}}},
		{name: "byte order mark", path: completions, body: "\ufeff" + `{"model":"m","prompt":[5]}`, want: prompt.Request{TokenIDs: []uint32{5}}},
		{name: "UTF-16", path: completions, body: "{\x00}\x00", noModel: true, want: prompt.Request{Prompts: -1, Unmatched: reason.BodyNotJSON}},

		{name: "O-72 text content", path: chat, body: `{"model":"m","messages":[{"role":"user","content":"Hello"}]}`, want: prompt.Request{Shape: tokenizer.Chat, Chars: 13}},
		{name: "O-72 text parts", path: chat, body: `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"Hello"}]}]}`, want: prompt.Request{Shape: tokenizer.Chat, Chars: 13}},
		{name: "EP-17 image_url", path: chat, body: `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},` + image + `]}]}`, want: prompt.Request{Shape: tokenizer.Chat, Media: 1, Chars: 9}},
		{name: "EP-17 input_audio", path: chat, body: `{"model":"m","messages":[{"role":"user","content":[{"input_audio":{"data":"AAAA"}}]}]}`, want: prompt.Request{Shape: tokenizer.Chat, Media: 1, Chars: 6}},
		{name: "EP-17 tools", path: chat, body: `{"model":"m","tools":[{"type":"function"}],"messages":[{"role":"user","content":null,"tool_calls":[]}]}`, want: prompt.Request{Shape: tokenizer.Chat, Chars: 33}},
		{name: "no messages", path: chat, body: `{"model":"m","messages":[]}`, want: prompt.Request{Prompts: -1, Unmatched: reason.Shape}},
		{name: "EP-17 Responses text", path: responses, body: `{"model":"m","input":"hi","instructions":"be","max_output_tokens":6}`, want: prompt.Request{Shape: tokenizer.Responses, Chars: 8, MaxTokens: 6}},
		{name: "Responses after another", path: responses, body: `{"model":"m","input":"hi","previous_response_id":"resp_1"}`, want: prompt.Request{Chars: 4, Unmatched: reason.StoredHistory}},
		{name: "Responses after none", path: responses, body: `{"model":"m","input":"hi","previous_response_id":null}`, want: prompt.Request{Shape: tokenizer.Responses, Chars: 4}},
		{name: "Responses reasoning", path: responses, body: `{"model":"m","input":[{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"a"}]},{"type":"function_call_output","call_id":"c","output":[{"type":"input_image"}]}]}`, want: prompt.Request{Shape: tokenizer.Responses, Media: 1, Chars: 41}},
		{name: "O-77 Responses items", path: responses, body: `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_image","image_url":"x"}]}]}`, want: prompt.Request{Shape: tokenizer.Responses, Media: 1, Chars: 10}},
		{name: "Anthropic messages", path: "/v1/messages", body: `{"model":"m","system":"s","max_tokens":6,"messages":[{"role":"user","content":"hi"}]}`, want: prompt.Request{Shape: tokenizer.Messages, Chars: 13, MaxTokens: 6}},
		{name: "Anthropic result of a tool", path: "/v1/messages", body: `{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"ab"},{"type":"image","source":{}}]}]}]}`, want: prompt.Request{Shape: tokenizer.Messages, Media: 1, Chars: 13}},
		{name: "embeddings of texts", path: embeddings, body: `{"model":"m","input":["a","bcd","ef"]}`, want: prompt.Request{Shape: tokenizer.Embedding, Prompts: 3, Chars: 6}},
		{name: "embeddings of a text", path: embeddings, body: `{"model":"m","prompt":[7],"input":"a"}`, want: prompt.Request{Shape: tokenizer.Embedding, Chars: 1}},
		{name: "embeddings of ids", path: embeddings, body: `{"model":"m","input":[1,2]}`, want: prompt.Request{TokenIDs: []uint32{1, 2}}},
		{name: "embeddings of lists", path: embeddings, body: `{"model":"m","input":[[1],[2,3,4],[5]]}`, want: prompt.Request{TokenIDs: []uint32{1}, Prompts: 3, Further: [][]uint32{{2, 3, 4}, {5}}}},
		{name: "embeddings of a chat", path: embeddings, body: `{"model":"m","messages":[{"role":"u","content":"a"}],"input":null}`, want: prompt.Request{Shape: tokenizer.EmbeddingChat, Chars: 6}},
		{name: "embeddings, null first", path: embeddings, body: `{"model":"m","input":null,"messages":[{"role":"u","content":"a"}]}`, want: prompt.Request{Shape: tokenizer.EmbeddingChat, Chars: 6}},
		{name: "embeddings of both", path: embeddings, body: `{"model":"m","messages":[{"role":"u","content":"a"}],"input":"a"}`, want: prompt.Request{Chars: 1, Unmatched: reason.Shape}},
		{name: "embeddings of both, ids first", path: embeddings, body: `{"model":"m","input":[1],"messages":[{"role":"u","content":"a"}]}`, want: prompt.Request{Chars: 6, Unmatched: reason.Shape}},
		{name: "embeddings twice", path: embeddings, body: `{"model":"m","input":"a","input":"bc"}`, want: prompt.Request{Shape: tokenizer.Embedding, Chars: 2}},
		{name: "embeddings of an image", path: embeddings, body: `{"model":"m","messages":[{"content":[` + image + `]}]}`, want: prompt.Request{Shape: tokenizer.EmbeddingChat, Media: 1}},
		{name: "SGLang's embeddings of parts", path: embeddings, body: `{"model":"m","input":[{"text":"a"}]}`, want: prompt.Request{Unmatched: reason.Shape}},
		{name: "padded embeddings", path: embeddings, body: `{"model":"m","input":[1],"padding":"max_length"}`, want: prompt.Request{Unmatched: reason.Shape}},
		{name: "truncated embeddings", path: embeddings, body: `{"model":"m","input":[1],"truncate_prompt_tokens":7}`, want: prompt.Request{Unmatched: reason.Shape}},
		{name: "score", path: "/v1/score", body: `{"model":"m","text_1":"a","text_2":["b","c"]}`, want: prompt.Request{Prompts: -1, Chars: 12, Unmatched: reason.Shape}},
		{name: "rerank", path: "/v2/rerank", body: `{"model":"m","query":"a","documents":["b"]}`, want: prompt.Request{Prompts: -1, Chars: 8, Unmatched: reason.Shape}},
		{name: "pooling", path: "/pooling", body: `{"model":"m","input":"ab"}`, want: prompt.Request{Prompts: -1, Chars: 4, Unmatched: reason.Shape}},
		{name: "SGLang text", path: "/generate", body: `{"text":"hi","lora_path":"sql","sampling_params":{"max_new_tokens":4,"n":3}}`, noModel: true, want: prompt.Request{Shape: tokenizer.Completion, Chars: 2, Adapter: "sql", MaxTokens: 4, N: 3}},
		{name: "SGLang ids", path: "/generate", body: `{"input_ids":[1,2]}`, noModel: true, want: prompt.Request{TokenIDs: []uint32{1, 2}}},
		{name: "options of sampling_params", path: "/inference/v1/generate", body: `{"model":"m","token_ids":[1],"sampling_params":{"model":"x","cache_salt":"x","token_ids":[2],"prompt_logprobs":1}}`, want: prompt.Request{Unmatched: reason.CacheBypassed}},
		{name: "SGLang scores the prompt", path: "/generate", body: `{"input_ids":[1,2],"return_logprob":true,"logprob_start_len":0}`, noModel: true, want: prompt.Request{Unmatched: reason.CacheBypassed}},
		{name: "SGLang scores the answer", path: "/generate", body: `{"input_ids":[1,2],"return_logprob":true}`, noModel: true, want: prompt.Request{TokenIDs: []uint32{1, 2}}},
		{name: "SGLang image", path: "/generate", body: `{"input_ids":[1,2],"image_data":"AA"}`, noModel: true, want: prompt.Request{Media: 1, Unmatched: reason.Shape}},
		{name: "vLLM generate", path: "/inference/v1/generate", body: `{"model":"m","token_ids":[1,2],"features":null}`, want: prompt.Request{TokenIDs: []uint32{1, 2}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, problem := prompt.Parse(c.path, "application/json", []byte(c.body), prompt.Limits{})
			if problem != nil {
				t.Fatalf("refused: %+v", problem)
			}
			want := c.want
			want.Kind = prompt.KindOf(c.path)
			want.N = max(want.N, 1)
			if !c.noModel {
				want.Model = "m"
			}
			if want.Prompts == 0 {
				want.Prompts = 1
			}
			want.Prompts = max(want.Prompts, 0)
			if !slices.Equal(got.TokenIDs, want.TokenIDs) {
				t.Errorf("ids %v, want %v", got.TokenIDs, want.TokenIDs)
			}
			if !slices.EqualFunc(got.Further, want.Further, slices.Equal) {
				t.Errorf("further ids %v, want %v", got.Further, want.Further)
			}
			for _, ids := range append(want.Further, want.TokenIDs) {
				want.IDs += len(ids)
			}
			if want.Unmatched != "" && want.IDs == 0 {
				want.IDs = got.IDs // not said above
			}
			if g, w := *got, want; !equal(g, w) {
				t.Errorf("\n got %+v\nwant %+v", g, w)
			}
		})
	}
}

func equal(a, b prompt.Request) bool {
	return a.Kind == b.Kind && a.Shape == b.Shape && a.Model == b.Model && a.Adapter == b.Adapter && a.Salt == b.Salt &&
		a.Private == b.Private && a.Stream == b.Stream && a.N == b.N && a.MaxTokens == b.MaxTokens && a.Prompts == b.Prompts &&
		a.Media == b.Media && a.Chars == b.Chars && a.IDs == b.IDs && a.Unmatched == b.Unmatched
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct{ name, body, code, param string }{
		{"EP-16a not JSON", `secret words`, "invalid_json", ""},
		{"EP-16a ends early", `{"model":"m","prompt":"secret words`, "invalid_json", ""},
		{"EP-16a two values", `{"model":"m","prompt":"secret"} {}`, "invalid_json", ""},
		{"EP-16a a list", `["secret"]`, "invalid_json", ""},
		{"EP-16a control character", "{\"model\":\"m\",\"prompt\":\"secret\n\"}", "invalid_json", ""},
		{"EP-16a bad member", `{"secret":nope}`, "invalid_json", ""},
		{"EP-16a word that only starts like NaN", `{"model":"m","x":NaNsecret}`, "invalid_json", ""},
		{"EP-16a words that only look like NaN", `{"model":"m","secret":[1NaN,NaN1,-NaN,nan,+Infinity,Infinityy,1Infinity]}`, "invalid_json", ""},
		{"EP-16a a digit before NaN", `{"model":"m","secret":1NaN}`, "invalid_json", ""},
		{"EP-16a a digit behind NaN", `{"model":"m","secret":NaN1}`, "invalid_json", ""},
		{"EP-16a a minus before NaN", `{"model":"m","secret":-NaN}`, "invalid_json", ""},
		{"EP-16a a plus", `{"model":"m","secret":+Infinity}`, "invalid_json", ""},
		{"EP-16a small letters", `{"model":"m","secret":nan}`, "invalid_json", ""},
		{"EP-16a NaN as a key", `{"model":"m",NaN:"secret"}`, "invalid_json", ""},
		{"EP-16a NaN and no end", `{"model":"m","secret":NaN`, "invalid_json", ""},
		{"EP-16a NaN behind it", `{"model":"m","prompt":"secret"} NaN`, "invalid_json", ""},
		{"EP-16c no model", `{"prompt":"secret"}`, "missing_model", "model"},
		{"EP-16c model is null", `{"model":null,"prompt":"secret"}`, "missing_model", "model"},
		{"EP-16c model is a number", `{"model":5,"prompt":"secret"}`, "missing_model", "model"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, p := prompt.Parse(completions, "application/json; charset=utf-8", []byte(c.body), prompt.Limits{})
			if p == nil || p.Status != 400 || p.Type != "invalid_request_error" || p.Code != c.code || p.Param != c.param {
				t.Fatalf("%+v", p)
			}
			if strings.Contains(p.Error(), "secret") {
				t.Errorf("the message quotes the body: %s", p.Message)
			}
			r, p := prompt.Parse(completions, "", []byte(c.body), prompt.Limits{DefaultModel: "d"})
			if c.code == "missing_model" && (p != nil || r.Model != "d" || r.Shape != tokenizer.Completion) {
				t.Errorf("with a default model: %+v %+v", r, p)
			}
			if r, p = prompt.Parse(completions, "", []byte(c.body), prompt.Limits{Cut: true}); p != nil {
				t.Errorf("a cut body is refused: %+v", p)
			}
			if c.code == "invalid_json" && r.Unmatched != reason.BodyCut {
				t.Errorf("a cut body: %+v", r)
			}
		})
	}
}

// TestCutBehindNaN: what stands behind a constant is seen of a cut body too.
func TestCutBehindNaN(t *testing.T) {
	r, p := prompt.Parse(completions, "", []byte(`{"x":[NaN,-Infinity],"model":"m","stream":true,"prompt":"secret wor`), prompt.Limits{Cut: true})
	if p != nil || r.Model != "m" || !r.Stream || r.Unmatched != reason.BodyCut {
		t.Errorf("%+v, %v", r, p)
	}
}

func TestRoutedByLoad(t *testing.T) {
	body := []byte(`not JSON`)
	for name, c := range map[string]struct {
		path, contentType string
		body              []byte
		why               reason.Code
	}{
		"EP-16b unknown path":    {"/v2/things", "application/json", body, reason.UnknownPath},
		"EP-16b render":          {"/v1/chat/completions/render", "application/json", body, reason.UnknownPath},
		"EP-16b path ends alike": {"/regenerate", "", body, reason.UnknownPath},
		"multipart":              {completions, "multipart/form-data; boundary=x", body, reason.UnknownPath},
		"no body":                {completions, "application/json", nil, reason.NoBody},
	} {
		r, p := prompt.Parse(c.path, c.contentType, c.body, prompt.Limits{DefaultModel: "d"})
		if p != nil || r.Unmatched != c.why || r.Model != "d" {
			t.Errorf("%s: %+v %+v", name, r, p)
		}
	}
}

func TestPaths(t *testing.T) {
	for path, want := range map[string]prompt.Kind{
		"/v1/completions":              prompt.Completions,
		"/v1/completions?beta=true":    prompt.Completions,
		"/openai/v1/chat/completions":  prompt.Chat,
		"/v1/messages?x=/v1/responses": prompt.Messages,
		"/v1/messages/count_tokens":    prompt.Unknown,
		"/inference/v1/generate":       prompt.Generate,
		"/pooling":                     prompt.Pooling,
		"/score":                       prompt.Score,
		"/v1/score":                    prompt.Score,
		"/v2/rerank":                   prompt.Rerank,
		"/classify":                    prompt.Classify,
		"":                             prompt.Unknown,
	} {
		if got := prompt.KindOf(path); got != want {
			t.Errorf("%q is %v, want %v", path, got, want)
		}
	}
}

func TestTokenCap(t *testing.T) {
	body := []byte(`{"model":"m","prompt":[1,2,3]}`)
	if r, p := prompt.Parse(completions, "", body, prompt.Limits{Tokens: 2}); p != nil || r.TokenIDs != nil || r.Unmatched != reason.Shape {
		t.Errorf("%+v %v", r, p)
	}
	if r, _ := prompt.Parse(completions, "", body, prompt.Limits{Tokens: 3}); len(r.TokenIDs) != 3 {
		t.Errorf("%+v", r)
	}
	several := []byte(`{"model":"m","prompt":[[1,2],[3],[4]]}`) // the bound is of all together
	for limit, want := range map[int]reason.Code{3: reason.Shape, 4: reason.None} {
		if r, p := prompt.Parse(completions, "", several, prompt.Limits{Tokens: limit}); p != nil || r.Unmatched != want || (r.TokenIDs == nil) != (want != "") {
			t.Errorf("%d ids: %+v", limit, r)
		}
	}
}
