package block

import "sort"

// Item is a part of a prompt that is no text: an image, a sound, a video. The ids
// that stand in its place tell nothing of what it shows. So engines mix the item into
// the identity of each block that it touches.
type Item struct {
	// ID is a digest of the engine's name for the item (IdentifyItem), which is a hash
	// of the content, or what the client calls it. The name itself is not kept: it
	// would tell whether somebody asked about a file that one has.
	ID Extra
	// Offset and Length are where the item stands in the prompt, in tokens; Length > 0.
	Offset, Length int
}

// End is the first token behind the item.
func (it *Item) End() int { return it.Offset + it.Length }

// IdentifyItem makes an Item's ID of the engine's name for it.
func IdentifyItem[S ~string | ~[]byte](name S) Extra { return ExtraString(0, name) }

// ExtraItem adds an item to the digest of a block. at is where it begins, in tokens
// from the block's beginning on: below 0 in the blocks that follow. Two places of one
// image in a block are two contents.
func ExtraItem(e, id Extra, at int64) Extra {
	return ExtraInt(notZero(fold(uint64(e)^extraText, uint64(id)^extraInt)), at)
}

// Known is the part of the prompt whose content is known.
func (p *Prompt) Known() []uint32 {
	if p.Cut >= 0 && p.Cut < len(p.Tokens) {
		return p.Tokens[:p.Cut]
	}
	return p.Tokens
}

// Extra digests the items that touch the size tokens from token from on, in their
// order, as vLLM lists them for a block (_gen_mm_extra_hash_keys of
// vllm/v1/core/kv_cache_utils.py, 0.32.0).
func (p *Prompt) Extra(from, size int) (e Extra) {
	first := sort.Search(len(p.Items), func(i int) bool { return p.Items[i].End() > from })
	for _, it := range p.Items[first:] {
		if it.Offset >= from+size {
			break
		}
		e = ExtraItem(e, it.ID, int64(it.Offset-from))
	}
	return e
}

// PromptKeys appends the keys of the known blocks of size tokens each, with what
// they hold besides tokens.
func (h *Hasher) PromptKeys(dst []Key, p *Prompt, size int) []Key {
	from := len(dst)
	dst = h.Keys(dst, p.Known(), size)
	keys := dst[from:]
	next := 0 // the blocks before it are mixed
	for i := range p.Items {
		it := &p.Items[i]
		last := min((it.End()-1)/size, len(keys)-1)
		for next = max(next, it.Offset/size); next <= last; next++ {
			keys[next] = h.WithExtra(keys[next], p.Extra(next*size, size))
		}
	}
	return dst
}
