package bpe

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unsafe"
)

// runCache remembers pieces that do not fit a cached word, such as the stretches of
// Chinese between two commas. Text and ids lie one behind the other in a log that
// goes round; slots give absolute places in it, so that it is known whether they
// still hold what was written. Four slots share a set, which is one cache line, and
// the oldest of them goes.
type runCache struct {
	slots [][runWays]run
	log   []byte
	head  uint64 // absolute place of the next write
}

type run struct {
	at      uint64 // 0: none
	tag     uint32 // low half of the hash, whose high bits choose the set
	size, n uint16 // bytes of text, ids
}

const (
	// runWays, runBits: a text of 128 kB in Chinese has 3 000 runs. When it comes again,
	// of 4 096 sets of two 16 % of them are gone, of as many sets of four 1 %.
	runWays = 4
	runBits = 12      // 256 KiB
	runLog  = 1 << 19 // bytes; 128 kB of Chinese take half of it
	maxRun  = 512     // longer pieces are rare and cheap by the byte
)

// runHash is for pieces of more than 15 bytes.
func runHash(b []byte) uint64 {
	h := uint64(len(b))
	i := 0
	for ; i+16 < len(b); i += 16 {
		hi, lo := bits.Mul64(binary.LittleEndian.Uint64(b[i:])^golden^h, binary.LittleEndian.Uint64(b[i+8:])^0xD6E8FEB86659FD93)
		h = hi ^ lo
	}
	i = len(b) - 16
	hi, lo := bits.Mul64(binary.LittleEndian.Uint64(b[i:])^h, binary.LittleEndian.Uint64(b[i+8:])^golden)
	return hi ^ lo
}

// get appends the ids of a piece.
func (c *runCache) get(b []byte, h uint64, out []uint32) ([]uint32, bool) {
	set := &c.slots[h>>(64-runBits)]
	for i := range set {
		r := &set[i]
		if r.tag != uint32(h) || int(r.size) != len(b) || c.head > r.at+runLog {
			continue
		}
		rec := c.log[r.at%runLog:]
		if string(rec[:len(b)]) != string(b) {
			continue
		}
		from := len(out)
		out = slices.Grow(out, int(r.n))[:from+int(r.n)]
		copy(rawBytes(out[from:]), rec[len(b):])
		return out, true
	}
	return out, false
}

func (c *runCache) put(b []byte, h uint64, ids []uint32) {
	size := uint64(len(b) + 4*len(ids))
	if left := runLog - c.head%runLog; left < size {
		c.head += left // no record is split at the end
	}
	set := &c.slots[h>>(64-runBits)]
	copy(set[1:], set[:])
	set[0] = run{c.head, uint32(h), uint16(len(b)), uint16(len(ids))}
	rec := c.log[c.head%runLog:]
	copy(rec[copy(rec, b):], rawBytes(ids))
	c.head += size
}

// rawBytes are the bytes of ids as they lie in memory, for a log that only its writer
// reads.
func rawBytes(ids []uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(ids))), 4*len(ids))
}
