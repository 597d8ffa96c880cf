package bpe

import (
	"math/bits"
	"unicode/utf8"
)

// batch is up to 64 start symbols of a piece.
type batch struct {
	symbol [batchSize]uint32
	char   [batchSize]uint32 // noChar for a byte
	at     [batchSize]int32  // place in the piece
	first  [batchSize]neighbor
	code   [batchSize]uint32 // of the pair with the next symbol, where they may join
}

const (
	// unasked is the code of a pair that is asked for when its segment is merged, as
	// those of bytes are: most of these segments the cache of words knows.
	unasked = None - 1

	batchSize = 64
	lastIndex = batchSize - 1
)

// segments encodes a piece that is not all ASCII, in batches of three passes: read
// the characters and test their borders with the filter, which needs nothing of what
// is before it; look up the pairs that the filter lets through; emit the ids of what
// lies between cuts.
func (m *Model) segments(w []byte, sc *Scratch, out []uint32) []uint32 {
	b := &sc.batch
	for i := 0; i < len(w) && !sc.ended(); {
		start := i
		n, next, joined, low := m.read(w, i, b)
		joined = m.join(b, joined)
		i = next
		if i < len(w) { // the last segment may go on
			n = bits.Len64(^joined&(1<<n-1)) - 1
			if n <= 0 {
				return m.merge(w[start:], sc, out)
			}
			i = int(b.at[n&lastIndex])
		}
		out = m.emit(w, i, n, joined, low, sc, out)
	}
	return out
}

// emit appends the ids of the first n symbols of the batch, which end at w[end]. Most
// segments have one symbol or two that merge. Which of them is no branch, since it would
// be guessed wrong as often as not.
func (m *Model) emit(w []byte, end, n int, joined, low uint64, sc *Scratch, out []uint32) []uint32 {
	b := &sc.batch
	for k := 0; k < n; {
		rest := joined >> (k + 1)
		pair := -uint32(rest & 1)
		code := b.code[k&lastIndex] & pair
		if rest&3 != 3 && code < unasked && (m.sym.direct || pair == 0) {
			out = append(out, m.sym.id(code>>subBits|b.symbol[k&lastIndex]&^pair))
			k += 1 + int(rest&1)
			continue
		}
		if rest&7 == 3 && low>>k&7 == 0 && m.sym.direct && !m.whole {
			out = m.three(b.symbol[k&lastIndex], b.symbol[(k+1)&lastIndex], b.symbol[(k+2)&lastIndex], code, b.code[(k+1)&lastIndex], out)
			k += 3
			continue
		}
		e, to := k+1+bits.TrailingZeros64(^rest), end
		if e < n {
			to = int(b.at[e])
		}
		out = m.segment(w, int(b.at[k]), to, b.symbol[k:e], b.code[k:e], low>>k&(1<<(e-k)-1) != 0, sc, out)
		k = e
	}
	return out
}

// three appends the ids of three ideographs, given the codes of their two pairs. It is
// mergeIdeograms without a branch on which of the two comes first.
func (m *Model) three(s0, s1, s2, code0, code1 uint32, out []uint32) []uint32 {
	if code0 >= unasked && code1 >= unasked {
		return append(out, m.sym.id(s0), m.sym.id(s1), m.sym.id(s2))
	}
	right := -uint32((uint64(code1) - uint64(code0)) >> 63)
	left, next := code0>>subBits, s2
	left ^= (left ^ s0) & right
	next ^= (next ^ code1>>subBits) & right
	if code := m.chars.ideograms.code(pairKey(left, next)); code != None {
		return append(out, m.sym.id(code>>subBits))
	}
	return append(out, m.sym.id(left), m.sym.id(next))
}

// segment encodes w[from:to], of which the symbols and the codes of their pairs are
// known, but for those unasked; low tells whether one is ASCII or a byte. Merging bytes
// takes many steps, and what stands between two cuts often stood there before, so that
// the cache of words has it. Whole characters take one step or two, each no dearer than
// to look here.
func (m *Model) segment(w []byte, from, to int, ids, codes []uint32, low bool, sc *Scratch, out []uint32) []uint32 {
	if len(ids) > shortMerge {
		return m.merge(w[from:to], sc, out)
	}
	if len(ids) < 3 || to-from > keyBytes || from+16 > cap(w) || !low {
		return m.appendIDs(out, ids[:m.mergeSegment(ids, codes, low)])
	}
	k := keyAt(w[:from+16], from, to-from)
	k.hi |= segmentBit
	h := k.hash()
	if c := sc.words.find(k, h); c != nil {
		return c.append(out)
	}
	at := len(out)
	out = m.appendIDs(out, ids[:m.mergeSegment(ids, codes, low)])
	if len(out)-at <= cachedIDs { // the cache of runs has whole pieces only
		sc.words.put(k, h, out[at:])
	}
	return out
}

// mergeSegment merges the symbols in place and returns how many are left.
func (m *Model) mergeSegment(ids, codes []uint32, low bool) int {
	if low || m.whole {
		for i, c := range codes[:len(codes)-1] {
			if c == unasked {
				codes[i] = m.pairs.code(ids[i], ids[i+1])
			}
		}
		return m.mergeShort(ids, codes, len(ids), 1)
	}
	return m.mergeIdeograms(ids, codes, len(ids))
}

// read fills the batch from w[i] on. Bit k of joined is set if symbol k may join the
// one before it, bit k of low if it is ASCII or a byte. Characters of three bytes and
// ASCII that no fragment threatens, nine of ten in Chinese, are read here: those behind
// one that starts whole, and the first of a batch, to which nothing joins.
func (m *Model) read(w []byte, i int, b *batch) (n, next int, joined, low uint64) {
	c := &m.chars
	of := (*[plane]character)(c.of)
	r := reader{before: noChar, last: noChar}
	if i > 0 {
		r.near = 1
	}
	for i < len(w) && n <= batchSize-4 {
		b0 := w[i]
		fast := r.before < noChar || n == 0
		switch {
		case fast && b0&0xF0 == 0xE0 && (i+5 <= len(w) || i+3 == len(w)):
			char := uint32(b0&0x0F)<<12 | uint32(w[i+1]&0x3F)<<6 | uint32(w[i+2]&0x3F)
			known := &of[char&(plane-1)]
			x, near := known.info, uint64(0)
			if i+5 <= len(w) {
				near = c.fragments.near[borderKey(w[i+2], w[i+3])] >> (w[i+4] & 63) & 1
			}
			if risk := uint64(x>>headBit)&r.near | uint64(x>>tailBit)&near; x&isAtom == 0 || risk&1 != 0 {
				break
			}
			joined |= follows(r.followers, char) << (n & lastIndex)
			b.symbol[n&lastIndex], b.char[n&lastIndex], b.at[n&lastIndex] = x&symbolMask, char, int32(i)
			r.before, r.last, r.near, r.followers = char, char, near, known.followers
			n++
			i += 3
			continue
		case fast && b0 < utf8.RuneSelf && i+3 <= len(w):
			char, join := uint32(b0), uint64(1)
			if r.before >= utf8.RuneSelf {
				join = follows(r.followers, char)
			}
			joined |= join << (n & lastIndex)
			low |= 1 << (n & lastIndex)
			b.symbol[n&lastIndex], b.char[n&lastIndex], b.at[n&lastIndex] = m.sym.bytes[b0], char, int32(i)
			r.before, r.last, r.followers = char, char, of[char].followers
			r.near = c.fragments.near[borderKey(b0, w[i+1])] >> (w[i+2] & 63) & 1
			n++
			i++
			continue
		}
		var more, bytes uint64
		n, i, more, bytes = m.readAny(w, i, n, b, &r)
		joined |= more
		low |= bytes
	}
	return n, i, joined &^ 1, low
}

// reader is what read knows of the border before the next character.
type reader struct {
	before    uint32 // the character before it if that starts whole, else noChar
	last      uint32 // the character before it if that is known, else noChar
	near      uint64 // 1: a fragment may lie across (see fragments)
	followers uint64 // of before
	cut       bool   // it is a cut, whatever follows
}

// readAny reads a character of any kind. It is read's slow way.
func (m *Model) readAny(w []byte, i, n int, b *batch, r *reader) (_, next int, joined, low uint64) {
	c := &m.chars
	char, x, size := uint32(noChar), uint32(0), 1
	switch b0 := w[i]; {
	case b0 >= 0xE0 && b0 < 0xF0 && i+2 < len(w):
		char, size = uint32(b0&0x0F)<<12|uint32(w[i+1]&0x3F)<<6|uint32(w[i+2]&0x3F), 3
		x = c.of[char].info
	case b0 < 0x80:
		char, x = uint32(b0), isAtom|m.sym.bytes[b0]
		low = 1 << (n & lastIndex)
	case b0 < 0xE0 && i+1 < len(w):
		char, size = uint32(b0&0x1F)<<6|uint32(w[i+1]&0x3F), 2
		x = c.of[char].info
	default:
		size = min(4, len(w)-i)
		x = m.rareChar(w[i : i+size])
	}
	j := i + size
	atom := x&isAtom != 0 && !(r.near != 0 && x&headAtRisk != 0 && c.breaksHead(w, i, x))
	r.near = 0
	if j+1 >= len(w) || c.fragments.near[borderKey(w[j-1], w[j])]>>(w[j+1]&63)&1 != 0 {
		r.near = 1
	}
	if atom && r.near != 0 && x&tailAtRisk != 0 && j < len(w) {
		atom = !c.fragments.breaks(w, j, false, c.formed[x&symbolMask])
	}
	join := uint64(1)
	switch {
	case r.cut:
		join = 0
	case atom && r.before < noChar && char < noChar && char|r.before >= 0x80:
		join = follows(r.followers, char)
	case i > 0 && (!atom || r.before == noChar) && !m.whole && c.parted(w, i, r.last, char):
		join = 0
	}
	joined = join << (n & lastIndex)
	r.last, r.cut = char, !atom && c.endsWithBlank(w, i, j, x)
	if atom {
		b.symbol[n&lastIndex], b.char[n&lastIndex], b.at[n&lastIndex] = x&symbolMask, char, int32(i)
		r.before = char
		if char < noChar {
			r.followers = c.of[char].followers
		}
		return n + 1, j, joined, low
	}
	for q := i; q < j; q++ {
		b.symbol[n&lastIndex], b.char[n&lastIndex], b.at[n&lastIndex] = m.sym.bytes[w[q]], noChar, int32(q)
		low |= 1 << (n & lastIndex)
		if q > i {
			joined |= 1 << (n & lastIndex)
		}
		n++
	}
	r.before = noChar
	return n, j, joined, low
}

// breaksHead reports whether a fragment that ends inside the character at w[i], whose
// info is x, can form before it.
func (c *charTable) breaksHead(w []byte, i int, x uint32) bool {
	if behindBlank(w, i) {
		return x&blankKeeps == 0
	}
	return c.fragments.breaks(w, i, true, c.formed[x&symbolMask])
}

// rareChar is info of a character beyond the table.
func (m *Model) rareChar(b []byte) uint32 {
	if !m.whole || len(b) < 4 {
		return 0
	}
	r := rune(b[0]&7)<<18 | rune(b[1]&63)<<12 | rune(b[2]&63)<<6 | rune(b[3]&63)
	if s, ok := m.chars.rare[r]; ok {
		return isAtom | s
	}
	return 0
}

// join looks up the pairs that may join and returns those that do. The first slots of all
// are read before any is looked at, since no branch depends on what they hold.
func (m *Model) join(b *batch, joined uint64) uint64 {
	c := &m.chars
	known := uint64(0)
	for rest := joined; rest != 0; rest &= rest - 1 {
		k := bits.TrailingZeros64(rest)
		l := (k - 1) & lastIndex
		left, right := b.char[l], b.char[k]
		b.code[l] = unasked
		if left|right < noChar && left|right >= 0x80 {
			b.first[k&lastIndex] = *c.neighbors.first(c.of[left].row, right)
			known |= 1 << k
		}
	}
	for ; known != 0; known &= known - 1 {
		k := bits.TrailingZeros64(known)
		l := (k - 1) & lastIndex
		e, right := &b.first[k&lastIndex], b.char[k]
		v := e.value()
		if uint32(e.char) == right && v >= mergesBy {
			b.code[l] = v - mergesBy
			continue
		}
		code, ok := None, false
		if v != noNeighbor {
			code, ok = c.neighbors.find(c.of[b.char[l]].row, right)
		}
		b.code[l] = code
		if !ok {
			joined &^= 1 << k
		}
	}
	return joined
}

// mergeIdeograms is mergeShort of whole characters that are not ASCII.
func (m *Model) mergeIdeograms(ids, codes []uint32, n int) int {
	for n > 1 {
		best, at := codes[0], 0
		for i, c := range codes[1 : n-1] {
			if c < best {
				best, at = c, i+1
			}
		}
		if best == None {
			break
		}
		ids[at] = m.sym.product(best, ids[at], ids[at+1])
		for i := at + 1; i < n-1; i++ {
			ids[i] = ids[i+1]
			codes[i-1] = codes[i]
		}
		n--
		if at < n-1 {
			codes[at] = m.chars.ideograms.code(pairKey(ids[at], ids[at+1]))
		}
		if at > 0 {
			codes[at-1] = m.chars.ideograms.code(pairKey(ids[at-1], ids[at]))
		}
	}
	return n
}
