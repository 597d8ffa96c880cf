package bpe

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// A piece of up to 15 bytes is its own key: two words of eight bytes, the last byte
// of which is the length. No two pieces have one key, so what is found under it is
// exact without comparing text.
type key struct{ lo, hi uint64 }

const (
	keyBytes   = 15
	lengthByte = 56 // shift of the length in hi
	// segmentBit makes keys of stretches inside pieces: where merges are ignored, a
	// piece that is an entry may have another id than such a stretch.
	segmentBit = 1 << 63
)

// keyMasks keep the bytes of a piece of each length out of two loads of eight.
var keyMasks = func() (m [keyBytes + 1]key) {
	for n := range m {
		m[n] = key{lo: 1<<(8*min(n, 8)) - 1}
		if n > 8 {
			m[n].hi = 1<<(8*(n-8)) - 1
		}
	}
	return m
}()

// keyAt is the key of b[i:i+n], with n <= keyBytes and 16 bytes to load.
func keyAt(b []byte, i, n int) key {
	m := &keyMasks[n&keyBytes]
	w := b[i : i+16 : i+16]
	return key{
		lo: binary.LittleEndian.Uint64(w) & m.lo,
		hi: binary.LittleEndian.Uint64(w[8:])&m.hi | uint64(n)<<lengthByte,
	}
}

// keyOf is keyAt where the bytes behind may not be read.
func keyOf(b []byte) key {
	var w [16]byte
	copy(w[:keyBytes], b)
	w[keyBytes] = byte(len(b))
	return key{binary.LittleEndian.Uint64(w[:8]), binary.LittleEndian.Uint64(w[8:])}
}

// hash multiplies the two words; its low bits choose in the table of words, its high
// bits in the cache.
func (k key) hash() uint64 {
	hi, lo := bits.Mul64(k.lo^golden, k.hi^0xD6E8FEB86659FD93)
	return hi ^ lo
}

func (k key) size() int { return int(k.hi >> lengthByte) }

// wordTable holds the entries that encode to themselves. It is filled with the
// model; all goroutines read it without any care. Most words of a text are found in
// the first slot they are looked for in: slots are half empty, four share a cache
// line, and entries of low ids, which are the frequent ones, come first.
type wordTable struct {
	short []word // up to 11 bytes
	mid   []midWord
	long  map[string]uint32
	// longs filters what is looked for in long.
	longs []uint64
}

type word struct {
	lo uint64
	hi uint32 // three bytes of key and the length
	id uint32
}

type midWord struct {
	key
	id uint32
}

const (
	shortBytes = 11
	longBits   = 17 // 16 KiB; gpt-oss has 5 492 entries that long
)

// narrow is hi of a word. For a key of more than shortBytes it is that of no word.
func (k key) narrow() uint32 { return uint32(k.hi)&0xFFFFFF | uint32(k.hi>>lengthByte)<<24 }

func newWordTable(v *Vocab, self func(id uint32, b []byte) bool) *wordTable {
	var short, mid int
	for id := range v.Len() {
		switch n := len(v.Bytes(uint32(id))); {
		case n > 0 && n <= shortBytes:
			short++
		case n > shortBytes && n <= keyBytes:
			mid++
		}
	}
	w := &wordTable{
		short: makeHuge[word](1 << bits.Len(uint(2*short))),
		mid:   makeHuge[midWord](1 << bits.Len(uint(2*mid))),
		long:  map[string]uint32{},
		longs: make([]uint64, 1<<longBits/64),
	}
	for id := range uint32(v.Len()) {
		b := v.Bytes(id)
		if len(b) == 0 || !utf8.Valid(b) || !self(id, b) {
			continue
		}
		if len(b) > keyBytes {
			w.long[string(b)] = id
			h := longHash(b)
			w.longs[h>>6] |= 1 << (h & 63)
			continue
		}
		k := keyOf(b)
		if len(b) <= shortBytes {
			insert(w.short, k.hash(), word{k.lo, k.narrow(), id}, func(x *word) bool { return x.hi == 0 })
		} else {
			insert(w.mid, k.hash(), midWord{k, id}, func(x *midWord) bool { return x.hi == 0 })
		}
	}
	return w
}

func insert[T any](table []T, h uint64, v T, empty func(*T) bool) {
	for mask := uint64(len(table) - 1); ; h++ {
		if x := &table[h&mask]; empty(x) {
			*x = v
			return
		}
	}
}

// find looks a key up whose first slot may hold another.
func (w *wordTable) find(k key, h uint64) (uint32, bool) {
	if k.size() <= shortBytes {
		narrow := k.narrow()
		for mask := uint64(len(w.short) - 1); ; h++ {
			x := &w.short[h&mask]
			if x.lo == k.lo && x.hi == narrow {
				return x.id, true
			}
			if x.hi == 0 {
				return 0, false
			}
		}
	}
	for mask := uint64(len(w.mid) - 1); ; h++ {
		x := &w.mid[h&mask]
		if x.key == k {
			return x.id, true
		}
		if x.hi == 0 {
			return 0, false
		}
	}
}

// findLong looks a piece of more than keyBytes up.
func (w *wordTable) findLong(b []byte) (uint32, bool) {
	h := longHash(b)
	if w.longs[h>>6]>>(h&63)&1 == 0 {
		return 0, false
	}
	id, ok := w.long[string(b)]
	return id, ok
}

func longHash(b []byte) uint64 {
	first, last := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[len(b)-8:])
	return (first ^ last*3 ^ uint64(len(b))) * golden >> (64 - longBits)
}
