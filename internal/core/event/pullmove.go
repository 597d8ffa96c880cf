package event

import "encoding/json/jsontext"

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
