package index

import (
	"github.com/eppctl/eppctl/internal/core/event"
)

// reverse finds the place of a member's block by the hash its engine gave it:
// parents and removals name nothing else. It is the larger half of the index's
// memory and most of the cost of a store, so it holds no pointer and is laid
// out for cache lines:
//
//   - a log (seglog.go) of the hashes in the order they were stored, cut into
//     segments of 16 consecutive blocks of one run;
//   - a table of 8-byte slots that lead from a hash to its place in the log:
//     32 bits of the mixed hash, 8 bits generation of the segment, 24 bits place.
//
// Removal is lazy: it clears a bit in the segment. The slot stays, is told as
// stale by the segment, and goes when the table is rebuilt. Nothing is ever
// taken out of a table, so a bucket fills from the left and a free slot ends
// every search.
//
// Invariant: a hash is live on a tier exactly while the index counts its place
// as held by the member on that tier; hence the run of a live hash is in the
// run table. A reverse map belongs to the member's lock; no reader sees it.
type reverse struct {
	log    seglog
	pool   *tablePool
	secret uint64 // odd
	table  []bucket
	filled int                 // slots, stale ones included
	live   int                 // hashes held on some tier
	hint   int                 // hashes to expect, 0 = not told
	recent uint32              // log's place of the latest removal
	newest uint32              // and of the latest insert
	latest uint64              // that hash: rules most parents out without a look at the log
	tiers  [event.NumTiers]int // hashes held, by tier
	again  [event.NumTiers]int // further copies of them
}

const (
	bucketSlots = 8 // one cache line
	genShift    = logBits
)

type bucket [bucketSlots]uint64

// mix takes the high half of a multiplication by a secret: cheap, and nobody
// can aim at one bucket.
func (m *reverse) mix(hash uint64) uint32 { return uint32(hash * m.secret >> 32) }

// home spreads the mixed hash over any number of buckets. It keeps the order of
// the hashes, so that a rebuild writes front to back.
func (m *reverse) home(h uint32) int { return int(uint64(h) * uint64(len(m.table)) >> 32) }

// find returns where hash lives, and the slot that leads there. When it does
// not live, slot is where to put it: a stale slot of its own or the free slot
// that ended the search. The table must not be empty.
func (m *reverse) find(hash uint64) (slot *uint64, at uint32, ok bool) {
	h := m.mix(hash)
	for i := m.home(h); ; i++ {
		if i == len(m.table) {
			i = 0
		}
		b := &m.table[i]
		for j := range b {
			e := b[j]
			if e == 0 {
				if slot == nil {
					slot = &b[j]
				}
				return slot, 0, false
			}
			if uint32(e>>32) != h {
				continue
			}
			// The segment's small header first: a stale slot costs no miss in
			// the log itself.
			switch at = uint32(e) & logMask; {
			case !m.current(uint32(e)):
				if slot == nil {
					slot = &b[j]
				}
			case m.log.hash(at) == hash:
				return &b[j], at, true
			}
		}
	}
}

// current reports whether the place a slot names is live and in the same hands.
func (m *reverse) current(v uint32) bool {
	s := m.log.segment(v & logMask)
	return uint32(s.gen) == v>>genShift && s.any()>>(v%segBlocks)&1 != 0
}

// lookup returns the place of a live hash.
func (m *reverse) lookup(hash uint64) (at uint32, ok bool) {
	if m.live == 0 {
		return 0, false
	}
	_, at, ok = m.find(hash)
	return at, ok
}

// lookupParent is lookup for the parent of a store, which mostly is the block
// that was stored last.
func (m *reverse) lookupParent(hash uint64) (at uint32, ok bool) {
	if hash == m.latest && m.is(m.newest, hash) {
		return m.newest, true
	}
	return m.lookup(hash)
}

// beside looks next to the latest removal.
func (m *reverse) beside(hash uint64) (uint32, bool) {
	if m.is(m.recent-1, hash) { // engines evict a chain from its end
		return m.recent - 1, true
	}
	return m.recent + 1, m.is(m.recent+1, hash)
}

func (m *reverse) is(at uint32, hash uint64) bool {
	return m.log.has(at) && m.log.hash(at) == hash && m.log.segment(at).any()>>(at%segBlocks)&1 != 0
}

// warm reads the home buckets of all hashes in one loop, so that their cache
// misses overlap. It returns a value to keep the loads.
func (m *reverse) warm(parent uint64, hashes []uint64) (sum uint64) {
	if len(m.table) == 0 {
		return 0
	}
	sum = m.table[m.home(m.mix(parent))][0]
	for _, h := range hashes {
		sum ^= m.table[m.home(m.mix(h))][0]
	}
	return sum
}

// peek returns where the first slot of the hash in its home bucket leads, be it
// stale or another hash's, or 0. The table must not be empty.
func (m *reverse) peek(hash uint64) (at uint32) {
	h := m.mix(hash)
	for _, e := range &m.table[m.home(h)] {
		if uint32(e>>32) == h {
			return uint32(e) & logMask // 0 of a free slot too
		}
		if e == 0 {
			break
		}
	}
	return 0
}

// reserve makes room for n more hashes at a load of 3/4.
func (m *reverse) reserve(n int) {
	if m.filled+n <= len(m.table)*(bucketSlots*3/4) {
		return
	}
	if m.live == 0 && n <= len(m.table)*(bucketSlots*3/4) {
		clear(m.table)
		m.filled = 0
		return
	}
	stale := m.filled - m.live
	want := max((max(m.live+n, m.hint)*7/4+bucketSlots-1)/bucketSlots, 8)
	if want > len(m.table)/4 { // shrink only when it pays
		want = max(want, len(m.table))
	}
	if stale*8 < m.filled { // it is full of live ones: do not come back soon
		want = max(want, len(m.table)*growth(len(m.table)))
	}
	m.rebuild(want)
}

// growth is by how much a full table of n buckets grows. An engine that comes to
// 3,000 blocks has many times as many, so one size is left out there: that saves
// a quarter of all copying on the way to 30,000.
func growth(n int) int {
	if n >= 512 && n < 1024 {
		return 4
	}
	return 2
}

// rebuild moves what is current to a table of n buckets. home keeps the order, so
// the writes go front to back.
func (m *reverse) rebuild(n int) {
	old, stale := m.table, m.filled > m.live
	m.table, m.filled = m.pool.get(n), 0
	for i := range old {
		for _, e := range &old[i] {
			if e == 0 {
				break
			}
			h := uint32(e >> 32)
			if stale && (!m.current(uint32(e)) || m.mix(m.log.hash(uint32(e)&logMask)) != h) {
				continue
			}
			*m.free(h) = e
			m.filled++
		}
	}
	m.pool.put(old)
}

// free is the first free slot for a mixed hash.
func (m *reverse) free(h uint32) *uint64 {
	for i := m.home(h); ; i++ {
		if i == len(m.table) {
			i = 0
		}
		b := &m.table[i]
		for j := range b {
			if b[j] == 0 {
				return &b[j]
			}
		}
	}
}

// insert makes hash live at p on tier. slot is from find, which did not find
// it; near is the log's place of the block before, or 0. It returns the log's
// place. reserve and seglog.room come first.
func (m *reverse) insert(slot *uint64, hash uint64, p place, t event.Tier, near uint32) uint32 {
	at, s := m.log.put(hash, p, near)
	s.tiers[t] |= 1 << (at % segBlocks)
	m.live++
	m.tiers[t]++
	if *slot == 0 {
		m.filled++
	}
	*slot = uint64(m.mix(hash))<<32 | uint64(s.gen)<<genShift | uint64(at)
	m.newest, m.latest = at, hash
	return at
}

// on reports whether the hash at the place is held on t.
func (m *reverse) on(at uint32, t event.Tier) bool {
	return m.log.segment(at).tiers[t]>>(at%segBlocks)&1 != 0
}

// raise adds a tier to a live hash that is not held there.
func (m *reverse) raise(at uint32, t event.Tier) {
	m.log.segment(at).tiers[t] |= 1 << (at % segBlocks)
	m.tiers[t]++
}

// lower takes a tier from a hash that is held there.
func (m *reverse) lower(at uint32, t event.Tier) {
	m.lowerIn(m.log.segment(at), at, t)
}

// lowerIn is lower with the place's segment in hand.
func (m *reverse) lowerIn(s *segment, at uint32, t event.Tier) {
	s.tiers[t] &^= 1 << (at % segBlocks)
	m.tiers[t]--
	if any := s.any(); any>>(at%segBlocks)&1 == 0 {
		m.live--
		if any == 0 {
			m.log.free(at)
		}
	}
}
