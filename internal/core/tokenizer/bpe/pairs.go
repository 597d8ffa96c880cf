package bpe

import "math/bits"

// pairTable finds the code of the merge of two symbols. Low symbols, which are the
// bytes and the first merges and make most of the questions, have a square of their
// own; for others a bit filter first says no for most pairs, which do not merge.
type pairTable struct {
	grid   []uint32 // gridSide × gridSide
	filter []uint64 // two bits of one word per pair
	slots  []uint64 // open addressing: (pair+1) << codeBits | code
	shift  uint
}

const (
	gridSide   = 512 // 1 MiB; 1 024 was not faster
	filterBits = 20  // 128 KiB, fits the second cache
)

func pairKey(a, b uint32) uint64 { return uint64(a)<<symbolBits | uint64(b) }

func mix(k uint64) uint64 { return (k ^ k>>29) * golden }

func filterBit(k uint64) (word int, mask uint64) {
	h := k * golden
	return int(h >> (64 - (filterBits - 6))), 1<<(h&63) | 1<<(h>>6&63)
}

func newPairTable(merges []coded) *pairTable {
	p := emptyPairTable(len(merges))
	for _, m := range merges {
		p.add(m)
	}
	return p
}

// emptyPairTable has room for n merges.
func emptyPairTable(n int) *pairTable {
	p := &pairTable{
		grid:   makeHuge[uint32](gridSide * gridSide),
		filter: make([]uint64, 1<<(filterBits-6)),
		slots:  makeHuge[uint64](1 << bits.Len(uint(2*n))),
	}
	p.shift = uint(64 - bits.Len(uint(len(p.slots)-1)))
	for i := range p.grid {
		p.grid[i] = None
	}
	return p
}

// add adds a merge. The first of a pair counts: it has the lowest rank.
func (p *pairTable) add(m coded) {
	if m.left < gridSide && m.right < gridSide {
		if x := &p.grid[m.left*gridSide+m.right]; *x == None {
			*x = m.code
		}
		return
	}
	k := pairKey(m.left, m.right)
	word, mask := filterBit(k)
	p.filter[word] |= mask
	p.insert(k, m.code)
}

func (p *pairTable) insert(k uint64, code uint32) {
	for h := int(mix(k) >> p.shift); ; h++ {
		e := &p.slots[h&(len(p.slots)-1)]
		switch {
		case *e == 0:
			*e = (k+1)<<codeBits | uint64(code)
			return
		case *e>>codeBits == k+1:
			return
		}
	}
}

// code returns the code of the merge of two symbols, or None.
func (p *pairTable) code(a, b uint32) uint32 {
	if a < gridSide && b < gridSide {
		return p.grid[a*gridSide+b]
	}
	k := pairKey(a, b)
	word, mask := filterBit(k)
	if p.filter[word&(1<<(filterBits-6)-1)]&mask != mask {
		return None
	}
	for h := int(mix(k) >> p.shift); ; h++ {
		e := p.slots[h&(len(p.slots)-1)]
		if e>>codeBits == k+1 {
			return uint32(e & (1<<codeBits - 1))
		}
		if e == 0 {
			return None
		}
	}
}
