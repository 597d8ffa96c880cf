package event

import "encoding/json/jsontext"

// pulledEvent is an event taken apart: parts of its text.
type pulledEvent struct {
	id            uint64
	rank          int
	window, layer int
	data          []byte

	kind                                          []byte
	parent, blocks, hashes, hash, level, perLevel []byte
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
