package bpe

// bigrams are the pairs of bytes that stand side by side inside some entry. Where two
// bytes of a piece are not among them, no merge can cross: its product, which is an
// entry, would hold the two. So the sides are encoded apart (see chars.go, Cut). A
// long piece of letters that make no words comes to short ones that way, for which
// time grows with their number and no longer with its logarithm, nor with what of a
// long heap is not in the processor's caches.
//
// Where pieces start as characters the same holds, and a cut never splits one that is
// an entry, whose own bytes are side by side in it.
type bigrams [1 << 16 / 64]uint64

func newBigrams(v *Vocab) *bigrams {
	g := &bigrams{}
	for id := range uint32(v.Len()) {
		b := v.Bytes(id)
		for i := 1; i < len(b); i++ {
			k := uint(b[i-1])<<8 | uint(b[i])
			g[k>>6] |= 1 << (k & 63)
		}
	}
	return g
}

func (g *bigrams) has(a, b byte) bool {
	k := uint(a)<<8 | uint(b)
	return g[k>>6]>>(k&63)&1 != 0
}

// mergeLong encodes a piece of more than shortMerge bytes.
func (m *Model) mergeLong(w []byte, sc *Scratch, out []uint32) []uint32 {
	from := 0
	for i := 1; i < len(w); i++ {
		if !m.inside.has(w[i-1], w[i]) {
			if sc.ended() {
				return out
			}
			out = m.mergeStretch(w[from:i], sc, out)
			from = i
		}
	}
	return m.mergeStretch(w[from:], sc, out)
}
