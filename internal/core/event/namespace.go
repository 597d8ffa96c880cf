package event

import (
	"bytes"
	"encoding/hex"
	"slices"

	"github.com/tinylib/msgp/msgp"

	"github.com/eppctl/eppctl/internal/core/block"
)

// namespace reads what keeps equal tokens apart: adapter, salt, and whatever
// else a block holds.
func (d *Decoder) namespace(e *Event, b *Batch) {
	if id, ok := readInt(d.raw.fields[fLoRAID]); ok {
		e.LoRAID = id
	}
	if v := d.raw.fields[fLoRAName]; msgp.NextType(v) == msgp.MapType {
		d.metadata(e, v)
	} else {
		e.LoRA = d.name(fLoRAName)
	}
	d.salt(e, d.raw.fields[fCacheSalt])
	from := len(b.extra)
	d.extraKeys(e, b)
	d.media(fMMKeys, b, from)
	d.media(fMMInfos, b, from)
	d.alignExtra(e, b, from)
}

// extraKeys reads vLLM's list of what each block holds besides tokens, in the
// order adapter, multimodal items, salt (first block of a prompt only), digest
// of prompt embeddings. The values carry no tags: a string is told by its place.
//
//	the adapter's name   dropped, it is in the namespace already
//	a string on the first block of a prompt: the salt (if there are several, the
//	                     last; around 0.18 an image was a bare string too)
//	[identifier, offset] an image, sound or video (block.ExtraItem). With an adapter for
//	                     its encoder the identifier begins with the adapter's name
//	anything else        goes into the block's digest
//
// Taking an image for a salt costs a match and never makes a false one.
func (d *Decoder) extraKeys(e *Event, b *Batch) {
	if d.raw.fields[fExtraKeys] == nil {
		return
	}
	// The simulator writes parent 0 for none.
	first := !e.HasParent || e.Parent == 0
	if first && !e.HasSalt {
		e.HasSalt = true
	}
	n, v := d.list(fExtraKeys, maxHashes)
	for i := range n {
		if len(v) > 0 && v[0] == msgpackNil { // nearly all are
			b.extra, v = append(b.extra, 0), v[1:]
			continue
		}
		rest, err := skip(v, 0)
		if err != nil {
			return // cannot be: scan has been over it
		}
		b.extra = append(b.extra, uint64(d.blockExtra(e, v[:len(v)-len(rest)], first && i == 0)))
		v = rest
	}
}

// media adds a list of the multimodal items of each block to the digests, which
// begin at from.
func (d *Decoder) media(f field, b *Batch, from int) {
	n, v := d.list(f, maxHashes)
	for i := range n {
		rest, err := skip(v, 0)
		if err != nil {
			return // cannot be: scan has been over it
		}
		if from+i == len(b.extra) {
			b.extra = append(b.extra, 0)
		}
		x := &b.extra[from+i]
		*x = uint64(digest(block.Extra(*x), v[:len(v)-len(rest)], 0))
		v = rest
	}
}

// alignExtra gives the event the digests that begin at from, when any block has
// one.
func (d *Decoder) alignExtra(e *Event, b *Batch, from int) {
	got := b.extra[from:]
	switch {
	case !slices.ContainsFunc(got, func(x uint64) bool { return x != 0 }):
		b.extra = b.extra[:from]
	case len(got) == len(e.Hashes):
		e.Extra = got[:len(got):len(got)]
	case e.Dense() && e.FullAttention():
		d.fail(SkipExtraAlign)
	}
}

// blockExtra digests one block's entry: nil or a list of mixed values.
func (d *Decoder) blockExtra(e *Event, v []byte, first bool) (x block.Extra) {
	if msgp.NextType(v) != msgp.ArrayType {
		return digest(0, v, 0)
	}
	n, v, _ := readHeader(v, msgp.ArrayType)
	adapter := e.LoRA == ""
	var salt []byte // the last string of a first block, not digested yet
	for range n {
		item := v
		rest, err := skip(v, 0)
		if err != nil {
			return x // cannot be: scan has been over it
		}
		v, item = rest, item[:len(item)-len(rest)]
		s, isText := readText(item)
		id, at, pair := mmPair(item)
		switch {
		case isText && !adapter && string(s) == e.LoRA:
			adapter = true
		case pair:
			x = block.ExtraItem(x, block.IdentifyItem(unprefixed(id, e.LoRA)), at)
		case isText && first:
			if salt != nil {
				x = block.ExtraString(x, salt)
			}
			salt = s
		default:
			x = digest(x, item, 0)
		}
	}
	if salt == nil {
		return x
	}
	if e.Salt == "" {
		e.Salt = d.text(salt)
	} else if !bytes.Equal(salt, []byte(e.Salt)) { // cache_salt named another one
		x = block.ExtraString(x, salt)
	}
	return x
}

// digest adds one value. Integers count by value and strings and byte strings by
// content, so that the width an encoder chose does not matter.
func digest(x block.Extra, v []byte, depth int) block.Extra {
	switch msgp.NextType(v) {
	case msgp.NilType:
		return x
	case msgp.IntType, msgp.UintType:
		h, _, _ := readHash(v)
		return block.ExtraInt(x, int64(h))
	case msgp.StrType:
		s, _ := readText(v)
		return block.ExtraString(x, s)
	case msgp.BinType:
		s, _, _ := msgp.ReadBytesZC(v)
		return block.ExtraString(x, s)
	case msgp.ArrayType:
		n, v, _ := readHeader(v, msgp.ArrayType)
		for range n {
			rest, err := skip(v, depth)
			if err != nil {
				return x // cannot be: scan has been over it
			}
			x = digest(x, v[:len(v)-len(rest)], depth+1)
			v = rest
		}
		return x
	case msgp.MapType:
		if hash, at, ok := mmKey(v); ok {
			return block.ExtraItem(x, block.IdentifyItem(hash), at)
		}
	}
	return block.ExtraString(x, v) // floats, other maps, times: their bytes
}

// mmPair reads an item as vLLM writes it: [identifier, offset].
func mmPair(v []byte) (id []byte, offset int64, ok bool) {
	if msgp.NextType(v) != msgp.ArrayType {
		return nil, 0, false
	}
	n, v, _ := readHeader(v, msgp.ArrayType)
	if n != 2 {
		return nil, 0, false
	}
	if id, ok = readText(v); !ok {
		return nil, 0, false
	}
	if v, err := skip(v, 0); err == nil {
		offset, ok = readInt(v)
		return id, offset, ok
	}
	return nil, 0, false
}

// unprefixed is an identifier without the adapter that vLLM puts before it when the
// adapter changes what the item's encoder makes of it (--enable-tower-connector-lora).
// The adapter is in the namespace, and a renderer leaves it out. Without the flag a
// client may call an image the same way, and "mine" another, which the engine has not:
// so it is before nothing but a hash of the content that it is taken for the engine's.
func unprefixed(id []byte, adapter string) []byte {
	n := len(adapter)
	if n > 0 && len(id) > n && id[n] == ':' && string(id[:n]) == adapter && isContentHash(id[n+1:]) {
		return id[n+1:]
	}
	return id
}

// isContentHash reports whether an identifier can be what vLLM makes of an item's
// content: hex of blake3, sha256 or sha512 (vllm/multimodal/hasher.py, 0.32.0).
func isContentHash(id []byte) bool {
	if len(id) != 64 && len(id) != 128 {
		return false
	}
	_, err := hex.Decode(make([]byte, len(id)/2), id)
	return err == nil
}

// mmKey reads an item as TensorRT-LLM writes it: {type, hash, start_offset,
// uuid?}. It is [identifier, offset] by other names.
func mmKey(v []byte) (hash []byte, offset int64, ok bool) {
	n, v, _ := readHeader(v, msgp.MapType)
	for range n / 2 {
		key := v
		value, err := skip(key, 0)
		if err != nil {
			return nil, 0, false // cannot be: scan has been over it
		}
		switch name, _ := readText(key); string(name) {
		case "hash":
			hash, ok = readText(value)
		case "start_offset":
			offset, _ = readInt(value)
		}
		if v, err = skip(value, 0); err != nil {
			return nil, 0, false
		}
	}
	return hash, offset, ok
}
