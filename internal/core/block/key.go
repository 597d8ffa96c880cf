// Package block turns token ids into block keys. Events and requests use the
// same function, so the two sides cannot drift apart.
package block

// Key identifies the content of one block: its token ids and whatever else the
// engine mixes into the block's identity (an image, a salt). Keys are unchained:
// where a block stands in a prompt is the index's business. A Key is only
// meaningful inside the process, or snapshot, whose Hasher made it.
type Key uint64

// Extra is the digest of what a block holds besides its tokens: multimodal
// items, prompt embeddings. Zero means nothing.
type Extra uint64

// Space is the digest of a namespace. Prompts of two spaces share no block.
type Space uint64

// Namespace is what keeps equal token ids apart.
type Namespace struct {
	Model string // base model
	LoRA  string // adapter name; "" = the base model
	Salt  string // cache_salt of the request; "" = none
	Size  int    // tokens per block
}

// Prompt is a tokenized prompt as the index looks it up. Block size is not part
// of it: a fleet can hold several, and each is looked up at its own.
type Prompt struct {
	Model, LoRA, Salt string
	Tokens            []uint32
	// Cut is the token position from which the content is not known (the first
	// image, say): no block at or behind it matches. Negative = none.
	Cut int
	// Items are the parts before Cut that are no text, by Offset; no two overlap.
	Items []Item
}
