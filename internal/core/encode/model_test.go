package encode_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
	"github.com/eppctl/eppctl/internal/core/encode"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
	"github.com/eppctl/eppctl/internal/testdata"
)

// tiny is the encoder of the captures' own model.
func tiny(tb testing.TB, files chat.Files, engine chat.Engine, cache int) *encode.Model {
	tb.Helper()
	dir := testdata.Dirs(tb, "engines")[0] + "/models/tiny-llama/"
	tok, err := native.LoadHuggingFace(read(tb, dir+"tokenizer.json"))
	if err != nil {
		tb.Fatal(err)
	}
	if files.TokenizerConfig == nil {
		files.TokenizerConfig = read(tb, dir+"tokenizer_config.json")
	}
	r, err := chat.New(files, chat.Options{Engine: engine, Limits: jinja2.Limits{Output: 1 << 16, Steps: 20_000, Depth: 50}})
	o := encode.Options{Tokenizer: tok, Chat: r, NoChat: err, Engine: engine, Cache: cache}
	return encode.New(o)
}

// ask encodes a body.
func ask(tb testing.TB, m *encode.Model, shape tokenizer.Shape, body string) *encode.Encoding {
	tb.Helper()
	e, err := m.Encode(context.Background(), tokenizer.Text{Shape: shape, Body: []byte(body)})
	if err != nil {
		tb.Fatalf("%s: %v", body, err)
	}
	return e
}

func TestCompletionOptions(t *testing.T) {
	m := tiny(t, chat.Files{}, chat.VLLM, 0)
	text := strings.Repeat("the quick brown fox ", 10)
	bare, _, err := m.EncodeText(t.Context(), text, false)
	if err != nil || len(bare) < 20 {
		t.Fatal(len(bare), err)
	}
	with := slices.Concat([]uint32{0}, bare) // <|bos|>
	last := func(n int) []uint32 { return bare[len(bare)-n:] }
	for _, c := range []struct {
		body string
		want []uint32
	}{
		{`{"prompt":"` + text + `"}`, with},
		{`{"text":"` + text + `","sampling_params":{}}`, with},
		{`{"prompt":["` + text + `","other"]}`, with},
		{`{"prompt":"first","prompt":"` + text + `"}`, with},
		{`{"prompt":"` + text + `","add_special_tokens":false}`, bare},
		{`{"prompt":"` + text + `","truncate_prompt_tokens":7}`, slices.Concat([]uint32{0}, last(6))},
		{`{"prompt":"` + text + `","truncate_prompt_tokens":7,"truncation_side":"left"}`, slices.Concat([]uint32{0}, last(6))},
		{`{"prompt":"` + text + `","truncate_prompt_tokens":7,"add_special_tokens":false}`, last(7)},
		{`{"prompt":"` + text + `","truncate_prompt_tokens":1}`, []uint32{0}},
		{`{"prompt":"` + text + `","truncate_prompt_tokens":9223372036854775807}`, with},
		{`{"prompt":"` + text + `","truncate_prompt_tokens":null}`, with},
		{`{"prompt":""}`, []uint32{0}},
	} {
		if got := ask(t, m, tokenizer.Completion, c.body); !slices.Equal(got.IDs, c.want) || got.Cut >= 0 || len(got.Doubts) > 0 {
			t.Errorf("%.200s: %+v, want %v", c.body, got, c.want)
		}
	}
}

// What cannot be encoded is said, and the prompt is not in what is said.
func TestRefusals(t *testing.T) {
	m := tiny(t, chat.Files{}, chat.VLLM, 0)
	const secret = "sesame"
	for _, c := range []struct {
		shape tokenizer.Shape
		body  string
		want  error // nil: a *chat.Unrenderable or *chat.Rejected
	}{
		{tokenizer.Completion, `{"prompt":"sesame"`, encode.ErrBody},
		{tokenizer.Completion, `["sesame"]`, encode.ErrBody},
		{tokenizer.Completion, `{"prompt":"sesame"} sesame`, encode.ErrBody},
		{tokenizer.Completion, `{"prompt":[1,2]}`, encode.ErrNoPrompt},
		{tokenizer.Completion, `{"prompt":[]}`, encode.ErrNoPrompt},
		{tokenizer.Completion, `{"prompt":{"sesame":1}}`, encode.ErrNoPrompt},
		{tokenizer.Completion, `{"prompt":"sesame","prompt_embeds":"x"}`, encode.ErrNoPrompt},
		{tokenizer.Completion, `{"prompt":"sesame \ud800"}`, encode.ErrNotText},
		{tokenizer.Completion, "{\"prompt\":\"sesame \xff\"}", encode.ErrNotText},
		{tokenizer.Completion, `{"prompt":"sesame","add_special_tokens":"no"}`, nil},
		{tokenizer.Completion, `{"prompt":"sesame","truncate_prompt_tokens":-1}`, nil},
		{tokenizer.Completion, `{"prompt":"sesame","truncate_prompt_tokens":3,"truncation_side":"right"}`, nil},
		{tokenizer.Chat, `{"messages":"sesame"}`, nil},
		{tokenizer.Chat, `{"messages":[{"role":"user","content":"sesame"}],"truncate_prompt_tokens":3}`, nil},
		{tokenizer.Chat, `{"messages":[{"role":"user","content":"sesame"}],"add_special_tokens":1}`, nil},
		{tokenizer.Chat, `{"messages":[{"role":"user","content":"sesame`, encode.ErrBody},
		{0, `{"prompt":"sesame"}`, encode.ErrShape},
		{99, `{"prompt":"sesame"}`, encode.ErrShape},
	} {
		_, err := m.Encode(context.Background(), tokenizer.Text{Shape: c.shape, Body: []byte(c.body)})
		var unknown *chat.Unrenderable
		var refused *chat.Rejected
		switch {
		case err == nil || c.want != nil && !errors.Is(err, c.want):
			t.Errorf("%s: %v, want %v", c.body, err, c.want)
		case c.want == nil && !errors.As(err, &unknown) && !errors.As(err, &refused):
			t.Errorf("%s: %v", c.body, err)
		case strings.Contains(err.Error(), secret):
			t.Errorf("%s: the prompt is in the error: %v", c.body, err)
		}
	}
	noChat := tiny(t, chat.Files{TokenizerConfig: []byte(`{}`)}, chat.VLLM, 0)
	if _, err := noChat.Encode(context.Background(), tokenizer.Text{Shape: tokenizer.Chat, Body: []byte(`{"messages":[]}`)}); !errors.Is(err, encode.ErrNoChat) || !strings.Contains(err.Error(), "no chat template") || strings.Contains(err.Error(), "cannot be rendered") {
		t.Errorf("without a template: %v", err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := m.Tokenize(ended, tokenizer.Text{Shape: tokenizer.Completion, Body: []byte(`{"prompt":"x"}`)}); !errors.Is(err, context.Canceled) {
		t.Errorf("past the deadline: %v", err)
	}
}

const image = `{"messages":[{"role":"system","content":"Describe what you see there, and nothing else."},
{"role":"user","content":[{"type":"text","text":"What is in the picture that follows?"},{"type":"image_url","image_url":{"url":"data:x"}},{"type":"text","text":"TAIL"}]}]}`

// Of a chat with an image only what stands before it is given, and that is the same
// whatever stands there.
func TestMedia(t *testing.T) {
	m := tiny(t, chat.Files{ChatTemplate: []byte(`{{ bos_token }}{% for m in messages %}<|turn|>{{ m.role }}: {% if m.content is string %}{{ m.content }}{% else %}` +
		`{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}{% else %}<image>{% endif %}{% endfor %}{% endif %}{% endfor %}`)}, chat.VLLM, 0)
	got := ask(t, m, tokenizer.Chat, image)
	whole := ask(t, m, tokenizer.Chat, strings.NewReplacer(`{"type":"image_url","image_url":{"url":"data:x"}}`, `{"type":"text","text":"s, or not"}`).Replace(image))
	if got.Cut != len(got.IDs) || got.Cut < 30 || whole.Cut != -1 {
		t.Errorf("cut at %d of %d; without an image %d", got.Cut, len(got.IDs), whole.Cut)
	}
	if !slices.Equal(got.IDs, whole.IDs[:len(got.IDs)]) {
		t.Errorf("%v does not begin %v", got.IDs, whole.IDs)
	}
}

// Exact is claimed after proof, and not for requests with doubts.
func TestStatus(t *testing.T) {
	plain := tokenizer.Text{Shape: tokenizer.Chat, Body: []byte(`{"messages":[{"role":"user","content":"q"}]}`)}
	parts := tokenizer.Text{Shape: tokenizer.Chat, Body: []byte(`{"messages":[{"role":"user","content":[{"type":"text","text":"q"}]}]}`)}
	for _, c := range []struct {
		name   string
		engine chat.Engine
		text   tokenizer.Text
		is     encode.Standing
		want   tokenizer.Status
	}{
		{"not proven", chat.VLLM, plain, encode.Untested, tokenizer.Unverified},
		{"proven", chat.VLLM, plain, encode.Proven, tokenizer.Exact},
		{"refuted", chat.VLLM, plain, encode.Refuted, tokenizer.Unverified},
		{"doubted", chat.VLLM, plain, encode.Doubted, tokenizer.Unverified},
		{"parts for vLLM", chat.VLLM, parts, encode.Proven, tokenizer.Exact},
		{"parts for SGLang", chat.SGLang, parts, encode.Proven, tokenizer.Unverified},
	} {
		m := tiny(t, chat.Files{}, c.engine, 0)
		m.SetStanding(c.is)
		if r, err := m.Tokenize(context.Background(), c.text); err != nil || r.Status != c.want || r.Doubtful != (c.engine == chat.SGLang) {
			t.Errorf("%s: %+v, %v", c.name, r, err)
		}
	}
}

// A template that prints the date needs the engine's clock.
func TestDate(t *testing.T) {
	dir := testdata.Dirs(t, "engines")[0] + "/models/tiny-llama/"
	tok, err := native.LoadHuggingFace(read(t, dir+"tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := chat.New(chat.Files{ChatTemplate: []byte(`{{ strftime_now('%d %B %Y') }}`)}, chat.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := encode.Options{Tokenizer: tok, Chat: r}
	body := tokenizer.Text{Shape: tokenizer.Chat, Body: []byte(`{"messages":[{"role":"user","content":"q"}]}`)}
	if _, err := encode.New(o).Encode(context.Background(), body); err == nil {
		t.Error("rendered without a clock")
	}
	o.Now = func() time.Time { return time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC) }
	m := encode.New(o)
	e, err := m.Encode(context.Background(), body)
	want, _, _ := m.EncodeText(t.Context(), "30 November 2026", false)
	if err != nil || !slices.Equal(e.IDs, want) || len(e.Doubts) != 1 {
		t.Errorf("%+v, %v, want %v", e, err, want)
	}
}

// The cache changes nothing but the work, for many at once.
func TestCache(t *testing.T) {
	with, without := tiny(t, chat.Files{}, chat.VLLM, 1<<20), tiny(t, chat.Files{}, chat.VLLM, 0)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			reused, turns := 0, ""
			for range 6 {
				turns += `{"role":"user","content":"` + strings.Repeat("Replica meadow winter engine barrel topic without bridge. ", 80) + `"},`
				body := `{"messages":[` + strings.TrimSuffix(turns, ",") + `]}`
				got, want := ask(t, with, tokenizer.Chat, body), ask(t, without, tokenizer.Chat, body)
				if !slices.Equal(got.IDs, want.IDs) {
					t.Error("the cache changes the ids")
				}
				reused += got.Reused
			}
			if reused == 0 {
				t.Error("nothing was found again")
			}
		})
	}
	all.Wait()
}

// FuzzEncode: no body ends in a panic; ids come with a cut inside them or none.
func FuzzEncode(f *testing.F) {
	f.Add([]byte(image))
	f.Add([]byte(`{"prompt":"a b","add_special_tokens":false,"truncate_prompt_tokens":3}`))
	f.Add([]byte(`{"prompt":["a\ud800",[1]],"text":null}`))
	f.Add([]byte(`{"messages":[{"role":"user","content":"q"}],"add_special_tokens":true}`))
	m := tiny(f, chat.Files{}, chat.VLLM, 1<<16)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, shape := range []tokenizer.Shape{tokenizer.Completion, tokenizer.Chat, tokenizer.Embedding, tokenizer.EmbeddingChat} {
			e, err := m.Encode(context.Background(), tokenizer.Text{Shape: shape, Body: body})
			if err == nil && e.Cut >= 0 && e.Cut != len(e.IDs) {
				t.Errorf("cut at %d of %d", e.Cut, len(e.IDs))
			}
		}
	})
}

// lateContext ends as soon as encoding has begun.
type lateContext struct {
	context.Context
	looks *int
}

func (c lateContext) Err() error {
	if *c.looks++; *c.looks > 1 {
		return context.Canceled
	}
	return nil
}

// A text too long for any engine is left alone: as one word it would take gigabytes.
func TestPromptsAreBounded(t *testing.T) {
	m := tiny(t, chat.Files{}, chat.VLLM, 0)
	for size, want := range map[int]error{encode.MaxPrompt: context.Canceled, encode.MaxPrompt + 1: native.ErrLong} {
		text := strings.Repeat("x", size)
		_, err := m.Encode(lateContext{t.Context(), new(int)}, tokenizer.Text{Shape: tokenizer.Completion, Body: []byte(`{"prompt":"` + text + `"}`)})
		if !errors.Is(err, want) {
			t.Errorf("%d bytes: %v, want %v", size, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "xxx") {
			t.Error("the error quotes the prompt")
		}
	}
}
