package event

import (
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/eppctl/eppctl/internal/core/block"
)

// LayoutPull is the Layout of what PullDecoder reads.
const LayoutPull = "trtllm-pull"

// Bounds of what a PullDecoder keeps.
const (
	// maxHeld and maxHeldBytes bound the events that wait for the block size.
	maxHeld      = 1024
	maxHeldBytes = 1 << 20
	// maxPartial bounds the partial blocks that are remembered. A forgotten one
	// is removed as an unknown hash, which only a counter shows.
	maxPartial     = 1 << 16
	maxPullGroups  = 64
	maxPulledLevel = 1 << 10
)

var errNotEvent = errors.New("it is JSON, and no event of TensorRT-LLM (an object with data); publishers of KV events write msgpack")

// PullDecoder reads the events of one rank of TensorRT-LLM's pull API, in their
// order. Unlike the layouts of the publishers they do not stand alone: what a
// full block is, which blocks are partial and which window is the largest is
// known from earlier ones. It is not safe for concurrent use.
//
//	created   the blocks the engine has, per cache level (0 GPU, 1 host): Batch.Blocks
//	stored    blocks under a parent; the last may be partial and is left out
//	removed   hashes, wherever they are; of partial blocks nothing is said
//	updated   a block moves to another level, or its priority changes: nothing
//
// Attention windows are cache groups; the largest is group 0.
type PullDecoder struct {
	names   interner
	scratch []byte
	// One walk per depth: the event, its data, a list of that, a block, its tokens.
	item, data, list, inner, tokens jsonWalk

	size    int // tokens of a full block, 0 = not known
	groups  []pullGroup
	begun   bool // something of group 0 was stored
	partial map[pullBlock]struct{}
	held    [][]byte // events that wait for the size; the first is a store
	bytes   int      // of held
	singles []single // the blocks held
	blocks  []pulledBlock
}

type pullGroup struct{ window, layer int }

type pullBlock struct {
	group int
	hash  uint64
}

// single is a block of which only another one tells whether it is full.
type single struct {
	hash   uint64
	tokens int
}

// pulledEvent is an event taken apart: parts of its text.
type pulledEvent struct {
	id            uint64
	rank          int
	window, layer int
	data          []byte

	kind                                          []byte
	parent, blocks, hashes, hash, level, perLevel []byte
}

// pulledBlock is a block of a store; its tokens are in the batch's arena.
type pulledBlock struct {
	hash     uint64
	from, to int
	level    int
	extra    block.Extra
	loraID   int64
	lora     string
}

// Decode reads one event into b, whose former content and slices are lost. It
// may leave b empty, and then put several events into it: until a block is known
// to be full, stores wait. An error means that the text is no event.
func (d *PullDecoder) Decode(text []byte, b *Batch) error {
	b.reset()
	p, err := d.read(text, b)
	if err == nil {
		b.Rank = p.rank
		err = d.take(text, &p, b)
	}
	if err != nil {
		b.reset()
		return fmt.Errorf("kv event of %d bytes: %w", len(text), err)
	}
	return nil
}

// Forget drops what earlier events said of blocks; call it when the index drops
// them.
func (d *PullDecoder) Forget() {
	clear(d.partial)
	d.held, d.singles, d.bytes, d.begun = nil, nil, 0, false
	d.sortGroups()
}

func (d *PullDecoder) take(text []byte, p *pulledEvent, b *Batch) error {
	if string(p.kind) == `"created"` {
		return d.created(p, b)
	}
	if d.size == 0 {
		d.learn(p, b)
	}
	if d.size == 0 {
		d.hold(text, p)
		if len(d.held) >= maxHeld || d.bytes >= maxHeldBytes {
			d.guess()
			d.release(b)
		}
		return d.fault()
	}
	d.release(b)
	d.add(p, b)
	return d.fault()
}

// release adds the events that were held.
func (d *PullDecoder) release(b *Batch) {
	waiting := d.held
	d.held, d.singles, d.bytes = nil, nil, 0
	for _, text := range waiting {
		if p, err := d.read(text, b); err == nil { // it was read before
			d.add(&p, b)
		}
	}
}

// read takes the text apart as far as the fields of data.
func (d *PullDecoder) read(text []byte, b *Batch) (p pulledEvent, err error) {
	p = pulledEvent{rank: -1, layer: -1}
	if d.item.open(text, jsontext.KindBeginObject) {
		for name, v, ok := d.item.member(); ok; name, v, ok = d.item.member() {
			switch string(name) {
			case `"event_id"`:
				p.id, _ = jsonUint(v)
			case `"data"`:
				p.data = v
			case `"window_size"`:
				p.window, _ = jsonInt(v, 1<<30)
			case `"layer_group_id"`:
				if n, ok := jsonInt(v, maxGroup); ok {
					p.layer = n
				}
			case `"attention_dp_rank"`:
				if n, ok := jsonInt(v, maxGroup); ok {
					p.rank = n
				}
			case `"hash_algo"`:
			default:
				d.unknown(b, "event", name)
			}
		}
	}
	if err := d.fault(); err != nil {
		return p, err
	}
	if !d.data.open(p.data, jsontext.KindBeginObject) {
		return p, errNotEvent
	}
	for name, v, ok := d.data.member(); ok; name, v, ok = d.data.member() {
		switch string(name) {
		case `"type"`:
			p.kind = v
		case `"parent_hash"`:
			p.parent = v
		case `"blocks"`:
			p.blocks = v
		case `"block_hashes"`:
			p.hashes = v
		case `"block_hash"`:
			p.hash = v
		case `"cache_level"`:
			p.level = v
		case `"num_blocks_per_cache_level"`:
			p.perLevel = v
		case `"priority"`:
		default:
			d.unknown(b, "data", name)
		}
	}
	return p, d.fault()
}

// fault is the first error in the syntax of the text.
func (d *PullDecoder) fault() error {
	for _, w := range []*jsonWalk{&d.item, &d.data, &d.list, &d.inner, &d.tokens} {
		if err := w.err; err != nil {
			w.err = nil
			return err
		}
	}
	return nil
}

func (d *PullDecoder) unknown(b *Batch, of string, name []byte) {
	d.scratch = append(append(append(d.scratch[:0], of...), '.'), jsonText(name)...)
	b.unknown(d.names.get(d.scratch[:min(len(d.scratch), maxTag)]), 1)
}

// add appends what an event comes to, or why it cannot be read.
func (d *PullDecoder) add(p *pulledEvent, b *Batch) {
	tokens, hashes, extra, events := len(b.tokens), len(b.hashes), len(b.extra), len(b.Events)
	reason := ""
	switch string(p.kind) {
	case `"stored"`:
		reason = d.stored(p, b)
	case `"removed"`:
		reason = d.removed(p, b)
	case `"updated"`:
		reason = d.updated(p, b)
	case "":
		reason = SkipNoTag
	default:
		reason = SkipUnknownTag
		if p.kind[0] != '"' {
			reason = SkipTagType
			break
		}
		d.scratch = append(d.scratch[:0], jsonText(p.kind)...)
		b.unknown(d.names.get(d.scratch[:min(len(d.scratch), maxTag)]), 1)
	}
	if reason == "" {
		return
	}
	b.tokens, b.hashes, b.extra, b.Events = b.tokens[:tokens], b.hashes[:hashes], b.extra[:extra], b.Events[:events]
	tag := jsonText(p.kind)
	b.Skipped = append(b.Skipped, Skip{
		Reason: reason, Before: events, Tag: d.names.get(tag[:min(len(tag), maxTag)]),
		Removes: string(p.kind) != `"stored"` && reason != SkipUnknownTag,
	})
}

// created begins the life of an engine; there is one for each window.
func (d *PullDecoder) created(p *pulledEvent, b *Batch) error {
	if p.id == 0 {
		d.Forget()
		d.size, d.groups = 0, nil
	}
	if g, ok := d.group(p); !ok || g > 0 || !d.list.open(p.perLevel, jsontext.KindBeginArray) {
		return d.fault()
	}
	for level := 0; ; level++ {
		v, ok := d.list.element()
		if !ok {
			return d.fault()
		}
		n, _ := jsonInt(v, 1<<30)
		at := Event{}
		d.level(&at, level)
		b.Blocks[at.Tier] += n
	}
}

// level places an event on a cache level.
func (d *PullDecoder) level(e *Event, level int) {
	d.scratch = strconv.AppendInt(append(d.scratch[:0], "level "...), int64(level), 10)
	e.Medium = d.names.get(d.scratch)
	e.Tier, e.Shared, _ = Medium(e.Medium)
}

// group numbers the cache group of an event. False when there are too many.
func (d *PullDecoder) group(p *pulledEvent) (int, bool) {
	g := pullGroup{p.window, p.layer}
	if i := slices.Index(d.groups, g); i >= 0 {
		return i, true
	}
	if len(d.groups) >= maxPullGroups {
		return 0, false
	}
	d.groups = append(d.groups, g)
	if !d.begun {
		d.sortGroups()
	}
	return slices.Index(d.groups, g), true
}

// sortGroups puts the largest window first. Once blocks of group 0 were stored
// the numbers stay: whoever joins late may take a smaller window for it, and
// learns better when the blocks are dropped. (Both are then taken to hold whole
// prompts, which promises too little.)
func (d *PullDecoder) sortGroups() {
	slices.SortStableFunc(d.groups, func(a, b pullGroup) int { return b.window - a.window })
}

// place begins an event of the group of p.
func (d *PullDecoder) place(p *pulledEvent, k Kind) (e Event, reason string) {
	g, ok := d.group(p)
	if !ok {
		return e, SkipFieldRange
	}
	e = Event{Kind: k, Group: g, LoRAID: -1, Layout: LayoutPull, HashForm: "int"}
	if w := d.groups[g].window; w < d.groups[0].window {
		// Not one of vLLM's names: nobody has measured what TensorRT-LLM needs of a
		// window for a hit, so that the index shows such pods as approximate.
		e.SpecKind, e.Window = "window", w
	}
	return e, ""
}

// hold keeps a store, and what follows it, until the block size is known.
func (d *PullDecoder) hold(text []byte, p *pulledEvent) {
	if len(d.held) > 0 || string(p.kind) == `"stored"` {
		d.held = append(d.held, slices.Clone(text))
		d.bytes += len(text)
	}
}

// learn finds the block size: all blocks of a store but the last are full, and so
// is every parent.
func (d *PullDecoder) learn(p *pulledEvent, b *Batch) {
	if string(p.kind) != `"stored"` {
		return
	}
	tokens, names := len(b.tokens), len(b.Unknown)
	reason := d.readBlocks(p, b)
	b.tokens, b.Unknown = b.tokens[:tokens], b.Unknown[:names]
	if reason != "" || len(d.blocks) == 0 {
		return
	}
	first := d.blocks[0].to - d.blocks[0].from
	if len(d.blocks) > 1 {
		d.size = first
		return
	}
	if h, ok := jsonHash(p.parent); ok {
		for _, s := range d.singles {
			if s.hash == h {
				d.size = s.tokens
				return
			}
		}
	}
	d.singles = append(d.singles, single{d.blocks[0].hash, first})
}

// guess takes the longest block held for a full one.
func (d *PullDecoder) guess() {
	d.size = 1
	for _, s := range d.singles {
		d.size = max(d.size, s.tokens)
	}
}

func (d *PullDecoder) removed(p *pulledEvent, b *Batch) (reason string) {
	e, reason := d.place(p, Removed)
	if reason != "" {
		return reason
	}
	if jsonNull(p.hashes) {
		return SkipNoHashes
	}
	if !d.list.open(p.hashes, jsontext.KindBeginArray) {
		return SkipFieldType
	}
	e.Tier = TierAll
	from := len(b.hashes)
	for v, ok := d.list.element(); ok; v, ok = d.list.element() {
		h, ok := jsonHash(v)
		switch {
		case !ok:
			return SkipHashType
		case len(b.hashes)-from >= maxHashes:
			return SkipTooMany
		case !d.forgetPartial(e.Group, h):
			b.hashes = append(b.hashes, h)
		}
	}
	if e.Hashes = b.hashes[from:len(b.hashes):len(b.hashes)]; len(e.Hashes) > 0 {
		b.Events = append(b.Events, e)
	}
	return ""
}

// forgetPartial reports that a block is partial, and so was never stored.
func (d *PullDecoder) forgetPartial(group int, hash uint64) bool {
	key := pullBlock{group, hash}
	_, was := d.partial[key]
	delete(d.partial, key)
	return was
}

func (d *PullDecoder) notePartial(group int, hash uint64) {
	if d.partial == nil {
		d.partial = map[pullBlock]struct{}{}
	}
	if len(d.partial) >= maxPartial {
		clear(d.partial)
	}
	d.partial[pullBlock{group, hash}] = struct{}{}
}

// updated moves a block: it is stored on one level, then removed from the other.
func (d *PullDecoder) updated(p *pulledEvent, b *Batch) (reason string) {
	to, reason := d.place(p, Stored)
	if reason != "" {
		return reason
	}
	hash, ok := jsonHash(p.hash)
	if !ok {
		return SkipHashType
	}
	if jsonNull(p.level) { // another priority
		return ""
	}
	levels := [2]int{-1, -1} // old, new
	if !d.list.open(p.level, jsontext.KindBeginObject) {
		return SkipFieldType
	}
	for name, v, ok := d.list.member(); ok; name, v, ok = d.list.member() {
		i := 0
		switch string(name) {
		case `"old_value"`:
		case `"new_value"`:
			i = 1
		default:
			continue
		}
		if levels[i], ok = jsonInt(v, maxPulledLevel); !ok {
			return SkipFieldType
		}
	}
	if levels[0] < 0 || levels[1] < 0 {
		return SkipFieldType
	}
	if _, partial := d.partial[pullBlock{to.Group, hash}]; partial || levels[0] == levels[1] {
		return ""
	}
	b.hashes = append(b.hashes, hash)
	to.Hashes = b.hashes[len(b.hashes)-1 : len(b.hashes) : len(b.hashes)]
	from := to
	from.Kind = Removed
	d.level(&from, levels[0])
	d.level(&to, levels[1])
	b.Events = append(b.Events, to, from)
	return ""
}
