package modelsource

import (
	"path"
	"strings"
)

// wanted are the files that bear on token ids, by pattern of path.Match, and the most
// that each may have in bytes. A pattern with "/" is one of a sub-folder.
var wanted = []struct {
	pattern string
	limit   int64
}{
	// The largest vocabulary seen has 34 MB (tokenizer.json of Gemma-3); package
	// native takes no more than 256 MB.
	{"tokenizer.json", 256 << 20},
	{"tekken.json", 256 << 20},
	{"tokenizer.model", 256 << 20},
	{"tokenizer.model.v*", 256 << 20},
	{"tiktoken.model", 256 << 20},
	{"*.tiktoken", 256 << 20},
	// Package chat takes no more than 16 MB of one of these.
	{"tokenizer_config.json", 16 << 20},
	{"special_tokens_map.json", 16 << 20},
	{"chat_template.json", 16 << 20},
	{"chat_template.jinja", 16 << 20},
	{"additional_chat_templates/*.jinja", 16 << 20},
	{"config.json", 16 << 20},
	{"generation_config.json", 16 << 20},
}

// maxFiles bounds how many of a model's files are looked at.
const maxFiles = 64

// limitOf is the most that a wanted file may have, 0 when the file is not wanted.
func limitOf(name string) int64 {
	for _, w := range wanted {
		if ok, _ := path.Match(w.pattern, name); ok {
			return w.limit
		}
	}
	return 0
}

// isVocabulary tells the files that ids come from.
func isVocabulary(name string) bool {
	return name == "tokenizer.json" || name == "tekken.json" || isTiktoken(name) || isSentencePiece(name)
}

func isTiktoken(name string) bool {
	return name == "tiktoken.model" || strings.HasSuffix(name, ".tiktoken") && !strings.Contains(name, "/")
}

// isMistral tells the files by which an engine takes mistral-common for a model.
func isMistral(name string) bool {
	return name == "tekken.json" || strings.HasPrefix(name, "tokenizer.model.v")
}

func isSentencePiece(name string) bool {
	return name == "tokenizer.model" || strings.HasPrefix(name, "tokenizer.model.v")
}
