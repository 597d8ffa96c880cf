package block

import "slices"

// Match counts the leading blocks of tokens whose keys equal those given, and
// hashes no block behind the first that differs. When it stops short of
// len(keys), miss is the key of the block that differs. tokens must hold
// len(keys) blocks of size tokens.
//
// This is the inner loop of a lookup; it lives beside the hash so that a block
// costs no call, and lets the processor hash the next blocks while it compares.
func (h *Hasher) Match(keys []Key, tokens []uint32, size int) (n int, miss Key) {
	if size == chunk {
		return h.match16(keys, tokens)
	}
	for i, k := range keys {
		if got := h.Key(tokens[i*size : (i+1)*size]); got != k {
			return i, got
		}
	}
	return len(keys), 0
}

// Keys appends the keys of the blocks of size tokens each.
func (h *Hasher) Keys(dst []Key, tokens []uint32, size int) []Key {
	if size != chunk {
		for ; len(tokens) >= size; tokens = tokens[size:] {
			dst = append(dst, h.Key(tokens[:size]))
		}
		return dst
	}
	n := len(dst)
	dst = slices.Grow(dst, len(tokens)/chunk)[:n+len(tokens)/chunk]
	for i := n; i < len(dst); i++ {
		t := (*[chunk]uint32)(tokens)
		tokens = tokens[chunk:]
		a := fold(pair(t[0], t[1])^h.lane[0], pair(t[2], t[3])^h.lane[1])
		b := fold(pair(t[4], t[5])^h.lane[2], pair(t[6], t[7])^h.lane[3])
		c := fold(pair(t[8], t[9])^h.lane[4], pair(t[10], t[11])^h.lane[5])
		d := fold(pair(t[12], t[13])^h.lane[6], pair(t[14], t[15])^h.lane[7])
		dst[i] = Key(fold(a^b^h.end[0], c^d^h.end[1]))
	}
	return dst
}

func (h *Hasher) match16(keys []Key, tokens []uint32) (int, Key) {
	for i, k := range keys {
		t := (*[chunk]uint32)(tokens)
		tokens = tokens[chunk:]
		a := fold(pair(t[0], t[1])^h.lane[0], pair(t[2], t[3])^h.lane[1])
		b := fold(pair(t[4], t[5])^h.lane[2], pair(t[6], t[7])^h.lane[3])
		c := fold(pair(t[8], t[9])^h.lane[4], pair(t[10], t[11])^h.lane[5])
		d := fold(pair(t[12], t[13])^h.lane[6], pair(t[14], t[15])^h.lane[7])
		if got := Key(fold(a^b^h.end[0], c^d^h.end[1])); got != k {
			return i, got
		}
	}
	return len(keys), 0
}
