package event

import "github.com/tinylib/msgp/msgp"

// Caps on the values of one event.
const (
	maxBlock = 1 << 20 // tokens per block
	maxGroup = 1 << 16 // cache groups, and data-parallel ranks
	maxName  = 4096    // bytes of a name or salt
	maxTag   = 64      // bytes of an unknown tag that are kept
)

// fill turns the scanned event into e, or says why it cannot. nil is legal for
// every field but the hashes, and an absent field equals nil: older engines end
// their arrays early and map events leave defaults out.
func (d *Decoder) fill(e *Event, b *Batch) (reason string) {
	d.reason = ""
	*e = Event{Kind: d.raw.kind, LoRAID: -1, Layout: d.raw.layout()}
	d.place(e)
	if e.Kind != Cleared {
		d.hashes(e, b)
	}
	if e.Kind == Stored {
		d.parent(e)
		d.tokens(e, b)
		e.BlockSize = d.int(fBlockSize, maxBlock)
		d.namespace(e, b)
	}
	return d.reason
}

// place reads where the blocks lie.
func (d *Decoder) place(e *Event) {
	e.Medium = d.name(fMedium)
	e.Locality = d.name(fLocality)
	e.Ownership = d.name(fOwnership)
	e.Tier, e.Shared, _ = Medium(e.Medium)
	if e.Tier == TierDisk && equalFold(e.Locality, "REMOTE") {
		e.Tier = TierRemote // vLLM's STORAGE says where by its locality
	}
	e.Group = d.int(fGroup, maxGroup)
	e.SpecKind = d.name(fSpecKind)
	e.Window = d.int(fWindow, 1<<30)
}

func (d *Decoder) hashes(e *Event, b *Batch) {
	v := d.raw.fields[fHashes]
	if v == nil || msgp.IsNil(v) {
		d.fail(SkipNoHashes)
		return
	}
	n, v := d.list(fHashes, maxHashes)
	e.HashForm = hashForm(v)
	from := len(b.hashes)
	for range n {
		h, rest, ok := readHash(v)
		if !ok {
			d.fail(SkipHashType)
			return
		}
		b.hashes = append(b.hashes, h)
		v = rest
	}
	e.Hashes = b.hashes[from:len(b.hashes):len(b.hashes)]
}

// parent leaves 0 as it is: the simulator and the llm-d connector write 0 for
// "none", but 0 is also a possible hash. The index knows which.
func (d *Decoder) parent(e *Event) {
	v := d.raw.fields[fParent]
	if v == nil || msgp.IsNil(v) {
		return
	}
	h, _, ok := readHash(v)
	if !ok {
		d.fail(SkipHashType)
	}
	e.Parent, e.HasParent = h, true
}

func (d *Decoder) tokens(e *Event, b *Batch) {
	n, v := d.list(fTokens, maxTokens)
	from := len(b.tokens)
	for range n {
		id, rest, reason := readToken(v)
		if reason != "" {
			d.fail(reason)
			return
		}
		b.tokens = append(b.tokens, id)
		v = rest
	}
	e.Tokens = b.tokens[from:len(b.tokens):len(b.tokens)]
}

// list returns the number of elements of an array field and the first of them.
func (d *Decoder) list(f field, limit int) (n int, v []byte) {
	v = d.raw.fields[f]
	if v == nil || msgp.IsNil(v) {
		return 0, nil
	}
	if msgp.NextType(v) != msgp.ArrayType {
		d.fail(SkipFieldType)
		return 0, nil
	}
	n, v, _ = readHeader(v, msgp.ArrayType) // skip has been over it: no error
	if n > limit {
		d.fail(SkipTooMany)
		return 0, nil
	}
	return n, v
}

func (d *Decoder) int(f field, limit int64) int {
	v := d.raw.fields[f]
	if v == nil || msgp.IsNil(v) {
		return 0
	}
	i, ok := readInt(v)
	if !ok {
		d.fail(SkipFieldType)
	} else if i < 0 || i > limit {
		d.fail(SkipFieldRange)
		return 0
	}
	return int(i)
}

func (d *Decoder) name(f field) string {
	v := d.raw.fields[f]
	if v == nil || msgp.IsNil(v) {
		return ""
	}
	s, ok := readText(v)
	if !ok {
		d.fail(SkipFieldType)
	}
	return d.text(s)
}

func (d *Decoder) text(s []byte) string {
	if len(s) > maxName {
		d.fail(SkipLongString)
		return ""
	}
	return d.names.get(s)
}

// fail keeps the first reason.
func (d *Decoder) fail(reason string) {
	if d.reason == "" {
		d.reason = reason
	}
}
