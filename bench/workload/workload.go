// Package workload makes the traffic the index is measured with: conversations
// under one common root, who holds how much of each, and the store events an
// engine would have sent. Everything follows from one seed, so that two programs
// on two days, in two languages, measure the same thing.
package workload

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"github.com/zeebo/xxh3"
)

// The shape of the workload. Every conversation begins with the same root and
// the prefix of its app, which is the worst case for an index sharded by root.
const (
	Size = 16 // tokens per block

	apps       = 32
	rootBlocks = 16
	appBlocks  = 112
	// Shared is the number of leading blocks a conversation has in common with
	// the others of its app.
	Shared = rootBlocks + appBlocks

	Short, Long              = 512, 2048 // blocks of a conversation
	shortPer, longPer        = 40, 8     // conversations per app
	vocabulary               = 128_000
	firstAlias        uint64 = 99
	// PerEvent is the number of blocks in one store event.
	PerEvent = 32
	// Foreign, put into a token by exclusive or, makes one that no conversation has there.
	Foreign = 0x10000
)

// Workload is the traffic of a fleet.
type Workload struct {
	Ranks         int
	Conversations []Conversation
	Order         []int // in which conversations are stored
}

// Conversation is one prompt and who holds how much of it.
type Conversation struct {
	Tokens []uint32
	// Aliases are the engine's own hashes of the blocks. A chain of hashes, so
	// equal prefixes, and only those, have equal aliases.
	Aliases []uint64
	Holders []Holder
}

// Holder is one rank that holds the first GPU blocks of a conversation in GPU
// memory and the first Host blocks in host memory.
type Holder struct{ Rank, GPU, Host int }

// Blocks is the length of the conversation.
func (c *Conversation) Blocks() int { return len(c.Aliases) }

// New draws the workload of a fleet of so many ranks. The order of the draws is
// part of the definition.
func New(ranks int) *Workload {
	g := generator{rand.New(rand.NewPCG(42, 7))}
	w := &Workload{Ranks: ranks}
	root := g.tokens(nil, rootBlocks)
	for range apps {
		prefix := g.tokens(root, appBlocks)
		for i := range shortPer + longPer {
			blocks := Short
			if i >= shortPer {
				blocks = Long
			}
			c := Conversation{Tokens: g.tokens(prefix, blocks-Shared)}
			c.Aliases = aliases(c.Tokens)
			c.Holders = g.holders(ranks, blocks)
			w.Conversations = append(w.Conversations, c)
		}
	}
	w.Order = g.Perm(len(w.Conversations))
	return w
}

// Apart is the workload with a root of its own for each app: the first token of
// its prompts and all aliases differ from those of the others.
func (w *Workload) Apart() *Workload {
	a := &Workload{Ranks: w.Ranks, Order: w.Order}
	for i, c := range w.Conversations {
		app := i / (shortPer + longPer)
		c.Tokens, c.Aliases = slices.Clone(c.Tokens), slices.Clone(c.Aliases)
		c.Tokens[0] = vocabulary + uint32(app)
		for k := range c.Aliases {
			c.Aliases[k] ^= uint64(app) << 56
		}
		a.Conversations = append(a.Conversations, c)
	}
	return a
}

type generator struct{ *rand.Rand }

// tokens returns the prefix and so many random blocks behind it.
func (g generator) tokens(prefix []uint32, blocks int) []uint32 {
	t := make([]uint32, len(prefix), len(prefix)+blocks*Size)
	copy(t, prefix)
	for range blocks * Size {
		t = append(t, g.Uint32N(vocabulary))
	}
	return t
}

// holders draws who holds a conversation: seven in ten are held by one rank,
// and only the first holder is sure to hold all of it.
func (g generator) holders(ranks, blocks int) []Holder {
	n := [10]int{1, 1, 1, 1, 1, 1, 1, 2, 2, 4}[g.IntN(10)]
	list := make([]Holder, n)
	for i, rank := range g.Perm(ranks)[:n] {
		h := Holder{Rank: rank, GPU: blocks}
		if i > 0 {
			h.GPU = blocks/4 + g.IntN(blocks*3/4)
		}
		switch g.IntN(8) {
		case 0, 1:
			h.Host = h.GPU / 2
		case 2:
			h.Host, h.GPU = h.GPU, h.GPU/2
		}
		list[i] = h
	}
	return list
}

func aliases(tokens []uint32) []uint64 {
	list := make([]uint64, len(tokens)/Size)
	var b [4 * Size]byte
	alias := firstAlias
	for i := range list {
		for j, t := range tokens[i*Size : (i+1)*Size] {
			binary.LittleEndian.PutUint32(b[4*j:], t)
		}
		alias = xxh3.HashSeed(b[:], alias)
		list[i] = alias
	}
	return list
}

// Stretch is the blocks [From, To) of a conversation on one rank and tier.
type Stretch struct {
	*Conversation
	Rank     int
	Host     bool
	From, To int
}

// Names are the aliases of the stretch.
func (s *Stretch) Names() []uint64 { return s.Aliases[s.From:s.To] }

// Content is its tokens.
func (s *Stretch) Content() []uint32 { return s.Tokens[s.From*Size : s.To*Size] }

// Parent is the alias of the block before it; false at the root.
func (s *Stretch) Parent() (uint64, bool) {
	if s.From == 0 {
		return 0, false
	}
	return s.Aliases[s.From-1], true
}

// Cut calls yield with the stretch in pieces of at most per blocks.
func (s Stretch) Cut(per int, yield func(*Stretch)) {
	for to := s.To; s.From < to; s.From = s.To {
		s.To = min(s.From+per, to)
		yield(&s)
	}
}

// Stores calls yield with every store event of the workload in order: per
// conversation and holder the GPU's blocks, then, if asked for, the host's.
func (w *Workload) Stores(host bool, per int, yield func(*Stretch)) {
	for _, i := range w.Order {
		c := &w.Conversations[i]
		for _, h := range c.Holders {
			Stretch{Conversation: c, Rank: h.Rank, To: h.GPU}.Cut(per, yield)
			if host {
				Stretch{Conversation: c, Rank: h.Rank, Host: true, To: h.Host}.Cut(per, yield)
			}
		}
	}
}

// Distinct is the number of different blocks in all stores.
func (w *Workload) Distinct(host bool) int {
	seen := map[uint64]struct{}{}
	w.Stores(host, PerEvent, func(s *Stretch) {
		for _, a := range s.Names() {
			seen[a] = struct{}{}
		}
	})
	return len(seen)
}
