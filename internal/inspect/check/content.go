package check

import (
	"fmt"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// content is what a run of batches held, and what the index made of it.
type content struct {
	ix      *index.Index
	batches int
	first   uint64 // number of the first batch

	undecodable int
	firstBad    string
	skipped     map[string]int // events, by reason
	tags        map[string]int // those of unknown kinds, by their tag
	odd         string         // what the first store was whose tokens do not fill its blocks

	events, stored, removed, cleared int
	unswept                          int // blocks stored since the index was swept

	sizes    map[int]int    // stores of whole prompts on the GPU, by tokens per block
	forms    map[string]int // events on the GPU, by the form of their hashes
	layouts  map[string]int
	ranks    map[int]int    // batches, by the rank they state
	media    map[string]int // events on media of no known kind
	bare     int            // stores on the GPU without token ids
	tokens   int            // stores with token ids
	numbered int            // stores of adapters without a name
	full     int            // stores of groups that hold whole prompts
}

// maxBlocks is a larger pool than most engines have; beyond it chains are forgotten,
// which no verdict depends on. The index looks at its size when it is swept.
const (
	maxBlocks  = 1 << 18
	sweepEvery = 1 << 16 // blocks
)

// member is the stream's number in an index of its own.
const member = pod.Member(0)

func newContent(spec pod.Spec) content {
	c := content{
		ix:      index.New(index.Options{MaxBlocks: maxBlocks}),
		skipped: map[string]int{}, tags: map[string]int{}, sizes: map[int]int{}, forms: map[string]int{},
		layouts: map[string]int{}, ranks: map[int]int{}, media: map[string]int{},
	}
	c.ix.Register(member, index.Owner{Model: spec.Model, Engine: spec.Engine})
	return c
}

// take decodes a payload into b and counts what it holds; false if it cannot be
// decoded.
func (c *content) take(d *event.Decoder, b *event.Batch, seq uint64, payload []byte, at int64) bool {
	if c.batches == 0 {
		c.first = seq
	}
	c.batches++
	if err := d.Decode(payload, b); err != nil {
		if c.undecodable++; c.firstBad == "" {
			c.firstBad = fmt.Sprintf("batch %d: %v", seq, err)
		}
		return false
	}
	if b.Rank >= 0 {
		count(c.ranks, b.Rank)
	}
	for _, k := range b.Skipped {
		c.skipped[k.Reason]++
		if k.Reason == event.SkipUnknownTag {
			count(c.tags, k.Tag)
		}
	}
	for i := range b.Events {
		e := &b.Events[i]
		if c.event(e); c.odd == "" && e.Kind == event.Stored && len(e.Tokens) > 0 && !e.Dense() {
			c.odd = fmt.Sprintf(", the first in batch %d (%s for %s of %d)",
				seq, out.Plural(len(e.Tokens), "token"), out.Plural(len(e.Hashes), "block"), e.BlockSize)
		}
	}
	c.ix.ApplyBatch(member, b.Events, at)
	if c.unswept >= sweepEvery {
		c.unswept = 0
		c.ix.Sweep(at)
	}
	return true
}

func (c *content) event(e *event.Event) {
	c.events++
	count(c.layouts, e.Layout)
	if _, _, known := event.Medium(e.Medium); !known {
		count(c.media, e.Medium)
	}
	switch e.Kind {
	case event.Removed:
		c.removed++
	case event.Cleared:
		c.cleared++
		return
	case event.Stored:
		c.store(e)
	}
	if e.Tier == event.TierGPU && e.HashForm != "" {
		c.forms[form(e.HashForm)]++
	}
}

func (c *content) store(e *event.Event) {
	c.stored++
	c.unswept += len(e.Hashes)
	if e.LoRA == "" && e.LoRAID > 0 {
		c.numbered++
	}
	if !e.FullAttention() {
		return
	}
	c.full++
	switch {
	case len(e.Tokens) > 0:
		c.tokens++
	case e.Tier == event.TierGPU && len(e.Hashes) > 0:
		c.bare++
	}
	if e.Tier == event.TierGPU && e.BlockSize > 0 {
		count(c.sizes, e.BlockSize)
	}
}

// form says which of the two forms of a hash it is: its width matters to nobody.
func form(word string) string {
	if word == "int" {
		return "numbers"
	}
	return "byte strings"
}

// size is the block size of most stores on the GPU, 0 without any. A prompt's last
// page may be shorter in SGLang.
func (c *content) size() int {
	best := 0
	for size, n := range c.sizes {
		if n > c.sizes[best] || n == c.sizes[best] && size > best {
			best = size
		}
	}
	return best
}
