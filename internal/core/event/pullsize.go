package event

import "slices"

// maxHeld and maxHeldBytes bound the events that wait for the block size.
const (
	maxHeld      = 1024
	maxHeldBytes = 1 << 20
)

// single is a block of which only another one tells whether it is full.
type single struct {
	hash   uint64
	tokens int
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
