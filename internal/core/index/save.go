package index

import (
	"io"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// What the frames of a snapshot hold; n* is a uvarint, w a word of 8 bytes:
//
//	member  n id, string name, string model, n engine, n blocks, n size told,
//	        n size, n 1 if that is sure, n 1 if the next is known, n indexed group
//	runs    per record: n parent (0 = root, else record), n blocks of the parent's
//	        record before it, at the root w space and w space without salt;
//	        n seconds since it was read, n keys, w per key
//	hashes  per record: n run record, n offset, n seconds since stored, n tiers,
//	        per tier n places and n further copies, w per hash
//	chunks  per record: w hash, n tiers, n further copies per tier, n seconds since
//	        stored, n stretches, per stretch n run record, n offset, n blocks
//	window  n group, string kind, n window, n block size, n stores, n 1 if sparse;
//	        per hash w hash, n copies per tier, n seconds since stored
//	end     n members, n run records
//
// Run records are numbered from 1. Frames after a member's belong to it; runs
// come before what names them. Coverage is not stored: it follows from the rest.
// Neither are expectations, which end with the process, nor parked orphans.

// recordKeys bounds the keys of one run record; longer runs take several, each
// the continuation of the one before.
const recordKeys = 1 << 15

// Save writes a snapshot to w while readers and writers go on. The state of each
// member is that of an instant of its own; its events wait while it is gathered,
// but not for w. name gives each member the name by which Load finds it again;
// nil uses none. The stream holds the secret of the hash: guard it like a key.
func (ix *Index) Save(w io.Writer, name func(pod.Member) string) error {
	s := saver{frameWriter: frameWriter{w: w}, ix: ix, runs: map[*run][]saved{}, here: map[uint32]*run{}}
	s.header(ix.seed)
	members := uint64(0)
	for id := range ix.members {
		m := ix.members[id].Load()
		if m == nil {
			continue
		}
		label := ""
		if name != nil {
			label = name(m.id)
		}
		s.member(m, label)
		members++
		if err := s.flush(); err != nil {
			return err
		}
	}
	s.begin(frameEnd)
	s.uint(members)
	s.uint(s.records)
	s.end()
	return s.flush()
}

type saver struct {
	frameWriter
	ix      *Index
	second  uint32
	records uint64
	// runs is what of each run is written. It holds the runs, so that none of
	// them is taken for a later one at the same address.
	runs map[*run][]saved
	// here is the runs of the member at hand by id, as they were written: a run
	// may be trimmed, and so be another one, the moment it is unlocked.
	here map[uint32]*run
}

// saved is a stretch of a run that is a record.
type saved struct {
	record   uint64
	from, to uint32
}

func (s *saver) member(m *member, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.second = s.ix.clock.Load()
	clear(s.here)
	s.begin(frameMember)
	s.uint(uint64(m.id))
	s.string(name)
	s.string(m.owner.Model)
	s.uint(uint64(m.owner.Engine))
	s.uint(uint64(max(m.owner.Blocks, 0)))
	s.uint(uint64(max(m.owner.BlockSize, 0)))
	s.uint(uint64(m.size.Load()))
	s.flag(m.sizing.firm)
	s.flag(m.groups.known)
	s.uint(uint64(uint32(m.groups.indexed)))
	s.end()

	s.begin(frameRuns)
	for _, g := range m.rev.log.held {
		s.run(g.run)
	}
	for _, c := range m.chunks.byHash {
		for _, x := range c.path {
			s.run(x.run)
		}
	}
	s.end()
	s.begin(frameHashes)
	for at, g := range m.rev.log.held {
		s.segment(m, at, g)
		s.cut()
	}
	s.end()
	s.begin(frameChunks)
	for hash, c := range m.chunks.byHash {
		s.chunk(hash, c)
		s.cut()
	}
	s.end()
	for i := range m.groups.others {
		s.window(&m.groups.others[i], &m.groups.windows[i])
	}
}

func (s *saver) flag(b bool) {
	if b {
		s.uint(1)
	} else {
		s.uint(0)
	}
}

// age is how long ago a second was, and 0 for one to come.
func (s *saver) age(second uint32) { s.uint(uint64(max(0, int32(s.second-second)))) }

// run writes what of a run is not written yet.
func (s *saver) run(id uint32) {
	if s.here[id] != nil {
		return
	}
	if r := s.ix.runs.lock(id); r != nil { // else evicted: no hash of it counts
		s.keys(r)
		s.here[id] = r
		r.shard.unlock()
	}
}

// keys writes the records of a run, its ancestors' first. The shard is locked.
func (s *saver) keys(r *run) {
	parts, n := s.runs[r], r.n.Load()
	from := uint32(0)
	if k := len(parts); k > 0 {
		from = parts[k-1].to
	} else if !r.parent.isRoot() {
		s.keys(r.parent)
	}
	for ; from < n; from = parts[len(parts)-1].to {
		to := min(n, from+recordKeys)
		switch {
		case from > 0:
			last := parts[len(parts)-1]
			s.uint(last.record)
			s.uint(uint64(last.to - last.from))
		case !r.parent.isRoot():
			record, off := s.locate(r.parent, r.off-1)
			s.uint(record)
			s.uint(uint64(off) + 1)
		default:
			s.uint(0)
			s.uint(0)
			s.word(uint64(r.space.full))
			s.word(uint64(r.space.unsalted))
		}
		s.age(r.read.Load())
		s.uint(uint64(to - from))
		for _, k := range r.keys(n)[from:to] {
			s.word(uint64(k))
		}
		s.records++
		parts = append(parts, saved{s.records, from, to})
		s.cut()
	}
	s.runs[r] = parts
}

// locate finds the record that holds a block of a run.
func (s *saver) locate(r *run, off uint32) (record uint64, at uint32) {
	for _, p := range s.runs[r] {
		if off < p.to {
			return p.record, off - p.from
		}
	}
	return 0, 0
}

// segment writes the live hashes of a segment, per record that they lie in.
func (s *saver) segment(m *member, at uint32, g *segment) {
	r := s.here[g.run]
	held := uint32(g.any())
	for i := uint32(0); i < segBlocks; {
		if held>>i&1 == 0 {
			i++
			continue
		}
		record, off := s.locate(r, g.off+i)
		if record == 0 {
			return // evicted
		}
		n := uint32(1) // places in the same record
		for ; i+n < segBlocks; n++ {
			if rec, _ := s.locate(r, g.off+i+n); rec != record {
				break
			}
		}
		s.uint(record)
		s.uint(uint64(off))
		s.age(g.stored)
		s.places(m, at, g, i, n)
		i += n
	}
}

// places writes the n places of a segment from the i-th on.
func (s *saver) places(m *member, at uint32, g *segment, i, n uint32) {
	mask := uint16(1<<n - 1)
	tiers, any := uint64(0), g.any()>>i&mask
	for t := range g.tiers {
		if g.tiers[t]>>i&mask != 0 {
			tiers |= 1 << t
		}
	}
	s.uint(tiers)
	for t := range g.tiers {
		if tiers>>t&1 == 0 {
			continue
		}
		s.uint(uint64(g.tiers[t] >> i & mask))
		again := uint32(0)
		if m.rev.log.pages[at/pageHash].again != nil {
			word, _ := m.rev.log.againAt(at, event.Tier(t))
			again = *word >> (2 * i) & uint32(1<<(2*n)-1)
		}
		s.uint(uint64(again))
	}
	for k := i; any != 0; k, any = k+1, any>>1 {
		if any&1 != 0 {
			s.word(m.rev.log.hash(at + k))
		}
	}
}

func (s *saver) chunk(hash uint64, c *chunk) {
	var path []saved // as record, offset, end
	for _, x := range c.path {
		r := s.here[x.run]
		for off := x.off; off < x.off+x.n; off++ {
			record, at := s.locate(r, off)
			if record == 0 {
				return // evicted
			}
			if k := len(path) - 1; k >= 0 && path[k].record == record && path[k].to == at {
				path[k].to++
			} else {
				path = append(path, saved{record, at, at + 1})
			}
		}
	}
	s.word(hash)
	s.uint(uint64(c.tiers))
	for _, n := range c.again {
		s.uint(uint64(n))
	}
	s.age(c.stored)
	s.uint(uint64(len(path)))
	for _, p := range path {
		s.uint(p.record)
		s.uint(uint64(p.from))
		s.uint(uint64(p.to - p.from))
	}
}

func (s *saver) window(k *GroupKind, w *window) {
	write := func() {
		s.begin(frameWindow)
		s.uint(uint64(uint32(k.Group)))
		s.string(k.Kind)
		s.uint(uint64(uint32(k.Window)))
		s.uint(uint64(uint32(k.BlockSize)))
		s.uint(k.Stores)
		s.flag(w.sparse)
	}
	write()
	for hash, r := range w.held {
		if len(s.buf)-s.open >= frameCut {
			s.end()
			write()
		}
		s.word(hash)
		for _, n := range r.count {
			s.uint(uint64(n))
		}
		s.age(r.stored)
	}
	s.end()
}
