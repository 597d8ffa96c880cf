package bpe

import "context"

// Scratch is what a call writes: room for symbols, and what it remembers of pieces
// that took merging. One goroutine has it at a time.
type Scratch struct {
	words   wordCache
	runs    runCache
	pending [pendingPieces]pending
	slots   [pendingPieces]uint32 // where to look for them first in the table of words
	found   [pendingPieces]uint32 // what the table of words says of them
	missed  [pendingPieces]uint8  // those it is wrong about
	pull    uint64                // keeps loads alive that only fetch
	ends    ends
	nodes   []node
	heap    []uint64
	batch   batch
	// ids and codes of a short piece: here and not on the stack, where Go would
	// clear them for each.
	ids, codes [shortMerge]uint32
	first      []byte // a first piece with its prefix

	ctx   context.Context // of the call
	beats uint            // looks at it that were asked for
	err   error           // of ctx, once seen
}

// Begin starts a call that gives up when ctx ends: one piece may be a whole prompt, and
// merging ten million letters takes seconds.
func (sc *Scratch) Begin(ctx context.Context) { sc.ctx, sc.err = ctx, nil }

// Err is the context's error when the call gave up: what was appended is worth nothing.
func (sc *Scratch) Err() error { return sc.err }

// End ends a call. Neither its context nor room of unusual size is kept.
func (sc *Scratch) End() {
	sc.ctx, sc.err = context.Background(), nil
	if cap(sc.nodes) > keptNodes {
		sc.nodes = nil
	}
	if cap(sc.heap) > keptNodes {
		sc.heap = nil
	}
}

// keptNodes is the most symbols of a piece whose room is kept between calls, 6 MiB with
// their heap. Rarer, longer ones make their own.
const keptNodes = 1 << 18

// beatsPerLook: between two looks at the context lie some thousand merges, or as many
// short stretches, each of them well under a microsecond.
const beatsPerLook = 1 << 12

// ended reports whether the call has to give up. It is asked wherever work grows with
// the length of a piece.
func (sc *Scratch) ended() bool {
	if sc.beats++; sc.beats%beatsPerLook == 0 && sc.err == nil {
		sc.err = sc.ctx.Err()
	}
	return sc.err != nil
}

// wordCache remembers pieces of up to 15 bytes and three tokens, and under a key of
// their own stretches between two cuts. Of pieces of more tokens it remembers that the
// cache of runs may have them, so that no other piece is looked for there: new text took
// 1 to 4 % less. The older slot of a set is overwritten.
type wordCache [][2]cached

type cached struct {
	key
	ids [cachedIDs]uint32
	n   uint32 // inRuns: more than cachedIDs
}

const (
	cachedIDs = 3
	inRuns    = cachedIDs + 1
)

// cacheBits: sets of two slots of 32 bytes, one cache line each, half a megabyte for
// each scratch.
const cacheBits = 13

func (c wordCache) find(k key, h uint64) *cached {
	set := &c[h>>(64-cacheBits)]
	if set[0].key == k {
		return &set[0]
	}
	if set[1].key == k {
		return &set[1]
	}
	return nil
}

// put keeps the ids of a key, or that they are too many.
func (c wordCache) put(k key, h uint64, ids []uint32) {
	set := &c[h>>(64-cacheBits)]
	set[1] = set[0]
	x := &set[0]
	x.key, x.n = k, min(uint32(len(ids)), inRuns)
	copy(x.ids[:], ids)
}

// append copies all three where there is room, which is faster than their number.
func (x *cached) append(out []uint32) []uint32 {
	if n := len(out); cap(out)-n >= len(x.ids) {
		out = out[:n+len(x.ids)]
		*(*[cachedIDs]uint32)(out[n:]) = x.ids
		return out[:n+int(x.n)]
	}
	return append(out, x.ids[:x.n]...)
}

// remembered is the memory of a scratch, in one piece for the sake of a huge page.
type remembered struct {
	words [1 << cacheBits][2]cached
	runs  [1 << runBits][runWays]run
	log   [runLog]byte
}

// NewScratch makes an empty one. All of its memory is written to, so that not the first
// call waits for the system to hand it out.
func NewScratch() *Scratch {
	r := makeHuge[remembered](1)
	clear(r)
	return &Scratch{words: r[0].words[:], runs: runCache{slots: r[0].runs[:], log: r[0].log[:], head: runLog}, ctx: context.Background()}
}
