package block

import "math/bits"

// Hasher makes keys. Its constants are secret per process, so that nobody can
// craft prompts whose blocks collide; both sides of a comparison must use the
// same Hasher. It is immutable: any goroutine may use it.
//
// A chunk of 16 tokens costs five multiplications: four fold two 64-bit words
// each, the fifth folds the results. Every lane has a constant of its own, so
// swapped words do not cancel. BenchmarkKey: about 4 ns for 16 tokens.
type Hasher struct {
	lane [8]uint64 // one per 64-bit word of a chunk
	end  [2]uint64 // fold of a chunk
	root [2]uint64 // key of block 0 with its space
	text [3]uint64 // strings of a namespace
	odd  uint64    // odd, so that multiplying is a bijection
}

// NewHasher derives the constants from seed. The caller takes it from a source
// of randomness, once per process.
func NewHasher(seed uint64) *Hasher {
	h := &Hasher{}
	for _, c := range [][]uint64{h.lane[:], h.end[:], h.root[:], h.text[:]} {
		for i := range c {
			c[i] = splitmix(&seed)
		}
	}
	h.odd = splitmix(&seed) | 1
	return h
}

// splitmix is the generator of Steele, Lea and Flood, "Fast splittable
// pseudorandom number generators" (2014): one seed to many unrelated words.
func splitmix(s *uint64) uint64 {
	*s += 0x9E3779B97F4A7C15
	z := *s
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

const chunk = 16 // tokens per step of the hash

// Key is the key of one block, whatever its size. It allocates nothing.
func (h *Hasher) Key(tokens []uint32) Key {
	if len(tokens) == chunk {
		return Key(h.chunk((*[chunk]uint32)(tokens), 0))
	}
	if len(tokens) == 1 {
		// A page of one token: the key is exact, no two tokens share one.
		return Key(uint64(tokens[0]) * h.odd)
	}
	return h.long(tokens)
}

// long chains the chunks of a block. The last one is filled with zeros: blocks
// of different sizes never meet, since the size is part of the space.
func (h *Hasher) long(tokens []uint32) Key {
	var x uint64
	for len(tokens) >= chunk {
		x = h.chunk((*[chunk]uint32)(tokens), x)
		tokens = tokens[chunk:]
	}
	if len(tokens) > 0 {
		var last [chunk]uint32
		copy(last[:], tokens)
		x = h.chunk(&last, x)
	}
	return Key(x)
}

// chunk folds 16 tokens into the state x of the chunks before it.
func (h *Hasher) chunk(t *[chunk]uint32, x uint64) uint64 {
	a := fold(pair(t[0], t[1])^h.lane[0], pair(t[2], t[3])^h.lane[1])
	b := fold(pair(t[4], t[5])^h.lane[2], pair(t[6], t[7])^h.lane[3])
	c := fold(pair(t[8], t[9])^h.lane[4], pair(t[10], t[11])^h.lane[5])
	d := fold(pair(t[12], t[13])^h.lane[6], pair(t[14], t[15])^h.lane[7])
	return fold(a^b^x^h.end[0], c^d^h.end[1])
}

// pair is one 8-byte load on little-endian machines.
func pair(lo, hi uint32) uint64 { return uint64(lo) | uint64(hi)<<32 }

// WithExtra mixes what a block holds besides its tokens into its key.
func (h *Hasher) WithExtra(k Key, e Extra) Key {
	if e == 0 {
		return k
	}
	return Key(fold(uint64(k)^h.end[1], uint64(e)^h.root[1]))
}

// Root is the key under which a prompt's first block hangs at the root: what
// keeps the namespaces apart although they share one trie.
func (h *Hasher) Root(s Space, first Key) Key {
	return Key(fold(uint64(s)^h.root[0], uint64(first)^h.root[1]))
}

// Space is the digest of a namespace.
func (h *Hasher) Space(ns Namespace) Space {
	x := h.string(uint64(ns.Size), ns.Model)
	x = h.string(x, ns.LoRA)
	return Space(h.string(x, ns.Salt))
}

// string folds s and its length into x, so that "a"+"b" and "ab"+"" differ.
func (h *Hasher) string(x uint64, s string) uint64 {
	x = fold(x^h.text[0], uint64(len(s))^h.text[1])
	for ; len(s) > 0; s = s[min(8, len(s)):] {
		x = fold(x^word(s), h.text[2])
	}
	return x
}

// word reads up to eight bytes.
func word[S ~string | ~[]byte](s S) (w uint64) {
	for i := range min(8, len(s)) {
		w |= uint64(s[i]) << (8 * i)
	}
	return w
}
