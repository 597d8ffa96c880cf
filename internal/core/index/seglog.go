package index

import (
	"math/bits"

	"github.com/eppctl/eppctl/internal/core/event"
)

const (
	segBlocks = 16 // of one run, consecutive; 8 cost memory and speed, 32 waste it on short runs
	pageHash  = 1 << 12
	logBits   = 24 // of a place: 16 million hashes per member
	logMask   = 1<<logBits - 1
)

// segment is the header of 16 places of the log. A block is held on a tier when
// the bit of its place is set there.
type segment struct {
	run, off uint32                 // of the first place
	tiers    [event.NumTiers]uint16 // bit i: place i is held
	stored   uint32                 // second of the latest store below the GPU, for the TTL
	gen      uint8                  // counts the owners of these places, to tell stale slots
}

func (s *segment) any() (held uint16) {
	for _, t := range s.tiers {
		held |= t
	}
	return held
}

// seglog keeps hashes in the order they were stored. Place 0 is never used.
type seglog struct {
	hashes   [][]uint64
	segments [][]segment
	again    []*againPage
	next     uint32   // segments handed out so far
	spare    []uint32 // first places of segments given back
}

func (l *seglog) hash(at uint32) uint64 { return l.hashes[at/pageHash][at%pageHash] }

func (l *seglog) segment(at uint32) *segment {
	return &l.segments[at/pageHash][at%pageHash/segBlocks]
}

func (l *seglog) has(at uint32) bool { return l.next > 0 && at < (l.next+1)*segBlocks }

// off is the offset in its run of the block at a place.
func (l *seglog) off(at uint32) uint32 { return l.segment(at).off + at%segBlocks }

// room reports whether n more hashes fit, were each to need its own segment.
func (l *seglog) room(n int) bool {
	return n <= len(l.spare)+(1<<logBits)/segBlocks-2-int(l.next)
}

// put writes a hash down for (run, off): in the segment of the block before if
// that place is free, else in a new one.
func (l *seglog) put(hash uint64, run, off, near uint32) uint32 {
	at := uint32(0)
	if near != 0 {
		s := l.segment(near)
		held := s.any() // none: it was given back
		if held != 0 && s.run == run && off-s.off < segBlocks && held>>(off-s.off)&1 == 0 {
			at = near&^(segBlocks-1) + (off - s.off)
		}
	}
	if at == 0 {
		at = l.open(run, off)
	}
	l.hashes[at/pageHash][at%pageHash] = hash
	return at
}

// open hands out a segment whose first place is for off.
func (l *seglog) open(run, off uint32) uint32 {
	var at uint32
	if k := len(l.spare); k > 0 {
		at = l.spare[k-1]
		l.spare = l.spare[:k-1]
	} else {
		l.next++ // segment 0 stays unused
		at = l.next * segBlocks
		for int(at/pageHash) >= len(l.hashes) {
			l.hashes = append(l.hashes, make([]uint64, pageHash))
			l.segments = append(l.segments, make([]segment, pageHash/segBlocks))
			l.again = append(l.again, nil)
		}
	}
	s := l.segment(at)
	*s = segment{run: run, off: off, gen: s.gen + 1}
	return at
}

// free gives back the segment of a place; nothing in it is held.
func (l *seglog) free(at uint32) { l.spare = append(l.spare, at&^(segBlocks-1)) }

// held yields the first place and header of each segment with a live hash.
func (l *seglog) held(yield func(uint32, *segment) bool) {
	for p := range l.segments {
		for i := range l.segments[p] {
			s := &l.segments[p][i]
			if s.any() != 0 && !yield(uint32(p*pageHash+i*segBlocks), s) {
				return
			}
		}
	}
}

// stretches yields the places whose bits are set in mask as intervals [a, b) of
// offsets within the segment.
func stretches(mask uint16, yield func(a, b uint32)) {
	for mask != 0 {
		a := uint32(bits.TrailingZeros16(mask))
		b := a + uint32(bits.TrailingZeros16(^(mask >> a)))
		yield(a, b)
		mask &^= uint16(1<<b - 1<<a)
	}
}
