package event

import (
	"slices"

	"github.com/tinylib/msgp/msgp"
)

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
	d.reason, d.pairs = "", false
	*e = Event{Kind: d.raw.kind, LoRAID: -1}
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
	e.Layout = d.layout()
	return d.reason
}

func (d *Decoder) layout() string {
	name := d.raw.layout(d.slots)
	if !d.pairs {
		return name
	}
	d.scratch = append(append(d.scratch[:0], name...), "+bigram"...)
	return d.names.get(d.scratch)
}

// move replaces ATOM's transfer, the last event of b, by what it comes to: the
// blocks are stored on one medium and removed from another. The store is first,
// so that a block which moves is never nowhere.
func (d *Decoder) move(b *Batch) {
	to := &b.Events[len(b.Events)-1]
	from := *to
	to.Kind, to.Medium = Stored, d.name(fTo)
	from.Kind, from.Medium = Removed, d.name(fFrom)
	for _, e := range []*Event{to, &from} {
		e.Tier, e.Shared, _ = Medium(e.Medium)
	}
	b.Events = append(b.Events, from)
}

// place reads where the blocks lie.
func (d *Decoder) place(e *Event) {
	e.Medium = d.name(fMedium)
	e.Locality = d.name(fLocality)
	e.Ownership = d.name(fOwnership)
	e.Tier, e.Shared, _ = Medium(e.Medium)
	e.Shared = e.Shared || d.raw.fields[fMooncake] != nil
	if e.Tier == TierDisk && equalFold(e.Locality, "REMOTE") {
		e.Tier = TierRemote // vLLM's STORAGE says where by its locality
	}
	e.Group = d.int(fGroup, maxGroup)
	e.SpecKind = d.name(fSpecKind)
	e.Window = d.int(fWindow, 1<<30)
	if e.Kind == transferred { // read by move, which cannot fail any more
		d.name(fFrom)
		d.name(fTo)
	}
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
	b.hashes = slices.Grow(b.hashes, n)
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
	d.pairs = n > 0 && msgp.NextType(v) == msgp.ArrayType
	b.tokens = slices.Grow(b.tokens, n)
	for b.tokens, v, n = appendIDs(b.tokens, v, n); n > 0; b.tokens, v, n = appendIDs(b.tokens, v, n-1) {
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
