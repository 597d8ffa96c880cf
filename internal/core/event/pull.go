package event

import (
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"strconv"
)

// LayoutPull is the Layout of what PullDecoder reads.
const LayoutPull = "trtllm-pull"

// maxPulledLevel bounds the numbers of cache levels.
const maxPulledLevel = 1 << 10

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
