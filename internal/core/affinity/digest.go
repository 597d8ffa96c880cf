package affinity

import (
	"hash/maphash"
	"math/bits"
)

// ChunkBytes is the grain of comparison: about 128 tokens of English. A finer one
// would find shorter prefixes, which save little prefill (128 tokens are 8 ms at
// 16,000 tokens a second), for more entries per prompt.
const ChunkBytes = 512

// maxChunks bounds the keys of one prompt: 1 MiB, more than most engines take.
// What stands behind is not compared.
const maxChunks = 2048

// Key stands for a chunk and all that precedes it in its namespace. It has a
// meaning in the table whose Digest made it, and nowhere else.
type Key uint64

// Namespace keeps equal bytes apart whose caches are apart.
type Namespace struct{ Model, LoRA, Salt string }

// Digest turns the bytes of a prompt, written piece by piece, into keys. It is
// used by one goroutine.
type Digest struct {
	seed  maphash.Seed
	chain uint64
	rest  [ChunkBytes]byte // the begun chunk
	begun int
	keys  []Key
	bytes int
}

// Digest begins a prompt. The keys are secret per table: nobody can craft prompts
// that are taken for each other.
func (t *Table) Digest(ns Namespace) *Digest {
	d := &Digest{seed: t.seed}
	for _, s := range []string{ns.Model, ns.LoRA, ns.Salt} {
		d.fold(maphash.String(t.seed, s))
	}
	return d
}

// Write adds bytes. How they are cut into calls makes no difference.
func (d *Digest) Write(b []byte) {
	d.bytes += len(b)
	if d.begun > 0 {
		n := copy(d.rest[d.begun:], b)
		d.begun += n
		b = b[n:]
		if d.begun < ChunkBytes {
			return
		}
		d.chunk(d.rest[:])
		d.begun = 0
	}
	for ; len(b) >= ChunkBytes; b = b[ChunkBytes:] {
		d.chunk(b[:ChunkBytes])
	}
	d.begun = copy(d.rest[:], b)
}

// Prefix is what was written.
func (d *Digest) Prefix() Prefix { return Prefix{Keys: d.keys, Bytes: d.bytes} }

// Prefix is a prompt as the table compares it. It holds no text.
type Prefix struct {
	Keys  []Key // of its whole chunks, at most maxChunks of them
	Bytes int   // of the prompt in all
}

func (d *Digest) chunk(b []byte) {
	if len(d.keys) == maxChunks {
		return
	}
	d.fold(maphash.Bytes(d.seed, b))
	d.keys = append(d.keys, Key(d.chain))
}

// fold chains a digest to those before it. Added after the product, so that no
// operand that is zero wipes out the chain.
func (d *Digest) fold(x uint64) {
	hi, lo := bits.Mul64(d.chain^0x9E3779B97F4A7C15, x^0xBF58476D1CE4E5B9)
	d.chain = hi ^ lo + x
}
