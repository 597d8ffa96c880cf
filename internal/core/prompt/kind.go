package prompt

import "strings"

// Kind is the API a path belongs to.
type Kind uint8

// The kinds of requests whose bodies are read.
const (
	Unknown Kind = iota
	Completions
	Chat
	Responses
	Messages // Anthropic
	Embeddings
	Generate // SGLang's /generate and vLLM's /inference/v1/generate
	Pooling  // what a model says about a text instead of going on with it
	Score
	Rerank
	Classify
)

var kinds = [...]struct{ name, suffix string }{
	Unknown:     {"unknown", ""},
	Completions: {"completions", "/v1/completions"},
	Chat:        {"chat", "/v1/chat/completions"},
	Responses:   {"responses", "/v1/responses"},
	Messages:    {"messages", "/v1/messages"},
	Embeddings:  {"embeddings", "/v1/embeddings"},
	Generate:    {"generate", "/generate"},
	Pooling:     {"pooling", "/pooling"},
	Score:       {"score", "/score"},
	Rerank:      {"rerank", "/rerank"}, // also behind /v1 and /v2
	Classify:    {"classify", "/classify"},
}

func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k].name
	}
	return kinds[Unknown].name
}

// KindOf tells the API by the end of the path, so that a gateway's prefix does
// no harm. The query does not count.
func KindOf(path string) Kind {
	path, _, _ = strings.Cut(path, "?")
	for k, x := range kinds[1:] {
		if strings.HasSuffix(path, x.suffix) {
			return Kind(k + 1)
		}
	}
	return Unknown
}
