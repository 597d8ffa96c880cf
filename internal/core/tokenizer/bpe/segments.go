package bpe

import (
	"encoding/binary"
	"math/bits"
)

// batch is up to 64 start symbols of a piece.
type batch struct {
	symbol [batchSize]uint32
	char   [batchSize]uint32 // noChar for a byte
	at     [batchSize]int32  // place in the piece
	code   [batchSize]uint32 // of the pair with the next symbol, where they may join
}

const (
	batchSize = 64
	lastIndex = batchSize - 1
)

// segments encodes a piece that is not all ASCII, in batches of three passes: read
// the characters and test their borders with the filter, which needs nothing of what
// is before it; look up the pairs that the filter lets through; merge what lies
// between cuts.
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
		for k := 0; k < n; {
			e := min(n, k+1+bits.TrailingZeros64(^(joined>>(k+1))))
			switch {
			case e-k == 1:
				out = append(out, m.sym.id(b.symbol[k&lastIndex]))
			case e-k == 2 && b.code[k&lastIndex] == None:
				out = append(out, m.sym.id(b.symbol[k&lastIndex]), m.sym.id(b.symbol[(k+1)&lastIndex]))
			case e-k == 2:
				out = append(out, m.sym.id(m.sym.product(b.code[k&lastIndex], b.symbol[k&lastIndex], b.symbol[(k+1)&lastIndex])))
			default:
				to := i
				if e < n {
					to = int(b.at[e])
				}
				out = m.segment(w, int(b.at[k]), to, b.symbol[k:e], b.code[k:e], low>>k&(1<<(e-k)-1) != 0, sc, out)
			}
			k = e
		}
	}
	return out
}

// segment encodes w[from:to], of which the symbols and the codes of their pairs are
// known; low tells whether one is ASCII or a byte. Merging bytes takes many steps, and
// what stands between two cuts often stood there before, so that the cache of words has
// it. Whole characters take one step or two, each no dearer than to look here.
func (m *Model) segment(w []byte, from, to int, ids, codes []uint32, low bool, sc *Scratch, out []uint32) []uint32 {
	if len(ids) > shortMerge {
		return m.merge(w[from:to], sc, out)
	}
	if to-from > keyBytes || from+16 > cap(w) || !low {
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

func (m *Model) mergeSegment(ids, codes []uint32, low bool) int {
	if low || m.whole {
		return m.mergeShort(ids, codes, len(ids))
	}
	return m.mergeIdeograms(ids, codes, len(ids))
}

// read fills the batch from w[i] on. Bit k of joined is set if symbol k may join the
// one before it, bit k of low if it is ASCII or a byte.
func (m *Model) read(w []byte, i int, b *batch) (n, next int, joined, low uint64) {
	c := &m.chars
	info := c.info[:plane]
	r := reader{before: noChar, last: noChar}
	if i > 0 {
		r.near = 1
	}
	for i < len(w) && n <= batchSize-4 {
		if w[i]&0xF0 == 0xE0 && i+5 <= len(w) {
			v := binary.LittleEndian.Uint32(w[i:])
			char := v&0x0F<<12 | v>>2&0x0FC0 | v>>16&0x3F
			x := info[char&(plane-1)]
			near := c.fragments.near[v>>10&0x0FC0|v>>24&63] >> (w[i+4] & 63) & 1
			risk := uint64(x>>headBit)&r.near | uint64(x>>tailBit)&near
			if x&isAtom != 0 && risk == 0 && r.before < noChar {
				joined |= c.neighbors.may(charPair(r.before, char)) << (n & lastIndex)
				b.symbol[n&lastIndex], b.char[n&lastIndex], b.at[n&lastIndex] = x&symbolMask, char, int32(i)
				r.before, r.last, r.near = char, char, near
				n++
				i += 3
				continue
			}
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
	before uint32 // the character before it if that starts whole, else noChar
	last   uint32 // the character before it if that is known, else noChar
	near   uint64 // 1: a fragment may lie across (see fragments)
	cut    bool   // it is a cut, whatever follows
}

// readAny reads a character of any kind. It is read's slow way.
func (m *Model) readAny(w []byte, i, n int, b *batch, r *reader) (_, next int, joined, low uint64) {
	c := &m.chars
	char, x, size := uint32(noChar), uint32(0), 1
	switch b0 := w[i]; {
	case b0 >= 0xE0 && b0 < 0xF0 && i+2 < len(w):
		char, size = uint32(b0&0x0F)<<12|uint32(w[i+1]&0x3F)<<6|uint32(w[i+2]&0x3F), 3
		x = c.info[char]
	case b0 < 0x80:
		char, x = uint32(b0), isAtom|m.sym.bytes[b0]
		low = 1 << (n & lastIndex)
	case b0 < 0xE0 && i+1 < len(w):
		char, size = uint32(b0&0x1F)<<6|uint32(w[i+1]&0x3F), 2
		x = c.info[char]
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
	may := uint64(1)
	switch {
	case r.cut:
		may = 0
	case atom && r.before < noChar && char < noChar && char|r.before >= 0x80:
		may = c.neighbors.may(charPair(r.before, char))
	case i > 0 && (!atom || r.before == noChar) && !m.whole && c.parted(w, i, r.last, char):
		may = 0
	}
	joined = may << (n & lastIndex)
	r.last, r.cut = char, !atom && c.endsWithBlank(w, i, j, x)
	if atom {
		b.symbol[n&lastIndex], b.char[n&lastIndex], b.at[n&lastIndex] = x&symbolMask, char, int32(i)
		r.before = char
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

// join looks up the pairs that may join and returns those that do.
func (m *Model) join(b *batch, joined uint64) uint64 {
	for rest := joined; rest != 0; rest &= rest - 1 {
		k := bits.TrailingZeros64(rest)
		l := (k - 1) & lastIndex
		left, right := b.char[l], b.char[k]
		if left|right >= noChar || left|right < 0x80 {
			b.code[l] = m.pairs.code(b.symbol[l], b.symbol[k])
			continue
		}
		code, ok := m.chars.neighbors.find(charPair(left, right))
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
