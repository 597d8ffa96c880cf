package native_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
	"github.com/eppctl/eppctl/internal/testdata"
)

// unpack reads a compressed file of the test data.
func unpack(t testing.TB, name string) []byte {
	t.Helper()
	return testdata.Gunzip(t, filepath.Join(testdata.Dirs(t, "tokenizer")[0], name))
}

// qwen36Added are the special tokens of Qwen3.5 and 3.6, which the rank file lacks.
var qwen36Added = numbered(248044, `<|endoftext|> <|im_start|> <|im_end|> <|object_ref_start|> <|object_ref_end|> <|box_start|>
<|box_end|> <|quad_start|> <|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|> <|image_pad|> <|video_pad|> <tool_call>
</tool_call> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|> <|repo_name|> <|file_sep|> <tool_response> </tool_response>
<think> </think> <|audio_start|> <|audio_end|> <tts_pad> <tts_text_bos> <tts_text_eod> <tts_text_bos_single> <|audio_pad|>`)

func numbered(from uint32, names string) (out []native.Added) {
	for i, name := range strings.Fields(names) {
		out = append(out, native.Added{ID: from + uint32(i), Content: name, Special: true})
	}
	return out
}

var cl100kAdded = append(numbered(100257, "<|endoftext|> <|fim_prefix|> <|fim_middle|> <|fim_suffix|>"),
	native.Added{ID: 100276, Content: "<|endofprompt|>"})

// vocabularies are those of the test data: file and how to load it.
var vocabularies = map[string]struct {
	file string
	load func([]byte) (*native.Tokenizer, error)
}{
	"qwen3":       {"vocab/qwen3.tokenizer.json.gz", native.LoadHuggingFace},
	"deepseek_v4": {"vocab/deepseek_v4.tokenizer.json.gz", native.LoadHuggingFace},
	"qwen3_6": {"vocab/qwen3_6.tiktoken.gz", func(b []byte) (*native.Tokenizer, error) {
		return native.LoadTiktoken(b, native.RankOptions{Pattern: "qwen3.5", NFC: true, Added: qwen36Added})
	}},
	"cl100k": {"vocab/cl100k_base.tiktoken.gz", func(b []byte) (*native.Tokenizer, error) {
		return native.LoadTiktoken(b, native.RankOptions{Pattern: "cl100k", Added: cl100kAdded})
	}},
	"tekken":     {"vocab/tekken_240911.json.gz", native.LoadTekken},
	"bert":       {"vocab/bert_uncased.tokenizer.json.gz", native.LoadHuggingFace},
	"mistral_v3": {"vocab/mistral_instruct_v3.model.gz", native.LoadSentencePiece},
}

// specialsOf are the texts of a vocabulary's added tokens.
func specialsOf(t testing.TB, name string) (out []string) {
	t.Helper()
	switch name {
	case "cl100k", "qwen3_6":
		list := cl100kAdded
		if name == "qwen3_6" {
			list = qwen36Added
		}
		for _, a := range list {
			out = append(out, a.Content)
		}
		return out
	case "tekken", "mistral_v3": // never matched in text: they are words like any other
		return []string{"<s>", "</s>", "<unk>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[TOOL_CALLS]", "<0x41>"}
	}
	var file struct {
		Added []struct{ Content string } `json:"added_tokens"`
	}
	if err := json.Unmarshal(vocabularyFile(t, name), &file); err != nil {
		t.Fatal(err)
	}
	for _, a := range file.Added {
		out = append(out, a.Content)
	}
	if len(out) == 0 {
		t.Fatal(name, "has no added tokens")
	}
	return out
}

// vocabularyFile reads a vocabulary's file.
func vocabularyFile(t testing.TB, name string) []byte {
	t.Helper()
	if v, ok := vocabularies[name]; ok {
		return unpack(t, v.file)
	}
	b, err := os.ReadFile(filepath.Join(os.Getenv("TOKENIZER_MODELS"), name, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var loaded sync.Map

// load loads a vocabulary once for all tests.
func load(t testing.TB, name string) *native.Tokenizer {
	t.Helper()
	if v, ok := loaded.Load(name); ok {
		return v.(*native.Tokenizer)
	}
	read := native.LoadHuggingFace
	if v, ok := vocabularies[name]; ok {
		read = v.load
	}
	tok, err := read(vocabularyFile(t, name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	loaded.Store(name, tok)
	return tok
}

// names lists the vocabularies to test: those of the test data, and those of the
// folder TOKENIZER_MODELS, which make test-tokenizer-fetched fills.
func names() []string {
	out := []string{"qwen3", "deepseek_v4", "qwen3_6", "cl100k", "tekken", "mistral_v3"}
	if os.Getenv("TOKENIZER_MODELS") != "" {
		out = append(out, "llama3", "gptoss", "gemma3", "llama2", "deepseek_v3")
	}
	return out
}

// allNames are those and the one of BERT, which no conversation is written in: its texts
// have no cuts, and nothing in it takes long.
func allNames() []string { return append(names(), "bert") }

// difference describes where two lists of ids part.
func difference(got, want []uint32) string {
	for i := 0; i < min(len(got), len(want)); i++ {
		if got[i] != want[i] {
			return fmt.Sprintf("position %d of %d: %d, want %d", i, len(want), got[i], want[i])
		}
	}
	return fmt.Sprintf("%d ids, want %d", len(got), len(want))
}
