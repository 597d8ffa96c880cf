package modelsource

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/encode"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
	"github.com/eppctl/eppctl/internal/testdata"
)

// folder writes a model's files.
func folder(t testing.TB, files map[string][]byte) *Place {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, b, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return &Place{Name: dir, Dir: dir}
}

// vocab is one of the vocabularies of the tokenizer's test data.
func vocab(t testing.TB, name string) []byte {
	return testdata.Gunzip(t, filepath.Join(testdata.Dirs(t, "tokenizer")[0], "vocab", name+".gz"))
}

// with is a model's files with others.
func with(files map[string][]byte, more map[string][]byte) map[string][]byte {
	files = maps.Clone(files)
	maps.Copy(files, more)
	maps.DeleteFunc(files, func(_ string, b []byte) bool { return b == nil })
	return files
}

// Which file the ids come from, and how it is named.
func TestChoice(t *testing.T) {
	tiny := tinyFiles(t)
	sp, tekken, ranks := vocab(t, "mistral_instruct_v3.model"), vocab(t, "tekken_240911.json"), vocab(t, "qwen3_6.tiktoken")
	for _, c := range []struct {
		name     string
		files    map[string][]byte
		o        Options
		file     string
		split    string
		template string // or why there is none
		doubt    bool
		err      string
	}{
		{name: "Hugging Face", files: tiny, file: "tokenizer.json", split: "cl100k/3", template: "tokenizer_config.json"},
		{name: "a template of its own", files: with(tiny, map[string][]byte{"chat_template.jinja": []byte("x")}), file: "tokenizer.json", split: "cl100k/3", template: "chat_template.jinja"},
		{name: "the engine's template", files: tiny, o: Options{Template: "x"}, file: "tokenizer.json", split: "cl100k/3", template: "option"},
		{name: "beside sentencepiece", files: with(tiny, map[string][]byte{"tokenizer.model": sp}), file: "tokenizer.json", split: "cl100k/3", template: "tokenizer_config.json"},
		{name: "Mistral's beside it", files: with(tiny, map[string][]byte{"tekken.json": tekken}), file: "tekken.json", split: "tekken", template: "mistral-common encodes the chat"},
		{name: "the same, told not to", files: with(tiny, map[string][]byte{"tekken.json": tekken}), o: Options{TokenizerMode: "hf"}, file: "tokenizer.json", split: "cl100k/3", template: "tokenizer_config.json"},
		{name: "Mistral's older form", files: map[string][]byte{"tokenizer.model.v3": sp, "tokenizer.model": sp}, file: "tokenizer.model.v3", split: "blanks", template: "mistral-common encodes the chat"},
		{name: "sentencepiece alone", files: map[string][]byte{"tokenizer.model": sp}, file: "tokenizer.model", split: "blanks", template: "no chat template", doubt: true},
		{name: "ranks", files: map[string][]byte{"qwen.tiktoken": ranks, "tokenizer_config.json": []byte(`{"tokenizer_class":"QWenTokenizer","added_tokens_decoder":{"248044":{"content":"<|endoftext|>"}}}`)},
			file: "qwen.tiktoken", split: "cl100k/marks", template: "no chat template", doubt: true},
		{name: "ranks of a class", files: map[string][]byte{"qwen.tiktoken": append(slices.Clone(ranks), '\n'), "tokenizer_config.json": []byte(`{"tokenizer_class":"QWenTokenizer","added_tokens_decoder":{"248044":{"content":"<|endoftext|>"}}}`)},
			file: "qwen.tiktoken", split: "cl100k/1", template: "no chat template", doubt: true},
		{name: "published ranks", files: map[string][]byte{"cl100k_base.tiktoken": vocab(t, "cl100k_base.tiktoken")},
			file: "cl100k_base.tiktoken", split: "cl100k/tiktoken", template: "no chat template", doubt: true},
		{name: "published ranks without their added tokens", files: map[string][]byte{"qwen.tiktoken": ranks}, err: `tokenizer_class ""`},
		{name: "ranks of unknown code", files: map[string][]byte{"x.tiktoken": ranks, "tokenizer_config.json": []byte(`{"tokenizer_class":"Other"}`)}, err: `tokenizer_class "Other"`},
		{name: "two of a kind", files: map[string][]byte{"a.tiktoken": ranks, "b.tiktoken": ranks}, err: "a.tiktoken, b.tiktoken"},
		{name: "none", files: map[string][]byte{"config.json": []byte("{}")}, err: "no tokenizer file"},
		{name: "an unknown element", files: with(tiny, map[string][]byte{"tokenizer.json": []byte(strings.Replace(string(tiny["tokenizer.json"]), `"normalizer":null`, `"normalizer":{"type":"Capitalize"}`, 1))}), err: "Capitalize"},
		{name: "a broken config", files: with(tiny, map[string][]byte{"config.json": []byte("[")}), err: "config.json"},
		{name: "too large", files: with(tiny, map[string][]byte{"config.json": make([]byte, 16<<20+1)}), err: "larger than any"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := folder(t, c.files).Load(c.o)
			if c.err != "" {
				if _, ours := kindOf(err); !ours || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			id := m.Identity
			if id.Vocabulary.Name != c.file || id.Split != c.split || (id.Doubt != "") != c.doubt || !strings.Contains(id.Template+id.NoChat, c.template) {
				t.Errorf("%+v", id)
			}
		})
	}
}

// TestOwnEncoders: whatever of a model's files names one whose chats engines encode in
// code of their own, none is rendered from a template that lies beside them: some by an
// encoder of ours, named, and the others not at all. The ids of texts are made all the same.
func TestOwnEncoders(t *testing.T) {
	tiny := with(tinyFiles(t), map[string][]byte{"chat_template.jinja": []byte("{{ messages }}")})
	sp, tekken := vocab(t, "mistral_instruct_v3.model"), vocab(t, "tekken_240911.json")
	harmony := map[string][]byte{"tokenizer.json": testdata.Gunzip(t, filepath.Join(testdata.Dirs(t, "encoders")[0], "harmony_tokenizer.json.gz"))}
	says := func(config string) map[string][]byte {
		return with(tiny, map[string][]byte{"config.json": []byte(config)})
	}
	for name, c := range map[string]struct {
		files map[string][]byte
		mode  string
		why   string
	}{
		"gpt-oss":                         {with(harmony, map[string][]byte{"config.json": []byte(`{"model_type":"gpt_oss","architectures":["GptOssForCausalLM"]}`)}), "", ""},
		"gpt-oss, whatever its mode":      {with(harmony, map[string][]byte{"config.json": []byte(`{"model_type":"gpt_oss"}`)}), "hf", ""},
		"gpt-oss, with another tokenizer": {says(`{"model_type":"gpt_oss"}`), "", "o200k_harmony"},
		"gpt-oss, by its architecture":    {says(`{"architectures":["GptOssForCausalLM"]}`), "", "Harmony"},
		"Mistral, by the mode":            {says(`{"model_type":"mistral"}`), "mistral", "no tokenizer file"},
		"Mistral, by tekken.json":         {with(tiny, map[string][]byte{"tekken.json": tekken}), "", "mistral-common"},
		"Mistral, tekken.json alone":      {map[string][]byte{"tekken.json": tekken}, "", "mistral-common"},
		"Mistral, its older file alone":   {map[string][]byte{"tokenizer.model.v3": sp}, "", "mistral-common"},
		"Mistral, with a template":        {map[string][]byte{"tekken.json": tekken, "chat_template.jinja": []byte("{{ messages }}")}, "", "mistral-common"},
		"DeepSeek V3.2":                   {says(`{"model_type":"deepseek_v32","architectures":["DeepseekV32ForCausalLM"]}`), "", ""},
		"DeepSeek V3.2, by its type":      {says(`{"model_type":"deepseek_v32"}`), "", ""},
		"DeepSeek V3.2, by the mode":      {says(`{"model_type":"deepseek_v3","architectures":["DeepseekV3ForCausalLM"]}`), "deepseek_v32", ""},
		"DeepSeek V4":                     {says(`{"architectures":["DeepseekV4ForCausalLM"]}`), "auto", ""},
		"DeepSeek V4, by its type":        {says(`{"model_type":"deepseek_v4"}`), "", ""},
		"DeepSeek V4.1, by its type":      {says(`{"model_type":"deepseek_v41"}`), "", "DeepSeek's own encoder"},
		"DeepSeek V4.1":                   {says(`{"architectures":["DeepseekV41ForCausalLM"]}`), "", "DeepSeek's own encoder"},
		"Kimi K3":                         {says(`{"architectures":["KimiK3ForConditionalGeneration"]}`), "", "Kimi's own encoder"},
		"Kimi K3, by its type":            {says(`{"model_type":"kimi_k3"}`), "", "Kimi's own encoder"},
		"Kimi-Audio":                      {says(`{"architectures":["MoonshotKimiaForCausalLM"]}`), "", "Kimi-Audio"},
		"a mode that nobody knows":        {tiny, "deepseek_v9", "not known here"},
		"DeepSeek V3 is rendered":         {says(`{"model_type":"deepseek_v3","architectures":["DeepseekV3ForCausalLM"]}`), "", ""},
		"DeepSeek V4 told to be is, too":  {says(`{"architectures":["DeepseekV4ForCausalLM"]}`), "hf", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := folder(t, c.files).Load(Options{TokenizerMode: c.mode, Now: time.Now})
			if err != nil {
				if c.why == "" || !strings.Contains(err.Error(), c.why) {
					t.Error(err)
				}
				return
			}
			if (m.Identity.NoChat != "") != (c.why != "") || !strings.Contains(m.Identity.NoChat, c.why) {
				t.Errorf("why chats are not rendered: %q, want %q", m.Identity.NoChat, c.why)
			}
			kind, _, _ := strings.Cut(name, ",")
			if own := map[string]string{"DeepSeek V3.2": "encoder deepseek_v32", "DeepSeek V4": "encoder deepseek_v4", "gpt-oss": "encoder harmony"}[kind]; own != "" && c.why == "" && m.Identity.Template != own {
				t.Errorf("rendered by %q, want %q", m.Identity.Template, own)
			}
			body := []byte(`{"messages":[{"role":"user","content":"hello"}],"prompt":"hello"}`)
			if _, err := m.Encode(t.Context(), tokenizer.Text{Shape: tokenizer.Chat, Body: body}); errors.Is(err, encode.ErrNoChat) != (c.why != "") {
				t.Errorf("chat: %v", err)
			}
			if e, err := m.Encode(t.Context(), tokenizer.Text{Shape: tokenizer.Completion, Body: body}); err != nil || len(e.IDs) == 0 {
				t.Errorf("text: %v", err)
			}
		})
	}
}

// An unknown pattern is a slow splitter, and told.
func TestRegexSplit(t *testing.T) {
	files := tinyFiles(t)
	const known = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	changed := strings.Replace(string(files["tokenizer.json"]), known, `(?i:'s|'t|'re|'ve|'m|'ll|'d|'x)`, 1)
	files["tokenizer.json"] = []byte(changed)
	m, err := folder(t, files).Load(Options{})
	if err != nil || m.Identity.Split != "regex" {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := m.Tokenize(context.Background(), tokenizer.Text{Shape: tokenizer.Completion, Body: []byte(`{"prompt":"it'x"}`)}); err != nil {
		t.Error(err)
	}
}

// TK-14: a tokenizer of another hash than configured is refused.
func TestHash(t *testing.T) {
	p := folder(t, tinyFiles(t))
	m, err := p.Load(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, good := range []string{m.Identity.Vocabulary.SHA256, m.Identity.Digest, strings.ToUpper(m.Identity.Digest)} {
		if _, err := p.Load(Options{SHA256: good}); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{strings.Repeat("0", 64), m.Identity.Digest[:63], "x"} {
		_, err := p.Load(Options{SHA256: bad})
		if kind, _ := kindOf(err); kind != Invalid || !strings.Contains(err.Error(), m.Identity.Vocabulary.SHA256) || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if !slices.IsSortedFunc(m.Identity.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) }) || len(m.Identity.Files) != 5 {
		t.Errorf("%+v", m.Identity.Files)
	}
	// The template is part of all files together, and not of the vocabulary.
	other := tinyFiles(t)
	other["chat_template.jinja"] = []byte("x")
	n, err := folder(t, other).Load(Options{SHA256: m.Identity.Vocabulary.SHA256})
	if err != nil || n.Identity.Digest == m.Identity.Digest {
		t.Errorf("%v, %v", n, err)
	}
}

// What tokenizer_config.json asks for and the tokenizer does not do leaves a doubt: of
// the texts that get special tokens, or of all.
func TestConfigDoubts(t *testing.T) {
	tiny := tinyFiles(t)
	deepseek := vocab(t, "deepseek_v4.tokenizer.json")
	config := func(text string) map[string][]byte { return map[string][]byte{"tokenizer_config.json": []byte(text)} }
	const exact, not = tokenizer.Exact, tokenizer.Unverified
	for name, c := range map[string]struct {
		files      map[string][]byte
		with, bare tokenizer.Status
	}{
		"a token in front, and it is there":   {with(tiny, config(`{"add_bos_token":true,"add_eos_token":false}`)), exact, exact},
		"nothing said":                        {with(tiny, config(`{}`)), exact, exact},
		"a token in front, and there is none": {with(tiny, map[string][]byte{"tokenizer.json": deepseek, "tokenizer_config.json": []byte(`{"add_bos_token":true}`)}), not, exact},
		"none in front, and there is one":     {with(tiny, config(`{"add_bos_token":false}`)), not, exact},
		"one at the end, and there is none":   {with(tiny, config(`{"add_eos_token":true}`)), not, exact},
		"added tokens that are there":         {with(tiny, config(`{"added_tokens_decoder":{"0":{"content":"<|bos|>"}}}`)), exact, exact},
		"added tokens that are not":           {with(tiny, config(`{"added_tokens_decoder":{"9999":{"content":"<|new|>"}}}`)), not, not},
	} {
		m, err := folder(t, c.files).Load(Options{})
		if err != nil {
			t.Fatal(err)
		}
		m.SetStanding(encode.Proven)
		for body, want := range map[string]tokenizer.Status{`{"prompt":"x"}`: c.with, `{"prompt":"x","add_special_tokens":false}`: c.bare} {
			r, err := m.Tokenize(context.Background(), tokenizer.Text{Shape: tokenizer.Completion, Body: []byte(body)})
			if err != nil || r.Status != want {
				t.Errorf("%s, %s: %v, %v", name, body, r.Status, err)
			}
		}
	}
}

func TestPlaceIsNoPipe(t *testing.T) {
	p := folder(t, tinyFiles(t))
	at := filepath.Join(p.Dir, "tokenizer.json")
	if err := errors.Join(os.Remove(at), os.Mkdir(at, 0o755)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Load(Options{}); err == nil || errors.Is(err, native.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

// BenchmarkLoad prints the time, the bytes that are allocated on the way and those
// that stay, of three vocabularies.
func BenchmarkLoad(b *testing.B) {
	for _, name := range []string{"qwen3.tokenizer.json", "deepseek_v4.tokenizer.json", "tekken_240911.json"} {
		file := "tokenizer.json"
		if strings.HasPrefix(name, "tekken") {
			file = "tekken.json"
		}
		p := folder(b, map[string][]byte{file: vocab(b, name)})
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var kept float64
			for b.Loop() {
				before := heap()
				m, err := p.Load(Options{})
				if err != nil {
					b.Fatal(err)
				}
				kept = heap() - before
				m.Info()
			}
			b.ReportMetric(kept/1e6, "MB-kept")
		})
	}
}

// TestPieces: what ids stand for is kept for who shows it, and for nobody else.
func TestPieces(t *testing.T) {
	for _, kept := range []bool{false, true} {
		m, err := folder(t, tinyFiles(t)).Load(Options{Pieces: kept})
		if err != nil {
			t.Fatal(err)
		}
		if piece, ok := m.Piece(37); ok != kept || kept && string(piece) != "B" {
			t.Errorf("asked for %v: %q %v", kept, piece, ok)
		}
	}
}
