package parity

import "github.com/eppctl/eppctl/internal/core/block"

// gramLen is how many ids in a row make a gram. A single id that differs breaks as
// many of a block's grams: 4 of the 13 that a block of 16 has.
const gramLen = 4

// gramBits is the size of a set. A watched stretch has at most maxTokens grams, which
// set 6 % of it: a block of another text is as likely to have half of its grams in the
// set by chance as 13 draws at 6 % are to hit 7 times, once in a hundred thousand.
const gramBits = 1 << 16

// grams is a set of runs of ids by their hashes, by which a text is known again that
// was cut into other tokens. It has no false negatives, and the ids cannot be had
// back from it: the hasher's constants are secret.
type grams [gramBits / 64]uint64

func (g *grams) add(h *block.Hasher, ids []uint32) {
	for i := 0; i+gramLen <= len(ids); i++ {
		k := gram(h, ids[i:])
		g[k/64] |= 1 << (k % 64)
	}
}

func gram(h *block.Hasher, ids []uint32) uint64 {
	return uint64(h.Key(ids[:gramLen])) >> 32 % gramBits
}

// near reports whether at least half of the grams of ids are in the set. Most blocks
// are of other texts and ruled out by every fourth gram.
func (g *grams) near(h *block.Hasher, ids []uint32) bool {
	return g.half(h, ids, gramLen) && g.half(h, ids, 1)
}

// half looks at the grams that begin at every step-th id.
func (g *grams) half(h *block.Hasher, ids []uint32, step int) bool {
	all, in := 0, 0
	for i := 0; i+gramLen <= len(ids); i += step {
		all++
		if k := gram(h, ids[i:]); g[k/64]>>(k%64)&1 == 1 {
			in++
		}
	}
	return all > 0 && 2*in >= all
}
