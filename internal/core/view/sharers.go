package view

import (
	"sync"

	"github.com/eppctl/eppctl/internal/core/block"
)

// sharers counts the requests in flight by the chunks of their prompts, all pods
// together: how many there are of which one begins as another does. Like held it is
// apart from the accounts, and it is cut into shards so that a long prompt, which is
// hundreds of entries, keeps no decision waiting.
type sharers [64]struct {
	mu sync.Mutex
	of map[uint64]int // by chunk digest
}

// add enters a prompt's chunks, and with n = -1 takes them out.
func (s *sharers) add(chunks []uint64, n int) {
	for _, c := range chunks {
		x := &s[c%uint64(len(s))]
		x.mu.Lock()
		if x.of == nil {
			x.of = make(map[uint64]int)
		}
		if x.of[c] += n; x.of[c] == 0 {
			delete(x.of, c)
		}
		x.mu.Unlock()
	}
}

func (s *sharers) count(chunk uint64) int {
	x := &s[chunk%uint64(len(s))]
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.of[chunk]
}

// Sharers is how many requests in flight begin with the first so many tokens of a
// prompt, to the grain of a chunk; 0 where they fill none. It allocates nothing.
func (l *Ledger) Sharers(p *block.Prompt, tokens int) int {
	n := min(tokens, len(p.Known())) / chunkTokens
	if n == 0 {
		return 0
	}
	at := chainOf(l.hasher, p)
	for i := range n {
		at.step(i)
	}
	return l.sharers.count(at.digest)
}
