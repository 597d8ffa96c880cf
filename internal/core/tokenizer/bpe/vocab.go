package bpe

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// Vocab holds entries as bytes, all in one piece of memory.
type Vocab struct {
	arena  []byte
	spans  []span   // by id
	index  []uint32 // hash table of id+1
	count  int
	last   uint32 // the last entry that FindNear found
	pulled uint32 // keeps loads alive that only fetch
}

// span is where an entry lies; size 0 is no entry.
type span struct{ at, size uint32 }

// MaxID caps the ids of a file, since tables are as long as the largest.
const MaxID = 1<<22 - 1

// NewVocab makes room for about n entries.
func NewVocab(n int) *Vocab {
	return &Vocab{arena: make([]byte, 0, 8*n), spans: make([]span, 0, n)}
}

// Add adds an entry. An empty one only takes the id. The index is not updated: call
// Seal after the last.
func (v *Vocab) Add(id uint32, b []byte) error {
	if id > MaxID || len(b) > math.MaxUint16 || len(v.arena)+len(b) > math.MaxUint32 {
		return fmt.Errorf("entry of id %d with %d bytes is beyond the limits", id, len(b))
	}
	for int(id) >= len(v.spans) {
		v.spans = append(v.spans, span{})
	}
	if len(b) == 0 {
		return nil
	}
	if v.spans[id].size != 0 {
		return fmt.Errorf("id %d is given twice", id)
	}
	v.spans[id] = span{uint32(len(v.arena)), uint32(len(b))}
	v.arena = append(v.arena, b...)
	v.count++
	return nil
}

// Seal builds the index. Of equal entries the lowest id is found.
func (v *Vocab) Seal() {
	v.index = makeHuge[uint32](1 << bits.Len(uint(2*v.count)))
	mask := uint32(len(v.index) - 1)
	for id, x := range v.spans {
		if x.size == 0 {
			continue
		}
		h := hashBytes(v.Bytes(uint32(id))) & mask
		for v.index[h] != 0 {
			h = (h + 1) & mask
		}
		v.index[h] = uint32(id) + 1
	}
}

// Len returns one more than the highest id.
func (v *Vocab) Len() int { return len(v.spans) }

// Count returns the number of entries.
func (v *Vocab) Count() int { return v.count }

// Bytes returns an entry; empty if there is none. It must not be written to.
func (v *Vocab) Bytes(id uint32) []byte {
	if int(id) >= len(v.spans) {
		return nil
	}
	x := v.spans[id]
	return v.arena[x.at : x.at+x.size]
}

// Find returns the id of an entry.
func (v *Vocab) Find(b []byte) (uint32, bool) {
	mask := uint32(len(v.index) - 1)
	for h := hashBytes(b) & mask; ; h = (h + 1) & mask {
		x := v.index[h]
		if x == 0 {
			return 0, false
		}
		if y := v.spans[x-1]; int(y.size) == len(b) && string(v.arena[y.at:y.at+y.size]) == string(b) {
			return x - 1, true
		}
	}
}

// FindAll appends the ids of entries that stand one behind the other in text, each up to
// one of ends; None for what is no entry. It goes through them in three loops, so that
// the processor waits for many places at once.
func (v *Vocab) FindAll(ids []uint32, text []byte, ends []uint32) []uint32 {
	mask := uint32(len(v.index) - 1)
	first := len(ids)
	at := uint32(0)
	for _, end := range ends {
		ids = append(ids, v.index[hashBytes(text[at:end])&mask])
		at = end
	}
	found := ids[first:]
	pull := uint32(0)
	for _, x := range found {
		if x > 0 {
			pull ^= v.spans[x-1].at
		}
	}
	v.pulled = pull
	at = 0
	for i, end := range ends {
		b := text[at:end]
		if x := found[i]; x > 0 && string(v.Bytes(x-1)) == string(b) {
			found[i] = x - 1
		} else if id, ok := v.Find(b); ok {
			found[i] = id
		} else {
			found[i] = None
		}
		at = end
	}
	return ids
}

// FindNear is Find for a list that goes through the entries in order: the last found
// and the one behind it are tried first.
func (v *Vocab) FindNear(b []byte) (uint32, bool) {
	for id := v.last; id < v.last+2 && int(id) < len(v.spans); id++ {
		if string(v.Bytes(id)) == string(b) {
			v.last = id
			return id, true
		}
	}
	id, ok := v.Find(b)
	if ok {
		v.last = id
	}
	return id, ok
}

const golden = 0x9E3779B97F4A7C15 // 2^64 / golden ratio, Knuth's multiplier

func hashBytes(b []byte) uint32 {
	h := uint64(len(b)) * golden
	for ; len(b) >= 8; b = b[8:] {
		h = (bits.RotateLeft64(h, 5) ^ binary.LittleEndian.Uint64(b)) * golden
	}
	var tail uint64
	for i, c := range b {
		tail |= uint64(c) << (8 * i)
	}
	h = (bits.RotateLeft64(h, 5) ^ tail) * golden
	return uint32(h >> 32)
}
