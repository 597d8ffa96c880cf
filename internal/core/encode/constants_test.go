package encode_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/encode"
	"github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/pyjson"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/testdata"
)

// constants are bodies with NaN and the infinities, and what vLLM made of them
// (testdata/engines/README.md).
type constants struct {
	Template string
	Fields   map[string][]string
	Cases    []struct {
		Name, Path, Body, Text string
		Status                 int
	}
	Depths []struct {
		Name   string
		Taken  int
		Status int
	}
}

func readConstants(tb testing.TB) (c constants) {
	tb.Helper()
	testdata.GzipJSON(tb, filepath.Join(testdata.Dirs(tb, "engines")[0], "json-constants", "json-constants.json.gz"), &c)
	return c
}

var shapes = map[string]tokenizer.Shape{
	"/v1/chat/completions": tokenizer.Chat, "/v1/completions": tokenizer.Completion, "/v1/messages": tokenizer.Messages, "/v1/responses": tokenizer.Responses,
}

// older are the fields for which a version of vLLM that is not the captured one takes
// the constants (0.23.0: its request classes and SamplingParams).
func older(name string) bool {
	return strings.Contains(name, ": temperature ") || strings.Contains(name, ": repetition_penalty ")
}

// TestConstants: what vLLM takes has the ids of the text that vLLM made of it, and what it
// refuses has none.
func TestConstants(t *testing.T) {
	c := readConstants(t)
	m := tiny(t, chat.Files{ChatTemplate: []byte(c.Template)}, chat.VLLM, 0)
	same, refused := 0, 0
	for _, r := range c.Cases {
		shape := shapes[r.Path]
		got, err := m.Encode(t.Context(), tokenizer.Text{Shape: shape, Body: []byte(r.Body)})
		parsed, problem := prompt.Parse(r.Path, "", []byte(r.Body), prompt.Limits{})
		if r.Status != 200 {
			if err == nil && !older(r.Name) {
				t.Errorf("%s: vLLM answers %d, and there are ids", r.Name, r.Status)
			}
			refused++
			continue
		}
		want, _, wrong := m.EncodeText(t.Context(), r.Text, false)
		switch same++; {
		case wrong != nil:
			t.Fatal(wrong)
		case err != nil:
			t.Errorf("%s: %v, the engine's prompt is %q", r.Name, err, r.Text)
		case !slices.Equal(got.IDs, want) || got.Cut >= 0 || len(got.Doubts) > 0:
			t.Errorf("%s: %+v, the engine's prompt is %q", r.Name, got, r.Text)
		case problem != nil || parsed.Shape != shape || parsed.Unmatched != "" || parsed.Model != "m":
			t.Errorf("%s: %+v, %v", r.Name, parsed, problem)
		}
	}
	t.Logf("%d prompts are the engine's, %d bodies are refused by both", same, refused)
	if same < 200 || refused < 800 {
		t.Error("cases are missing")
	}
}

// TestConstantsOfSGLang: its bodies are read by orjson, which takes none of them.
func TestConstantsOfSGLang(t *testing.T) {
	c := readConstants(t)
	m := tiny(t, chat.Files{ChatTemplate: []byte(c.Template)}, chat.SGLang, 0)
	seen := 0
	for _, r := range c.Cases {
		if pyjson.Numbers([]byte(r.Body)) == nil {
			continue
		}
		seen++
		_, err := m.Encode(t.Context(), tokenizer.Text{Shape: shapes[r.Path], Body: []byte(r.Body)})
		if rejected := new(chat.Rejected); r.Status == 200 && !errors.As(err, &rejected) || err == nil {
			t.Errorf("%s: %v", r.Name, err)
		}
	}
	for arguments, fine := range map[string]bool{`{"a":1}`: true, `{"a":NaN}`: false, `{"a":-Infinity}`: false, `{"a":1e400}`: false, `[1]`: false, `{`: false, ``: false, `{"a":"NaN"}`: true} {
		body := `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":` +
			string(quoted(arguments)) + `}}]}]}`
		_, err := m.Encode(t.Context(), tokenizer.Text{Shape: tokenizer.Chat, Body: []byte(body)})
		if rejected := new(chat.Rejected); fine != (err == nil) || err != nil && !errors.As(err, &rejected) {
			t.Errorf("arguments %s: %v", arguments, err)
		}
	}
	if seen < 200 {
		t.Errorf("only %d bodies", seen)
	}
}

// quoted is a text as JSON.
func quoted(s string) []byte {
	return []byte(`"` + strings.ReplaceAll(s, `"`, `\"`) + `"`)
}

// TestConstantsEmbedded: by vLLM's request classes, for lack of a captured engine that
// embeds.
func TestConstantsEmbedded(t *testing.T) {
	m := tiny(t, chat.Files{}, chat.VLLM, 0)
	for body, fine := range map[string]bool{
		`{"input":"Hi","unknown":NaN}`:                      true,
		`{"input":"Hi","dimensions":NaN}`:                   false,
		`{"input":["Hi",NaN]}`:                              false,
		`{"input":"Hi","priority":[-Infinity]}`:             false,
		`{"input":"Hi","mm_processor_kwargs":{"a":NaN}}`:    true,
		`{"input":"Hi","add_special_tokens":NaN}`:           false,
		`{"input":"Hi","unknown":NaN,"input":-Infinity}`:    false,
		`{"input":"Hi","unknown":-NaN}`:                     false,
		`{"input":"Hi","unknown":Infinity} `:                true,
		`{"input":"Hi","unknown":Infinity} Infinity`:        false,
		"{\"input\":\"Hi\",\"temperature\":\n\tInfinity\t}": true, // no field of theirs
	} {
		e, err := m.Encode(t.Context(), tokenizer.Text{Shape: tokenizer.Embedding, Body: []byte(body)})
		if fine != (err == nil) || err == nil && !slices.Equal(e.IDs, ask(t, m, tokenizer.Embedding, `{"input":"Hi"}`).IDs) {
			t.Errorf("%s: %v, %v", body, e, err)
		}
		if err != nil && strings.Contains(err.Error(), "Hi") {
			t.Errorf("the error quotes the text: %v", err)
		}
	}
}

// TestFields: every field of vLLM's classes is known to be refused, but for those that
// some version takes.
func TestFields(t *testing.T) {
	c := readConstants(t)
	m := tiny(t, chat.Files{ChatTemplate: []byte(c.Template)}, chat.VLLM, 0)
	heads := map[string]string{"chat": `{"messages":[{"role":"user","content":"Hi"}],`, "completion": `{"prompt":"Hi",`, "messages": `{"messages":[{"role":"user","content":"Hi"}],"max_tokens":1,`, "responses": `{"input":"Hi",`}
	taken := map[string]int{}
	for endpoint, names := range c.Fields {
		shape := map[string]tokenizer.Shape{"chat": tokenizer.Chat, "completion": tokenizer.Completion, "messages": tokenizer.Messages, "responses": tokenizer.Responses}[endpoint]
		for _, name := range names {
			_, err := m.Encode(t.Context(), tokenizer.Text{Shape: shape, Body: []byte(heads[endpoint] + `"` + name + `":-Infinity}`)})
			rejected, unknown := new(chat.Rejected), new(chat.Unrenderable)
			if err == nil {
				taken[name]++
			} else if !errors.As(err, &rejected) && !errors.As(err, &unknown) && !errors.Is(err, encode.ErrNoPrompt) {
				t.Errorf("%s of %s: %v", name, endpoint, err)
			}
		}
	}
	if len(taken) != 3 || taken["temperature"] != 4 || taken["repetition_penalty"] != 3 || taken["length_penalty"] != 2 {
		t.Errorf("taken: %v", taken)
	}
}

// TestDepths: vLLM takes bodies that are nested as deep as its Python lets it. No chat is
// rendered here beyond 500 levels, whatever an engine does.
func TestDepths(t *testing.T) {
	c := readConstants(t)
	m := tiny(t, chat.Files{}, chat.VLLM, 0)
	for _, d := range c.Depths {
		if d.Taken < 900 || d.Taken > 1000 || d.Status != 400 {
			t.Errorf("%s: %+v", d.Name, d)
		}
	}
	for levels, fine := range map[int]bool{490: true, 510: false, 970: false} {
		body := `{"messages":[{"role":"user","content":"Hi"}],"unknown":` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + `}`
		_, err := m.Encode(t.Context(), tokenizer.Text{Shape: tokenizer.Chat, Body: []byte(body)})
		if unknown := new(chat.Unrenderable); fine != (err == nil) || err != nil && !errors.As(err, &unknown) {
			t.Errorf("%d levels: %v", levels, err)
		}
	}
	deep := `{"prompt":"Hi","unknown":[NaN,` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `]}`
	if got := ask(t, m, tokenizer.Completion, deep); !slices.Equal(got.IDs, ask(t, m, tokenizer.Completion, `{"prompt":"Hi"}`).IDs) {
		t.Errorf("%v", got.IDs)
	}
}
