package event

import "strconv"

// maxUnknown bounds the names that one batch can show; maxTag their length.
const maxUnknown = 16

// Unknown is something in a batch that this decoder has never heard of: a newer
// engine says more, or says it otherwise.
type Unknown struct {
	// Name is the tag of an event of another kind ("Ignored"), a key with the
	// event's tag before it ("BlockStored.colour"; "batch.epoch"), or the first
	// slot of an array behind those known ("BlockStored[12]", "batch[3]"). The
	// bytes are the wire's, cut at 64: print them with care.
	Name  string
	Count int
}

// OtherUnknown is the Name under which names beyond the cap are counted.
const OtherUnknown = "(others)"

// unknown counts a name once.
func (d *Decoder) unknown(b *Batch, name []byte) {
	b.unknown(d.names.get(name[:min(len(name), maxTag)]), 1)
}

func (b *Batch) unknown(name string, n int) {
	for i := range b.Unknown {
		if b.Unknown[i].Name == name {
			b.Unknown[i].Count += n
			return
		}
	}
	if len(b.Unknown) >= maxUnknown-1 && name != OtherUnknown {
		b.unknown(OtherUnknown, n)
		return
	}
	b.Unknown = append(b.Unknown, Unknown{name, n})
}

// unknownParts notes what the scanned event holds that is not known.
func (d *Decoder) unknownParts(b *Batch) {
	r := &d.raw
	if r.kind == 0 {
		if len(r.tag) > 0 {
			d.unknown(b, r.tag)
		}
		return
	}
	for _, key := range r.keys[:r.unknown] {
		d.scratch = append(append(append(d.scratch[:0], r.tag...), '.'), key...)
		d.unknown(b, d.scratch)
	}
	if r.moreKeys > 0 {
		b.unknown(OtherUnknown, r.moreKeys)
	}
	if r.newSlot > 0 {
		d.unknown(b, d.slot(r.tag, r.newSlot))
	}
}

// slot writes "of[n]".
func (d *Decoder) slot(of []byte, n int) []byte {
	d.scratch = append(append(d.scratch[:0], of...), '[')
	d.scratch = append(strconv.AppendInt(d.scratch, int64(n), 10), ']')
	return d.scratch
}
