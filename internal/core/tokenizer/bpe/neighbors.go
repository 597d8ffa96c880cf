package bpe

import (
	"math/bits"
	"slices"
	"unicode/utf8"
)

// character is what is known of a character, in a quarter of a cache line.
type character struct {
	info uint32 // see chars.go
	row  uint32 // where its row starts << rowBits | logarithm of the row's length
	// followers has a bit for each character that stands behind this one in an entry, by
	// its hash. It says no to most pairs, and was read with the character itself.
	followers uint64
}

const rowBits = 5

// neighbors are the pairs of characters, not both ASCII, that stand side by side in some
// entry, with the code of the merge of the two: a row for each left one, so that the
// rows of frequent characters stay in the processor's caches, where a table of all pairs
// came from memory. Chinese took 4 to 23 % less than with one (see docs/tokenizer.md).
type neighbors []neighbor

// neighbor is a right one, in six bytes: those of DeepSeek-V3 take 260 kB, and with
// slots of eight bytes of which half are free took twice that, and 1 to 3 % longer.
type neighbor struct{ char, low, high uint16 }

// What a neighbor says of the merge of the two.
const (
	noNeighbor  = iota // the slot is free
	neverMerges        // some entry holds the pair, but their entries do not merge
	mergesBy           // plus the code
)

func newNeighbor(char, code uint32) neighbor {
	v := code + mergesBy
	if code == None {
		v = neverMerges
	}
	return neighbor{uint16(char), uint16(v), uint16(v >> 16)}
}

func (n *neighbor) value() uint32 { return uint32(n.high)<<16 | uint32(n.low) }

func neighborHash(char uint32) uint32 { return char * 0x9E3779B1 } // golden, of 32 bits

// follows reports whether a character may stand behind that of followers.
func follows(followers uint64, char uint32) uint64 {
	return followers >> (neighborHash(char) >> 26) & 1
}

// find returns the code of the merge of the character of a row with the next one, None
// if the two do not merge, and whether some entry holds the pair.
func (n neighbors) find(row, next uint32) (code uint32, ok bool) {
	slots := n[row>>rowBits:]
	mask := uint32(1)<<(row&(1<<rowBits-1)) - 1
	for h, tries := neighborHash(next)>>8, mask; ; h, tries = h+1, tries-1 {
		e := &slots[h&mask]
		v := e.value()
		switch {
		case v == noNeighbor:
			return None, false
		case uint32(e.char) != next:
			if tries == 0 { // a row may be full
				return None, false
			}
		case v == neverMerges:
			return None, true
		default:
			return v - mergesBy, true
		}
	}
}

// paired reports whether some entry holds two characters side by side.
func (c *charTable) paired(a, b uint32) bool {
	x := &c.of[a]
	if follows(x.followers, b) == 0 {
		return false
	}
	_, ok := c.neighbors.find(x.row, b)
	return ok
}

// joins builds the rows.
func (c *charTable) joins(m *Model, v *Vocab) {
	list := adjacent(v)
	size := 0
	for _, row := range list {
		size += 1 << rowSize(len(row))
	}
	c.neighbors = makeHuge[neighbor](max(size, 1))
	at := uint32(0)
	for _, row := range list {
		left := row[0] >> 16
		x := &c.of[left]
		x.row = at<<rowBits | uint32(rowSize(len(row)))
		symbol, whole := c.start(m, left)
		slots := c.neighbors[at:][:1<<rowSize(len(row))]
		for _, pair := range row {
			next := pair & 0xFFFF
			code := None
			if right, ok := c.start(m, next); ok && whole {
				code = m.pairs.code(symbol, right)
			}
			x.followers |= 1 << (neighborHash(next) >> 26)
			insert(slots, uint64(neighborHash(next)>>8), newNeighbor(next, code), func(e *neighbor) bool { return e.value() == noNeighbor })
		}
		at += uint32(len(slots))
	}
}

// rowSize is the logarithm of the length of a row of n pairs. A short one, of which a
// cache line or two hold all, may be full; of a longer one a quarter is free.
func rowSize(n int) int {
	if n > 16 {
		n += n / 3
	}
	return bits.Len(uint(n - 1))
}

// adjacent returns the pairs of characters, not both ASCII, that stand side by side in
// some entry, left << 16 | right, in a row for each left one.
func adjacent(v *Vocab) (rows [][]uint32) {
	var list []uint32
	for id := range v.Len() {
		b := v.Bytes(uint32(id))
		if isASCII(b) {
			continue
		}
		before := rune(-1)
		for i := 0; i < len(b); {
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 || r >= plane {
				r = -1
			}
			if before >= 0 && r >= 0 && before|r >= utf8.RuneSelf {
				list = append(list, uint32(before)<<16|uint32(r))
			}
			before = r
			i += n
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	return slices.Collect(func(yield func([]uint32) bool) {
		for len(list) > 0 {
			n := 1
			for n < len(list) && list[n]>>16 == list[0]>>16 {
				n++
			}
			if !yield(list[:n]) {
				return
			}
			list = list[n:]
		}
	})
}
