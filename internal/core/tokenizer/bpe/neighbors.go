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

const (
	rowBits  = 5
	joinBits = codeBits + 1
)

// neighbors are the pairs of characters, not both ASCII, that stand side by side in some
// entry, with the code of the merge of the two: a row for each left one, so that the
// rows of frequent characters stay in the processor's caches, where a table of all pairs
// came from memory. Chinese took 4 to 23 % less than with one (see docs/tokenizer.md).
//
// A slot is (right+1) << joinBits | code+1; free ones are zero.
type neighbors []uint64

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
		e := slots[h&mask]
		if e>>joinBits == uint64(next)+1 {
			return uint32(e&(1<<joinBits-1)) - 1, true
		}
		if e == 0 || tries == 0 { // a row may be full
			return None, false
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
	c.neighbors = makeHuge[uint64](max(size, 1))
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
			insert(slots, uint64(neighborHash(next)>>8), (uint64(next)+1)<<joinBits|uint64(code+1)&(1<<joinBits-1), func(e *uint64) bool { return *e == 0 })
		}
		at += uint32(len(slots))
	}
}

// rowSize is the logarithm of the length of a row of n pairs, of which a quarter or
// more is free if it has more than one.
func rowSize(n int) int { return bits.Len(uint(n + n/2 - 1)) }

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
