// Package tokenizer turns text into the token ids an engine will compute. It
// knows no pod and opens nothing: it takes bytes and gives ids. Providers that
// need a socket live in feed.
package tokenizer

import (
	"context"
	"errors"
)

// Shape is the kind of request a body is.
type Shape uint8

// The shapes a provider can be asked for.
const (
	Completion Shape = iota + 1
	Chat
	Messages  // Anthropic's, which engines turn into a chat
	Responses // OpenAI's, likewise
	Embedding // a text to be embedded
	EmbeddingChat
)

// IsChat reports whether a template makes the prompt.
func (s Shape) IsChat() bool { return s != Completion && s != Embedding }

// Text is what is to be tokenized.
type Text struct {
	Model string // base model, never the adapter's alias
	Shape Shape
	Body  []byte // the client's JSON, verbatim
	// Media says that the prompt has parts that are no text. Who cannot tell
	// where among the ids the first of them stands refuses with ErrMedia.
	Media bool
}

// ErrMedia is the refusal of a provider that gives ids of text only.
var ErrMedia = errors.New("request has parts that are no text")

// Status says what a provider may claim about its ids.
type Status string

// The claims.
const (
	Exact      Status = "exact"      // the engine's own ids
	Unverified Status = "unverified" // not proven equal for this request
)

// MaxPrompts is how many prompts of one request are tokenized and matched. No bound of
// vLLM or SGLang is known; OpenAI takes 2048 inputs to embed.
const MaxPrompts = 2048

// Result is a tokenized request.
type Result struct {
	// IDs is the prompt; of several the first, and Further are the others, in order: the
	// engine makes a request of its own of each. A request with media has one.
	IDs     []uint32
	Further [][]uint32
	Status  Status
	// Items are the images, sounds and videos that the provider names, in the prompt's
	// order.
	Items []Item
	// Cut is the first position whose content neither ids nor items determine (the
	// placeholder of an image without a name); negative = none.
	Cut int
	// Doubtful says that the ids are not sure for what this very request holds, so
	// that they prove nothing of the provider.
	Doubtful bool
}

// Item is an image, a sound or a video of a prompt.
type Item struct {
	Name           string // the engine's: a hash of the content, or what the client calls it
	Offset, Length int    // where it stands, in tokens; Length > 0
}

// End is the first token behind the item.
func (it *Item) End() int { return it.Offset + it.Length }

// Provider is one way to get ids. Tokenize may be called from any goroutine; it
// honours the context's deadline and returns an error that names what it could
// not do, never a guess.
type Provider interface {
	Name() string // "native", "render", "tokenize"
	Tokenize(ctx context.Context, t Text) (Result, error)
}
