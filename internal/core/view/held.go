package view

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/eppctl/eppctl/internal/core/block"
)

// chunkTokens is the grain at which prompts in flight are compared: the block
// size of the traces that the pool term was measured on. A finer one would be
// closer by less than a chunk per request and cost a map entry more per step.
const chunkTokens = 512

// held counts the distinct prompt tokens of the requests in flight on one pod:
// a prefix that ten of them share occupies the engine's KV pool once. Adding up
// what each request added at its placement would miss a cached prefix that
// nobody held, and would forget a shared one as soon as its first user ends.
//
// It has a lock of its own, because a long prompt is hundreds of map entries and
// no decision should wait for them; tokens is read without it.
type held struct {
	tokens atomic.Int64

	mu    sync.Mutex
	users map[uint64]int // by chunk digest
}

// add enters a prompt: its chunks, and the tokens that fill none.
func (h *held) add(chunks []uint64, rest int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users == nil && len(chunks) > 0 {
		h.users = make(map[uint64]int)
	}
	for _, c := range chunks {
		h.users[c]++
		if h.users[c] == 1 {
			rest += chunkTokens
		}
	}
	h.tokens.Add(rest)
}

// remove takes out what add entered.
func (h *held) remove(chunks []uint64, rest int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range chunks {
		h.users[c]--
		if h.users[c] == 0 {
			delete(h.users, c)
			rest += chunkTokens
		}
	}
	h.tokens.Add(-rest)
}

// chunks digests a prompt, one entry per full chunk. Each digest covers all that
// stands before it, so that two are equal exactly where the prompts agree from
// the start, in one namespace.
func chunks(h *block.Hasher, p *block.Prompt) []uint64 {
	out := make([]uint64, len(p.Known())/chunkTokens)
	at := chainOf(h, p)
	for i := range out {
		at.step(i)
		out[i] = at.digest
	}
	return out
}

// chain walks a prompt chunk by chunk.
type chain struct {
	hasher *block.Hasher
	prompt *block.Prompt
	digest uint64 // of all up to the last step
}

func chainOf(h *block.Hasher, p *block.Prompt) chain {
	space := h.Space(block.Namespace{Model: p.Model, LoRA: p.LoRA, Salt: p.Salt, Size: chunkTokens})
	return chain{h, p, uint64(space)}
}

// step takes in the i-th chunk.
func (c *chain) step(i int) {
	from := i * chunkTokens
	key := c.hasher.WithExtra(c.hasher.Key(c.prompt.Tokens[from:from+chunkTokens]), c.prompt.Extra(from, chunkTokens))
	hi, lo := bits.Mul64(c.digest^0x9e3779b97f4a7c15, uint64(key)^0xbf58476d1ce4e5b9)
	c.digest = hi ^ lo
}
