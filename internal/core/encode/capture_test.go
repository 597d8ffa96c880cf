package encode_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/encode"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
	"github.com/eppctl/eppctl/internal/testdata"
)

// captured is a line of requests.jsonl (testdata/engines/README.md).
type captured struct {
	Path string          `json:"path"`
	Body json.RawMessage `json:"body"`
	IDs  json.RawMessage `json:"token_ids"`
	// Render is the render endpoint's reply to a request with images.
	Render struct {
		Features struct {
			Places struct{ Image []struct{ Offset int } } `json:"mm_placeholders"`
		}
	}
}

// shape is what a provider is asked for, 0 when the body has no text.
func (c *captured) shape() tokenizer.Shape {
	var body struct {
		Prompt   json.RawMessage `json:"prompt"`
		Text     json.RawMessage `json:"text"`
		Messages json.RawMessage `json:"messages"`
	}
	if json.Unmarshal(c.Body, &body) != nil {
		return 0
	}
	prompt := strings.TrimLeft(string(body.Prompt)+string(body.Text), "[ ")
	switch {
	case strings.HasSuffix(c.Path, "/chat/completions") && body.Messages != nil:
		return tokenizer.Chat
	case strings.HasPrefix(prompt, `"`):
		return tokenizer.Completion
	}
	return 0
}

// models builds the encoders of the captures' models.
type models map[string]*encode.Model

// of returns the encoder for a capture's folder.
func (m models) of(t *testing.T, folder string) *encode.Model {
	t.Helper()
	name, engine := "tiny-llama", chat.VLLM
	if filepath.Base(folder) == "qwen3" {
		name = "qwen3"
	}
	if strings.Contains(folder, "sglang") {
		engine = chat.SGLang
	}
	key := name + string('0'+rune(engine))
	if m[key] != nil {
		return m[key]
	}
	var o encode.Options
	var files chat.Files
	var err error
	if name == "qwen3" {
		vocab := filepath.Join(testdata.Dirs(t, "tokenizer")[0], "vocab", "qwen3.tokenizer.json.gz")
		o.Tokenizer, err = native.LoadHuggingFace(testdata.Gunzip(t, vocab))
		files.ChatTemplate = []byte(testdata.Template(t, "npm-qwen3"))
	} else {
		dir := filepath.Join(testdata.Dirs(t, "engines")[0], "models", name)
		o.Tokenizer, err = native.LoadHuggingFace(read(t, filepath.Join(dir, "tokenizer.json")))
		files.TokenizerConfig = read(t, filepath.Join(dir, "tokenizer_config.json"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if o.Chat, err = chat.New(files, chat.Options{Engine: engine}); err != nil {
		t.Fatal(err)
	}
	o.Engine = engine
	m[key] = encode.New(o)
	return m[key]
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCaptures: TK-39. Every captured request whose body is a text or a chat gives
// the ids that the engine used.
func TestCaptures(t *testing.T) {
	seen := map[string][2]int{} // completions, chats
	several := 0                // requests with more than one prompt
	all := models{}
	for _, dir := range testdata.Dirs(t, "engines") {
		paths, err := filepath.Glob(filepath.Join(dir, "*", "*", "requests.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			folder := filepath.Dir(path)
			name := filepath.Base(filepath.Dir(folder)) + "/" + filepath.Base(folder)
			m := all.of(t, folder)
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(f)
			lines.Buffer(nil, 64<<20)
			for n := 1; lines.Scan(); n++ {
				var c captured
				if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
					t.Fatalf("%s:%d: %v", path, n, err)
				}
				shape, want := c.shape(), testdata.Prompts(t, c.IDs)
				if shape == 0 || want == nil {
					continue
				}
				got, err := m.Tokenize(context.Background(), tokenizer.Text{Shape: shape, Body: c.Body})
				cut := -1
				if images := c.Render.Features.Places.Image; len(images) > 0 { // known up to there
					cut = len(got.IDs)
					want = [][]uint32{want[0][:min(cut, images[0].Offset)]}
				}
				if lists := append([][]uint32{got.IDs}, got.Further...); err != nil || len(got.IDs) == 0 || !slices.EqualFunc(lists, want, slices.Equal) || got.Cut != cut {
					t.Errorf("%s line %d: got %v, %v, the engine used %v", name, n, got, err, want)
				}
				several += min(len(want)-1, 1)
				count := seen[name]
				count[shape-tokenizer.Completion]++
				seen[name] = count
			}
			if err := lines.Err(); err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
	}
	if several < 2 {
		t.Errorf("%d requests with several prompts compared", several)
	}
	t.Logf("requests with the engine's ids (completions, chats): %v", seen)
	for name, least := range map[string][2]int{
		"vllm-0.32.0/llama": {24, 14}, "vllm-0.32.0/qwen3": {4, 14}, "vllm-0.32.0/gemma3": {5, 5}, "vllm-0.32.0/dp2": {4, 5},
		"vllm-0.32.0/dialin": {19, 0}, "vllm-0.32.0/reannounce": {0, 2}, "vllm-0.23.0/llama": {10, 14}, "sglang-0.5.23/llama": {7, 4},
	} {
		if have := seen[name]; have[0] < least[0] || have[1] < least[1] {
			t.Errorf("%s: %v requests compared, want at least %v", name, have, least)
		}
	}
}
