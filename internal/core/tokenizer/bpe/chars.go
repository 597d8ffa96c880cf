package bpe

import (
	"math/bits"
	"unicode/utf8"
)

// Pieces that are not ASCII are encoded from whole characters and cut inside. Both
// hold for every BPE whose merges have one order, with ties to the left.
//
// Cut: where no entry that occurs in the piece covers a position from both sides, no
// merge can cross it, since its product would be such an entry. The sides are encoded
// apart.
//
// Atom: a character may start as one symbol, though the vocabulary starts from bytes,
// if (1) its bytes alone encode to one entry; let m be the highest code of the merges
// on the way; (2) every merge with that entry as a part ranks after m; (3) where it
// stands, every entry that covers a part of it and a byte next to it, a fragment,
// comes only from merges that rank after m. For as long as the character is not whole
// a merge inside it of rank m or below is due, so no fragment forms and no merge of
// (2) comes first; when it is whole the symbols are the same as if it had been so
// from the start, and all other merges have kept their order.
//
// Between two atoms only an entry that holds the two whole characters side by side
// can join them, as fragments cannot form any more.

// Flags in character.info, above the symbol.
const (
	isAtom      = 1 << (symbolBits + iota)
	headAtRisk  // a fragment that ends inside the character may form before it
	tailAtRisk  // one that starts inside it may
	blankKeeps  // behind a blank the character comes to be (see apart.go)
	blankBreaks // behind a blank it does not

	headBit    = symbolBits + 1
	tailBit    = symbolBits + 2
	symbolMask = 1<<symbolBits - 1
	plane      = 1 << 16 // characters from here on have no place in charTable.of
	noChar     = plane   // in batch.char
)

type charTable struct {
	of        []character     // by character below plane
	rare      map[rune]uint32 // symbols of the others, where pieces start as characters
	formed    []uint32        // by symbol: m of an atom
	fragments fragments
	neighbors neighbors
	ideograms mergeTable // merges of two entries of whole characters that are not ASCII
}

// symbol returns the entry of a character, where pieces start as characters.
func (c *charTable) symbol(m *Model, r rune) (uint32, bool) {
	if r < plane {
		x := c.of[r].info
		return x & symbolMask, x&isAtom != 0
	}
	s, ok := c.rare[r]
	return s, ok
}

// wholeChars fills the table of a model whose pieces start as characters: every
// entry of one character is an atom, and nothing can break it.
func (c *charTable) wholeChars(m *Model, v *Vocab) {
	c.of = makeHuge[character](plane)
	c.rare = map[rune]uint32{}
	c.formed = make([]uint32, len(m.sym.token))
	for symbol, id := range m.sym.token {
		b := v.Bytes(id)
		r, n := utf8.DecodeRune(b)
		switch {
		case n != len(b) || n == 0 || r == utf8.RuneError && n == 1:
		case r < plane:
			c.of[r].info = isAtom | uint32(symbol)
		default:
			c.rare[r] = uint32(symbol)
		}
	}
}

// atoms finds the characters of which (1) and (2) hold, and for (3) the fragments
// that can harm one.
func (c *charTable) atoms(m *Model, v *Vocab, merges []coded, sc *Scratch) {
	c.of = makeHuge[character](plane)
	c.formed = make([]uint32, len(m.sym.token))
	asPart, asProduct := make([]uint32, len(m.sym.token)), make([]uint32, len(m.sym.token))
	for i := range asPart {
		asPart[i], asProduct[i] = None, None
	}
	for _, x := range merges {
		asPart[x.left] = min(asPart[x.left], x.code)
		asPart[x.right] = min(asPart[x.right], x.code)
		asProduct[x.product] = min(asProduct[x.product], x.code)
	}
	var all []fragment
	for symbol, id := range m.sym.token {
		b := v.Bytes(id)
		if isASCII(b) {
			continue
		}
		if asProduct[symbol] != None {
			all = appendFragments(all, b, asProduct[symbol])
		}
		if r, n := utf8.DecodeRune(b); n == len(b) && n > 1 && r < plane {
			if last, ok := m.formation(b, uint32(symbol), sc); ok && asPart[symbol] > last {
				c.of[r].info = isAtom | uint32(symbol)
				c.formed[symbol] = last
			}
		}
	}
	c.fragments.build(c, all)
	c.blanks(m, v, sc)
	c.ideograms.build(m, v, merges)
}

// formation merges the bytes of a character and returns the highest code on the way
// to the symbol.
func (m *Model) formation(b []byte, symbol uint32, sc *Scratch) (highest uint32, ok bool) {
	ids := sc.ids[:0]
	for _, x := range b {
		ids = append(ids, m.sym.bytes[x])
	}
	for len(ids) > 1 {
		best, at := None, 0
		for i := range ids[1:] {
			if c := m.pairs.code(ids[i], ids[i+1]); c < best {
				best, at = c, i
			}
		}
		if best == None {
			return 0, false
		}
		highest = max(highest, best)
		ids[at] = m.sym.product(best, ids[at], ids[at+1])
		ids = append(ids[:at+1], ids[at+2:]...)
	}
	return highest, ids[0] == symbol
}

func isASCII(b []byte) bool {
	for _, x := range b {
		if x >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// start is the symbol that a character starts as if it is whole.
func (c *charTable) start(m *Model, r uint32) (uint32, bool) {
	if r < utf8.RuneSelf {
		return m.sym.bytes[r], true
	}
	return c.of[r].info & symbolMask, c.of[r].info&isAtom != 0
}

// mergeTable is a pairTable of few merges, so that the cache holds it, or at least the
// filter that says no to most pairs: sixteen bits to a merge, one set.
type mergeTable struct {
	filter []uint64
	slots  []uint64
	shift  uint
}

func (t *mergeTable) build(m *Model, v *Vocab, merges []coded) {
	ideograms := make([]bool, len(m.sym.token))
	for symbol, id := range m.sym.token {
		b := v.Bytes(id)
		ideograms[symbol] = utf8.Valid(b) && bytesAbove(b)
	}
	n := 0
	for _, x := range merges {
		if ideograms[x.left] && ideograms[x.right] {
			n++
		}
	}
	t.slots = makeHuge[uint64](1 << bits.Len(uint(2*n)))
	t.shift = uint(64 - bits.Len(uint(len(t.slots)-1)))
	t.filter = make([]uint64, max(1, len(t.slots)*8/64))
	for _, x := range merges {
		k := pairKey(x.left, x.right)
		if ideograms[x.left] && ideograms[x.right] && t.code(k) == None {
			word, bit := t.bit(k)
			t.filter[word] |= 1 << bit
			insert(t.slots, mix(k)>>t.shift, (k+1)<<codeBits|uint64(x.code), func(e *uint64) bool { return *e == 0 })
		}
	}
}

func bytesAbove(b []byte) bool {
	for _, x := range b {
		if x < utf8.RuneSelf {
			return false
		}
	}
	return len(b) > 0
}

// bit is the place of a pair in the filter.
func (t *mergeTable) bit(k uint64) (word int, bit uint64) {
	h := mix(k)
	return int(h >> t.shift >> 3), h & 63
}

func (t *mergeTable) code(k uint64) uint32 {
	if word, bit := t.bit(k); t.filter[word]>>bit&1 == 0 {
		return None
	}
	for h := mix(k) >> t.shift; ; h++ {
		e := t.slots[h&uint64(len(t.slots)-1)]
		switch {
		case e == 0:
			return None
		case e>>codeBits == k+1:
			return uint32(e & (1<<codeBits - 1))
		}
	}
}
