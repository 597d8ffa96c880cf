package event

// maxPartial bounds the partial blocks that are remembered. A forgotten one is
// removed as an unknown hash, which only a counter shows.
const maxPartial = 1 << 16

type pullBlock struct {
	group int
	hash  uint64
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
