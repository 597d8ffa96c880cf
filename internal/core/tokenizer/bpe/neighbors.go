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

// first is the slot of a row in which a character is looked for first.
func (n neighbors) first(row, next uint32) *neighbor {
	return &n[row>>rowBits+neighborHash(next)>>8&(uint32(1)<<(row&(1<<rowBits-1))-1)]
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
	list, starts := adjacent(v)
	rows := make([][]uint16, 0, plane)
	size := 0
	for left := range plane {
		row := list[starts[left]:starts[left+1]]
		slices.Sort(row)
		rows = append(rows, slices.Compact(row))
		size += rowLength(len(rows[left]))
	}
	c.neighbors = makeHuge[neighbor](max(size, 1))
	at := 0
	for left, row := range rows {
		if len(row) > 0 {
			c.fillRow(m, uint32(left), row, at)
			at += rowLength(len(row))
		}
	}
}

// fillRow writes what may stand behind a character to its row.
func (c *charTable) fillRow(m *Model, left uint32, row []uint16, at int) {
	x := &c.of[left]
	n := rowLength(len(row))
	x.row = uint32(at)<<rowBits | uint32(bits.Len(uint(n-1)))
	symbol, whole := c.start(m, left)
	slots := c.neighbors[at:][:n]
	for _, char := range row {
		next, code := uint32(char), None
		if right, ok := c.start(m, next); ok && whole {
			code = m.pairs.code(symbol, right)
		}
		x.followers |= 1 << (neighborHash(next) >> 26)
		insert(slots, uint64(neighborHash(next)>>8), newNeighbor(next, code), func(e *neighbor) bool { return e.value() == noNeighbor })
	}
}

// rowLength is the length of a row of n pairs, a power of two. A short one, of which a
// cache line or two hold all, may be full; of a longer one a quarter is free.
func rowLength(n int) int {
	switch {
	case n == 0:
		return 0
	case n > 16:
		n += n / 3
	}
	return 1 << bits.Len(uint(n-1))
}

// adjacent returns, for each character, those that stand behind it in some entry, the two
// not both ASCII: list[starts[c]:starts[c+1]], in any order and again and again.
func adjacent(v *Vocab) (list []uint16, starts []uint32) {
	starts = make([]uint32, plane+1)
	eachAdjacent(v, func(left, _ rune) { starts[left+1]++ })
	for c := range plane {
		starts[c+1] += starts[c]
	}
	list = make([]uint16, starts[plane])
	next := slices.Clone(starts)
	eachAdjacent(v, func(left, right rune) {
		list[next[left]] = uint16(right)
		next[left]++
	})
	return list, starts
}

// eachAdjacent calls f for two characters, not both ASCII, that stand side by side in an
// entry.
func eachAdjacent(v *Vocab, f func(left, right rune)) {
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
				f(before, r)
			}
			before = r
			i += n
		}
	}
}
