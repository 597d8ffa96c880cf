package encode_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/encode"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
	"github.com/eppctl/eppctl/internal/testdata"
)

// harmonyModel encodes Harmony chats with a vocabulary.
func harmonyModel(t *testing.T, tok *native.Tokenizer, release chat.Release) *encode.Model {
	t.Helper()
	r, err := chat.New(chat.Files{}, chat.Options{Model: chat.Model{Type: "gpt_oss"}, Release: func() chat.Release { return release }})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC) // the day of testdata/encoders/harmony.json.gz
	return encode.New(encode.Options{Tokenizer: tok, Chat: r, Cache: 1 << 20, Now: func() time.Time { return now }})
}

// TestApart: what the engine encodes apart is: texts beside each other, and what is
// written like a special token, which is none.
func TestApart(t *testing.T) {
	tok, err := native.LoadHuggingFace(testdata.Gunzip(t, filepath.Join(testdata.Dirs(t, "tokenizer")[0], "vocab", "qwen3.tokenizer.json.gz")))
	if err != nil {
		t.Fatal(err)
	}
	m := harmonyModel(t, tok, chat.Release{Minor: 32})
	encoded := func(text string) []uint32 {
		ids, err := tok.Encode(text, false)
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	for name, c := range map[string]struct {
		content string
		want    []string
	}{
		"one text":        {`"hello"`, []string{"hello"}},
		"parts of a word": {`[{"type":"text","text":"hel"},{"type":"text","text":""},{"type":"text","text":"lo  "},{"type":"text","text":" x"}]`, []string{"hel", "lo  ", " x"}},
		"like a token":    {`"a <|endoftext|> b"`, []string{"a <|", "endoftext|> b"}},
		"nearly a token":  {`"a <|end of text|> <|_x|> <||> b"`, []string{"a <|end of text|> <|_x|> <||> b"}},
	} {
		got, err := m.Encode(t.Context(), tokenizer.Text{Shape: tokenizer.Chat, Body: []byte(`{"messages":[{"role":"user","content":` + c.content + `}],"add_special_tokens":true}`)})
		if err != nil {
			t.Fatal(err)
		}
		// What stands around the texts is text as well in this vocabulary.
		var want []uint32
		for i, part := range c.want {
			if i == 0 {
				part = "user<|message|>" + part
			}
			if i == len(c.want)-1 {
				part += "<|end|><|start|>assistant"
			}
			want = append(want, encoded(part)...)
		}
		if n := len(got.IDs) - len(want); n < 0 || !slices.Equal(got.IDs[n:], want) {
			t.Errorf("%s: %v, want %v at the end", name, got.IDs, want)
		}
		if special := encoded("<|endoftext|>"); slices.Contains(got.IDs, special[0]) || len(special) != 1 {
			t.Errorf("%s: a special token is in %v", name, got.IDs)
		}
	}
	long := `[{"type":"text","text":"a"},{"type":"text","text":"` + strings.Repeat("x ", encode.MaxPrompt/2) + `"}]`
	if _, err := m.Encode(t.Context(), tokenizer.Text{Shape: tokenizer.Chat, Body: []byte(`{"messages":[{"role":"user","content":` + long + `}]}`)}); !errors.Is(err, native.ErrLong) {
		t.Errorf("parts of a prompt beyond the limit: %v", err)
	}
}

// TestHarmonyIDs: the ids of each stored request are those of vLLM 0.32.0 and 0.23.0, by
// the part of gpt-oss's tokenizer that lies beside them, and by the whole one where make
// test-tokenizer-fetched has fetched it.
func TestHarmonyIDs(t *testing.T) {
	type answer struct{ IDs, Error string }
	var cases []struct {
		Body     json.RawMessage
		New, Old *answer
	}
	dir := testdata.Dirs(t, "encoders")[0]
	testdata.GzipJSON(t, filepath.Join(dir, "harmony.json.gz"), &cases)
	files := [][]byte{testdata.Gunzip(t, filepath.Join(dir, "harmony_tokenizer.json.gz"))}
	if fetched := os.Getenv("TOKENIZER_MODELS"); fetched != "" {
		files = append(files, read(t, filepath.Join(fetched, "gptoss", "tokenizer.json")))
	}
	for _, file := range files {
		tok, err := native.LoadHuggingFace(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, minor := range []int{32, 23} {
			m, same := harmonyModel(t, tok, chat.Release{Minor: minor}), 0
			for i, c := range cases {
				want := c.New
				if minor == 23 && c.Old != nil {
					want = c.Old
				}
				e, err := m.Encode(t.Context(), tokenizer.Text{Shape: tokenizer.Chat, Body: c.Body})
				switch {
				case err != nil || want.Error != "": // package chat's tests look at these
				case digest(e.IDs) != want.IDs:
					t.Errorf("0.%d, request %d: other ids: %s", minor, i, c.Body)
				default:
					same++
				}
			}
			if t.Logf("%d entries, 0.%d: the ids of %d prompts are the same", tok.Info().Tokens, minor, same); same < 180 {
				t.Error("too few")
			}
		}
	}
}

// digest is what testdata/encoders/harmony.py keeps of ids.
func digest(ids []uint32) string {
	var b []byte
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint32(b, id)
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:8])
}
