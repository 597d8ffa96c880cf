package encode_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/encode"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
	"github.com/eppctl/eppctl/internal/testdata"
)

// preparedAt is a moment of the day on which the chats were prepared.
var preparedAt = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// TestPreparedChats: TK-36. A chat of each form under each public template has as many
// ids as a real vLLM made of it; that the text is the same is package chat's test.
func TestPreparedChats(t *testing.T) {
	seen := 0
	for i, dir := range testdata.Dirs(t, "engines") {
		path := filepath.Join(dir, "chat-prep", "chat-prep.json.gz")
		if _, err := os.Stat(path); err != nil && i > 0 {
			continue // an extra folder need not have one
		}
		var c struct {
			Requests  [][2]json.RawMessage
			Templates map[string]struct {
				Renders []struct {
					Case           string
					Status, Tokens int
				}
			}
		}
		testdata.GzipJSON(t, path, &c)
		model := func(name string) []byte {
			return read(t, testdata.Beside(t, dir, "engines", "models/tiny-llama/"+name))
		}
		tok, err := native.LoadHuggingFace(model("tokenizer.json"))
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range c.Templates {
			r, err := chat.New(chat.Files{TokenizerConfig: model("tokenizer_config.json")}, chat.Options{Template: testdata.Template(t, name)})
			if err != nil {
				t.Fatal(err)
			}
			m := encode.New(encode.Options{Tokenizer: tok, Chat: r, Now: func() time.Time { return preparedAt }})
			for k, w := range want.Renders {
				if w.Status != 200 {
					continue
				}
				seen++
				got, err := m.Encode(context.Background(), tokenizer.Text{Shape: tokenizer.Chat, Body: c.Requests[k][1]})
				if err != nil || len(got.IDs) != w.Tokens || got.Cut >= 0 {
					t.Errorf("%s, %s: %d ids and %v, the engine made %d", name, w.Case, ids(got), err, w.Tokens)
				}
			}
		}
	}
	if t.Logf("%d chats", seen); seen < 500 {
		t.Errorf("%d chats compared", seen)
	}
}

func ids(e *encode.Encoding) int {
	if e == nil {
		return 0
	}
	return len(e.IDs)
}

// TestTokenizedStrings holds a model with a token in front against what a real vLLM's
// /tokenize made of each string, with special tokens and without.
func TestTokenizedStrings(t *testing.T) {
	seen := 0
	for _, dir := range testdata.Dirs(t, "engines") {
		paths, err := filepath.Glob(filepath.Join(dir, "*", "llama", "tokenize.jsonl.gz"))
		if err != nil {
			t.Fatal(err)
		}
		m := tiny(t, chat.Files{}, chat.VLLM, 0)
		for _, path := range paths {
			for line := range bytes.Lines(testdata.Gunzip(t, path)) {
				var w struct {
					Prompt string
					IDs    []uint32
					Bare   []uint32 `json:"ids_no_special"`
				}
				if err := json.Unmarshal(line, &w); err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				seen++
				for _, special := range []bool{true, false} {
					want := w.IDs
					if !special {
						want = w.Bare
					}
					body, err := json.Marshal(map[string]any{"prompt": w.Prompt, "add_special_tokens": special})
					if err != nil {
						t.Fatal(err)
					}
					if got := ask(t, m, tokenizer.Completion, string(body)); !slices.Equal(got.IDs, want) {
						t.Errorf("%+q, special %v: %v, the engine made %v", w.Prompt, special, got.IDs, want)
					}
				}
			}
		}
	}
	if t.Logf("%d strings", seen); seen < 455 {
		t.Errorf("%d strings compared", seen)
	}
}
