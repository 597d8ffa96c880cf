package event

import (
	"encoding/json/jsontext"
	"math"

	"github.com/eppctl/eppctl/internal/core/block"
)

// pulledBlock is a block of a store; its tokens are in the batch's arena.
type pulledBlock struct {
	hash     uint64
	from, to int
	level    int
	extra    block.Extra
	loraID   int64
	lora     string
}

// stored appends a store for each stretch of blocks on one level.
func (d *PullDecoder) stored(p *pulledEvent, b *Batch) (reason string) {
	e, reason := d.place(p, Stored)
	if reason != "" {
		return reason
	}
	if !jsonNull(p.parent) {
		ok := false
		if e.Parent, ok = jsonHash(p.parent); !ok {
			return SkipHashType
		}
		e.HasParent = true
	}
	if reason = d.readBlocks(p, b); reason != "" {
		return reason
	}
	for blocks := d.full(e.Group); len(blocks) > 0; {
		n := 1
		for n < len(blocks) && blocks[n].level == blocks[0].level {
			n++
		}
		d.stretch(e, blocks[:n], b)
		e.Parent, e.HasParent = blocks[n-1].hash, true
		blocks = blocks[n:]
	}
	return ""
}

// full returns the leading full blocks of a store, and remembers the one behind
// them.
func (d *PullDecoder) full(group int) []pulledBlock {
	for i := range d.blocks {
		x := &d.blocks[i]
		switch n := x.to - x.from; {
		case n > d.size:
			d.size = n // what was taken for full was not
		case n < d.size:
			d.notePartial(group, x.hash)
			return d.blocks[:i]
		}
		delete(d.partial, pullBlock{group, x.hash})
	}
	return d.blocks
}

// stretch appends one store of blocks that lie on one level.
func (d *PullDecoder) stretch(e Event, blocks []pulledBlock, b *Batch) {
	first, last := &blocks[0], &blocks[len(blocks)-1]
	d.level(&e, first.level)
	e.BlockSize = first.to - first.from
	e.LoRA, e.LoRAID = first.lora, first.loraID
	e.Tokens = b.tokens[first.from:last.to:last.to]
	hashes, extra, any := len(b.hashes), len(b.extra), false
	for i := range blocks {
		b.hashes = append(b.hashes, blocks[i].hash)
		b.extra = append(b.extra, uint64(blocks[i].extra))
		any = any || blocks[i].extra != 0
	}
	e.Hashes = b.hashes[hashes:len(b.hashes):len(b.hashes)]
	if any {
		e.Extra = b.extra[extra:len(b.extra):len(b.extra)]
	} else {
		b.extra = b.extra[:extra]
	}
	d.begun = d.begun || e.Group == 0
	b.Events = append(b.Events, e)
}

// readBlocks reads the blocks of a store into d.blocks and their tokens into b.
func (d *PullDecoder) readBlocks(p *pulledEvent, b *Batch) (reason string) {
	d.blocks = d.blocks[:0]
	if jsonNull(p.blocks) {
		return SkipNoHashes
	}
	if !d.list.open(p.blocks, jsontext.KindBeginArray) {
		return SkipFieldType
	}
	tokens := len(b.tokens)
	for v, ok := d.list.element(); ok; v, ok = d.list.element() {
		if len(d.blocks) >= maxHashes {
			return SkipTooMany
		}
		d.blocks = append(d.blocks, pulledBlock{loraID: -1})
		if reason = d.readBlock(v, &d.blocks[len(d.blocks)-1], b); reason != "" {
			return reason
		}
		if len(b.tokens)-tokens > maxTokens {
			return SkipTooMany
		}
	}
	return ""
}

func (d *PullDecoder) readBlock(text []byte, x *pulledBlock, b *Batch) (reason string) {
	x.from, x.to = len(b.tokens), len(b.tokens)
	if !d.inner.open(text, jsontext.KindBeginObject) {
		return SkipFieldType
	}
	hashed := false
	for name, v, ok := d.inner.member(); ok; name, v, ok = d.inner.member() {
		good := true
		switch string(name) {
		case `"block_hash"`:
			x.hash, hashed = jsonHash(v)
		case `"tokens"`:
			if reason = d.readTokens(v, x, b); reason != "" {
				return reason
			}
		case `"cache_level"`:
			x.level, good = jsonInt(v, maxPulledLevel)
			good = good || jsonNull(v)
		case `"mm_keys"`:
			good = d.readMedia(v, x)
		case `"lora_id"`:
			if n, ok := jsonInt(v, math.MaxInt); ok {
				x.loraID = int64(n)
			}
		case `"lora_name"`:
			x.lora = d.names.get(jsonText(v))
		case `"type"`, `"priority"`:
		default:
			d.unknown(b, "block", name)
		}
		if !good {
			return SkipFieldType
		}
	}
	if !hashed {
		return SkipHashType
	}
	if len(x.lora) > maxName {
		return SkipLongString
	}
	return ""
}

// readTokens reads [{token_id, token_extra_id}]. The extra id stands for what a
// prompt table has in place of a token; it goes into the block's digest.
func (d *PullDecoder) readTokens(text []byte, x *pulledBlock, b *Batch) (reason string) {
	if !d.tokens.open(text, jsontext.KindBeginArray) {
		return SkipFieldType
	}
	w := &d.tokens
	for w.dec.PeekKind() == jsontext.KindBeginObject {
		if _, err := w.dec.ReadToken(); err != nil {
			w.note(err)
			return ""
		}
		id, known := uint64(0), false
		for name, v, ok := w.member(); ok; name, v, ok = w.member() {
			switch string(name) {
			case `"token_id"`:
				id, known = jsonUint(v)
			case `"token_extra_id"`:
				if n, ok := jsonUint(v); ok && n > 0 {
					x.extra = block.ExtraInt(x.extra, int64(n))
				}
			case `"type"`:
			default:
				d.unknown(b, "token", name)
			}
		}
		if !known || id > math.MaxUint32 {
			return SkipTokenType
		}
		b.tokens = append(b.tokens, uint32(id))
	}
	if _, more := w.element(); more {
		return SkipTokenType
	}
	x.to = len(b.tokens)
	return ""
}

// readMedia reads the multimodal items of a block: [{hash, start_offset}].
func (d *PullDecoder) readMedia(text []byte, x *pulledBlock) (ok bool) {
	if jsonNull(text) {
		return true
	}
	if !d.tokens.open(text, jsontext.KindBeginArray) {
		return false
	}
	w := &d.tokens
	for w.dec.PeekKind() == jsontext.KindBeginObject {
		if _, err := w.dec.ReadToken(); err != nil {
			w.note(err)
			return true
		}
		var hash []byte
		offset := 0
		for name, v, ok := w.member(); ok; name, v, ok = w.member() {
			switch string(name) {
			case `"hash"`:
				hash = jsonText(v)
			case `"start_offset"`:
				offset, _ = jsonInt(v, math.MaxInt)
			}
		}
		x.extra = block.ExtraItem(x.extra, block.IdentifyItem(hash), int64(offset))
	}
	_, more := w.element()
	return !more
}
