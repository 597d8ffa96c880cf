package bpe

import (
	"slices"
	"unsafe"

	"github.com/eppctl/eppctl/internal/core/tokenizer/split"
)

// Filler is a splitter; see split.Splitter.Fill.
type Filler interface {
	Fill(s string, i int, ends *split.Ends) (n, next int)
}

type ends = split.Ends

// pending is a piece that waits for its lookup.
type pending struct {
	key
	hash    uint64
	at, end uint32
	narrow  uint32
}

const pendingPieces = len(split.Ends{})

// longPiece in narrow is the length of no word.
const longPiece = ^uint32(0)

// AppendText appends the ids of a text that p splits. Pieces go in lots of up to 256,
// through loops that each do one thing, since what costs is not instructions but
// waiting for memory: the loads of one loop do not depend on each other, and no
// branch depends on what they bring, so that the processor waits for many at once.
// It is all the prefetching that Go allows. Whether it gave up is told by sc.Err.
func (m *Model) AppendText(out []uint32, s string, p Filler, sc *Scratch) []uint32 {
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	for at := 0; at < len(s) && !sc.ended(); {
		n, next := p.Fill(s, at, &sc.ends)
		m.keys(b, at, sc.ends[:n], sc)
		missed := m.look(n, sc)
		if cap(out)-len(out) < n+spare {
			out = slices.Grow(out, n+spare+(len(s)-at)/bytesPerID)
		}
		from := 0
		for _, k := range sc.missed[:missed] {
			out = append(out, sc.found[from:k]...)
			from = int(k) + 1
			x := &sc.pending[k]
			out = m.miss(b[x.at:x.end], x, sc, out)
		}
		out = append(out, sc.found[from:n]...)
		at = next
	}
	return out
}

// look stores what the first slot of each pending piece says, right or not, lists
// those it is not right for, and pulls in the cache's slots of these. The first slots
// are pulled in before by a loop of their own, since now and then one is far away and
// the processor waits for as many at once as iterations of a loop fit into it.
func (m *Model) look(n int, sc *Scratch) (missed int) {
	table := m.words.short
	mask := uint64(len(table) - 1)
	pull := uint64(0)
	for _, slot := range sc.slots[:n] {
		pull ^= table[uint64(slot)&mask].lo
	}
	for k := range sc.pending[:n] {
		x := &sc.pending[k]
		slot := &table[uint64(sc.slots[k])&mask]
		sc.found[k] = slot.id
		other := slot.lo ^ x.lo | uint64(slot.hi^x.narrow)
		sc.missed[missed&(pendingPieces-1)] = uint8(k)
		missed += int((other | -other) >> 63)
	}
	for _, k := range sc.missed[:missed] {
		// Only what will be asked: lines of the other table would push out these.
		if x := &sc.pending[k]; x.narrow != longPiece {
			pull ^= sc.words[x.hash>>(64-cacheBits)][0].lo
		} else {
			pull ^= sc.runs.slots[x.hash>>(64-runBits)][0].at
		}
	}
	sc.pull = pull
	return missed
}

// spare is room behind the pieces of a lot, for the three ids that a cached word is
// copied with.
const spare = 8

// bytesPerID is what text has at least, unless it is very odd: room for the rest of a
// text by this measure rarely has to grow again.
const bytesPerID = 3

// keys fills sc.pending.
func (m *Model) keys(b []byte, at int, ends []uint32, sc *Scratch) {
	safe := len(b) - 16
	for k, end := range ends {
		x := &sc.pending[k&(pendingPieces-1)]
		n := int(end) - at
		x.at, x.end = uint32(at), end
		slot := uint32(0)
		switch {
		case n > keyBytes:
			x.lo, x.narrow, x.hash = 0, longPiece, runHash(b[at:end])
		case at <= safe:
			x.key = keyAt(b, at, n)
			x.narrow, x.hash = x.key.narrow(), x.key.hash()
			slot = uint32(x.hash)
		default:
			x.key = keyOf(b[at:end])
			x.narrow, x.hash = x.key.narrow(), x.key.hash()
			slot = uint32(x.hash)
		}
		sc.slots[k&(pendingPieces-1)] = slot
		at = int(end)
	}
}

// miss encodes a piece that the first look did not find.
func (m *Model) miss(w []byte, x *pending, sc *Scratch, out []uint32) []uint32 {
	if x.narrow == longPiece {
		if id, ok := m.words.findLong(w); ok {
			return append(out, id)
		}
		return m.run(w, x.hash, sc, out)
	}
	if c := sc.words.find(x.key, x.hash); c != nil {
		if c.n == inRuns {
			return m.run(w, x.hash, sc, out)
		}
		return c.append(out)
	}
	from := len(out)
	if id, ok := m.words.find(x.key, x.hash); ok {
		out = append(out, id)
	} else {
		out = m.piece(w, sc, out)
	}
	if sc.err == nil {
		if sc.words.put(x.key, x.hash, out[from:]); len(out)-from > cachedIDs {
			sc.runs.put(w, x.hash, out[from:])
		}
	}
	return out
}

// run encodes a piece that is no entry and that the cache of runs may have.
func (m *Model) run(w []byte, hash uint64, sc *Scratch, out []uint32) []uint32 {
	if len(w) > maxRun {
		return m.piece(w, sc, out)
	}
	out, ok := sc.runs.get(w, hash, out)
	if ok {
		return out
	}
	from := len(out)
	out = m.piece(w, sc, out)
	if sc.err == nil {
		sc.runs.put(w, hash, out[from:])
	}
	return out
}

// piece encodes what no table has.
func (m *Model) piece(w []byte, sc *Scratch, out []uint32) []uint32 {
	for _, b := range w {
		if b >= 0x80 {
			return m.segments(w, sc, out)
		}
	}
	return m.merge(w, sc, out)
}

// AppendPiece appends the ids of one piece.
func (m *Model) AppendPiece(out []uint32, piece string, sc *Scratch) []uint32 {
	if len(piece) == 0 {
		return out
	}
	return m.AppendText(out, piece, onePiece{}, sc)
}

type onePiece struct{}

func (onePiece) Fill(s string, _ int, ends *split.Ends) (n, next int) {
	ends[0] = uint32(len(s))
	return 1, len(s)
}

// AppendPrefixed is AppendText of prefix+s, where the prefix makes one piece with
// the first of s, or stands alone.
func (m *Model) AppendPrefixed(out []uint32, prefix, s string, p interface {
	Filler
	Next(s string, i int) int
}, sc *Scratch) []uint32 {
	end := 0
	if s != "" {
		end = p.Next(s, 0)
	}
	sc.first = append(append(sc.first[:0], prefix...), s[:end]...)
	out = m.AppendPiece(out, unsafe.String(&sc.first[0], len(sc.first)), sc)
	return m.AppendText(out, s[end:], p, sc)
}
