package index

import "github.com/eppctl/eppctl/internal/core/event"

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

// any tells the places held on some tier. Without a loop: it is on every path.
func (s *segment) any() uint16 { return s.tiers[0] | s.tiers[1] | s.tiers[2] | s.tiers[3] }

// seglog keeps hashes in the order they were stored. Place 0 is never used.
type seglog struct {
	pages []logPage
	next  uint32   // segments handed out so far
	spare []uint32 // first places of segments given back
}

// logPage is what the log grows by.
type logPage struct {
	hashes   *[pageHash]uint64
	segments *[pageHash / segBlocks]segment
	again    *againPage // nil = every hash once
	held     uint16     // segments with a live hash, or just handed out for one
}

func (l *seglog) hash(at uint32) uint64 { return l.pages[at/pageHash].hashes[at%pageHash] }

func (l *seglog) segment(at uint32) *segment {
	return &l.pages[at/pageHash].segments[at%pageHash/segBlocks]
}

func (l *seglog) has(at uint32) bool { return l.next > 0 && at < (l.next+1)*segBlocks }

// place is where the block stands whose hash is at a place of the log.
func (l *seglog) place(at uint32) place {
	s := l.segment(at)
	return place{s.run, s.off + at%segBlocks}
}

// room reports whether n more hashes fit, were each to need its own segment.
func (l *seglog) room(n int) bool {
	return n <= len(l.spare)+(1<<logBits)/segBlocks-2-int(l.next)
}

// put writes a hash down for p: in the segment of the block before if that
// place is free, else in a new one.
func (l *seglog) put(hash uint64, p place, near uint32) (at uint32, s *segment) {
	if near != 0 {
		page := &l.pages[near/pageHash]
		s = &page.segments[near%pageHash/segBlocks]
		if i := p.off - s.off; s.run == p.run && i < segBlocks {
			if held := s.any(); held != 0 && held>>i&1 == 0 { // 0: it was given back
				at = near&^(segBlocks-1) + i
				page.hashes[at%pageHash] = hash
				return at, s
			}
		}
	}
	at, s = l.open(p)
	l.pages[at/pageHash].hashes[at%pageHash] = hash
	return at, s
}

// open hands out a segment whose first place is for p.
func (l *seglog) open(p place) (at uint32, s *segment) {
	if k := len(l.spare); k > 0 {
		at = l.spare[k-1]
		l.spare = l.spare[:k-1]
	} else {
		l.next++ // segment 0 stays unused
		at = l.next * segBlocks
		for int(at/pageHash) >= len(l.pages) {
			l.pages = append(l.pages, logPage{hashes: new([pageHash]uint64), segments: new([pageHash / segBlocks]segment)})
		}
	}
	page := &l.pages[at/pageHash]
	page.held++
	s = &page.segments[at%pageHash/segBlocks]
	*s = segment{run: p.run, off: p.off, gen: s.gen + 1}
	return at, s
}

// free gives back the segment of a place; nothing in it is held.
func (l *seglog) free(at uint32) {
	l.pages[at/pageHash].held--
	l.spare = append(l.spare, at&^(segBlocks-1))
}

// held yields the first place and header of each segment with a live hash. The
// log never shrinks; what of it is empty costs a look at each page.
func (l *seglog) held(yield func(uint32, *segment) bool) {
	for p := range l.pages {
		page := &l.pages[p]
		left := page.held // yield may free segments
		for i := range page.segments {
			if left == 0 {
				break
			}
			s := &page.segments[i]
			if s.any() == 0 {
				continue
			}
			left--
			if !yield(uint32(p*pageHash+i*segBlocks), s) {
				return
			}
		}
	}
}
