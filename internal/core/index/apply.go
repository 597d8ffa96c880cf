package index

import (
	"slices"
	"strconv"
	"strings"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// Verdict says what became of an event.
type Verdict uint8

// The verdicts. A store that is not Applied still takes its hashes from where
// they were: see disown.
const (
	Applied      Verdict = iota
	Parked               // its parent is not known yet
	OrphanLost           // as Parked, but there was no room or the time was up
	Evicted              // its parent was evicted to keep the memory cap
	OtherGroup           // a cache group that is not indexed
	OtherSize            // a block size that does not fit the member's
	OtherSpace           // states another adapter or salt than its parent's
	Sparse               // tokens and hashes do not align
	SharedMedium         // a medium that belongs to no member
	Full                 // the member has no room for more hashes
	Unregistered         // nobody announced the member
	NumVerdicts
)

var verdictNames = [NumVerdicts]string{"applied", "parked", "orphan-lost", "evicted", "other-group",
	"other-size", "other-space", "sparse", "shared-medium", "full", "unregistered"}

func (v Verdict) String() string {
	if v < NumVerdicts {
		return verdictNames[v]
	}
	return "unknown"
}

// fewKeys is up to how many blocks a store counts as one of decoding: a block of
// each hash at page 16, a few with speculation.
const fewKeys = 4

// orphaned is internal: store found no parent, Apply decides between Parked and
// OrphanLost.
const orphaned = NumVerdicts

// Outcome is what Apply did with one event.
type Outcome struct {
	Verdict  Verdict
	Unknown  int // hashes that are not known, of a removal or a store without tokens
	Attached int // parked stores for which this one was the parent
	// Inflated is set while the member holds more distinct blocks on the GPU
	// than its engine has: removals were lost.
	Inflated bool
}

// Apply takes one event of a member at time now (ns). Events of one member come
// in wire order from one goroutine; e is not kept.
func (ix *Index) Apply(id pod.Member, e *event.Event, now int64) Outcome {
	second := ix.tick(now)
	m := ix.member(id)
	if m == nil {
		return Outcome{Verdict: Unregistered}
	}
	m.mu.Lock()
	o := ix.apply(m, e, now, second)
	o.Inflated = m.book(&o)
	ix.refilled(m)
	m.mu.Unlock()
	return o
}

// book counts what became of an event, and reports whether the member holds more
// than its engine can.
func (m *member) book(o *Outcome) (inflated bool) {
	m.stats.Verdicts[o.Verdict]++
	if o.Unknown > 0 { // mostly not, and the count stands elsewhere
		m.stats.Unknown += uint64(o.Unknown)
	}
	return m.capacity > 0 && m.checkCapacity()
}

func (ix *Index) apply(m *member, e *event.Event, now int64, second uint32) (o Outcome) {
	if e.Kind == event.Cleared {
		ix.clearTiers(m, e)
		return o
	}
	if e.Shared || e.Tier >= event.NumTiers {
		if e.Kind == event.Removed && e.Tier == event.TierAll && !e.Shared {
			return ix.removeEverywhere(m, e, now, second)
		}
		o.Verdict = SharedMedium
		return o
	}
	if !m.groups.plain(e) {
		trie, i, changed := m.groups.classify(e)
		if changed {
			ix.describe(m)
		}
		if !trie {
			return ix.applyWindow(m, i, e, second)
		}
	}
	switch {
	case e.Kind == event.Removed:
		o.Unknown = ix.remove(m, e.Tier, e.Hashes)
	case len(e.Tokens) == 0:
		o.Unknown = ix.storeNamed(m, e, second)
	case ix.grow(m, e, second):
	default:
		o = ix.applyStore(m, e, now, second)
		if o.Verdict != Applied {
			ix.disown(m, e.Hashes)
		}
	}
	return o
}

// disown takes hashes from where they are: the engine has stored them at a
// place that is not known.
func (ix *Index) disown(m *member, hashes []uint64) {
	for _, hash := range hashes {
		if at, ok := m.rev.lookup(hash); ok {
			ix.unplace(m, at, due{})
		}
		if c := m.chunks.byHash[hash]; c != nil {
			ix.dropChunk(m, hash, c)
		}
	}
}

func (ix *Index) applyStore(m *member, e *event.Event, now int64, second uint32) (o Outcome) {
	if !e.Dense() {
		return Outcome{Verdict: Sparse}
	}
	span := ix.learn(m, e)
	if span == 0 {
		return Outcome{Verdict: OtherSize}
	}
	m.sink = m.rev.warm(e.Parent, e.Hashes) // arrives while the tokens are hashed
	var few [fewKeys]block.Key              // decoding: a buffer of each member would be one more miss
	keys := few[:0]
	if n := len(e.Hashes) * span; n > len(few) {
		m.keys = slices.Grow(m.keys[:0], n)
		keys = m.keys
	}
	c := chain{
		layer: layer(e.Tier), span: span, hashes: e.Hashes,
		keys:   ix.hasher.Keys(keys, e.Tokens, int(m.size.Load())),
		parent: e.Parent, hasParent: e.HasParent, salted: e.HasSalt,
	}
	if span > 1 {
		c.layer |= layerChunk
	}
	if len(e.Extra) == len(e.Hashes) && !ix.mixExtra(&c, e.Extra) {
		return Outcome{Verdict: Sparse}
	}
	ix.setSpace(&c, m, e)
	o.Verdict = ix.store(m, &c, second)
	if o.Verdict == orphaned {
		o.Verdict = m.park(&c, now)
	}
	if o.Verdict == Applied && m.parked.events > 0 {
		o.Attached = ix.attach(m, e.Hashes, now, second)
	}
	return o
}

// mixExtra puts what the blocks hold besides tokens into their keys. It refuses
// chunks with such content: which of their blocks holds it is not said.
func (ix *Index) mixExtra(c *chain, extra []uint64) bool {
	for i, x := range extra {
		if x != 0 && c.span > 1 {
			return false
		}
		c.keys[i] = ix.hasher.WithExtra(c.keys[i], block.Extra(x))
	}
	return true
}

func (ix *Index) setSpace(c *chain, m *member, e *event.Event) {
	size := int(m.size.Load())
	if lora := adapter(e); m.named.size != size || m.named.lora != lora {
		ns := block.Namespace{Model: m.owner.Model, LoRA: lora, Size: size}
		m.named = named{lora: strings.Clone(lora), size: size, space: ix.hasher.Space(ns)}
	}
	c.space = spaces{full: m.named.space, unsalted: m.named.space}
	if e.HasSalt {
		ns := block.Namespace{Model: m.owner.Model, LoRA: m.named.lora, Salt: e.Salt, Size: size}
		c.space.full = ix.hasher.Space(ns)
	}
}

// adapter names the LoRA of a store. Engines before the name was published give
// a number only: no request can ask for that, but neither may the blocks count
// for the base model.
func adapter(e *event.Event) string {
	if e.LoRA == "" && e.LoRAID > 0 {
		return "\x00id " + strconv.FormatInt(e.LoRAID, 10)
	}
	return e.LoRA
}
