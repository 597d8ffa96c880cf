package parity

import (
	"slices"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
)

// maxChains is how many ends of announced prompts are remembered of a watched request.
// Engines announce a prompt in a few pieces, one behind the other, or page by page:
// what has to be remembered is where those end that are under way at once.
const maxChains = 32

// maxBehind is how many blocks behind the place where a prompt parts are looked at, for
// whether it goes on with nearly the same text.
const maxBehind = 4

// chain is a prompt as an engine announces it, from its begin to the last block seen. A
// prompt is known by where it hangs: at the root, or at a block of another chain.
type chain struct {
	hash   uint64 // the engine's, of the last block
	at     int    // how many ids it begins with are the watched request's
	parted bool   // there are no more than those
	behind int    // blocks behind them that were looked at
}

// chains are those that a request is compared with, the newest instead of the oldest.
type chains struct {
	list [maxChains]chain
	n    uint
}

func (c *chains) add(x chain) {
	c.list[c.n%maxChains] = x
	c.n++
}

// endingIn finds the chain whose last block has a hash.
func (c *chains) endingIn(hash uint64) *chain {
	for i := range c.list[:min(c.n, maxChains)] {
		if c.list[i].hash == hash {
			return &c.list[i]
		}
	}
	return nil
}

// follow looks how far the prompt that an event belongs to begins as this request does.
// Of the prompts that engines announce, the one that has the longest beginning in common
// is this request's, as the engine has it, provided that what stands behind the place is
// nearly the same: else it is a prompt of somebody else that begins alike.
func (x *Watched) follow(h *block.Hasher, e *event.Event) {
	c, known := x.hangs(h, e)
	if !known {
		x.inHeld = x.inHeld || e.HasParent && x.resembles(h, e.Tokens[:x.size])
		return
	}
	for i := range e.Hashes {
		ids := e.Tokens[i*x.size : (i+1)*x.size]
		switch {
		case c.parted && c.behind == maxBehind:
			return // of something else, or known
		case c.parted:
			c.behind++
			x.parts(c.at, x.near(h, c.at, ids))
		case c.at == x.from+len(x.runs):
			return // it begins with all that is compared; then every block was seen, but for a hash that fits by chance
		default:
			n := x.common(h, c.at, ids)
			if c.at += n; n == x.size {
				break
			}
			if i > 0 { // what is computed of this request may hang there
				x.chains.add(chain{hash: e.Hashes[i-1], at: c.at - n})
			}
			c.parted = true
			x.parts(c.at, x.near(h, c.at, ids[n+1:]))
		}
		c.hash = e.Hashes[i]
	}
	if old := x.chains.endingIn(e.Parent); e.HasParent && old != nil && old.parted == c.parted {
		*old = c
	} else {
		x.chains.add(c)
	}
}

// hangs finds the chain that an event goes on with. Of one whose parent is unknown, which
// the engine held before, it is taken for this request's first block that was not held,
// when it begins as that does.
func (x *Watched) hangs(h *block.Hasher, e *event.Event) (chain, bool) {
	if !e.HasParent {
		return chain{}, x.from == 0
	}
	if c := x.chains.endingIn(e.Parent); c != nil {
		return *c, true
	}
	return chain{at: x.from}, x.from > 0 && x.common(h, x.from, e.Tokens[:x.size]) >= gramLen
}

// resembles reports whether a block is nearly one of this request's. When the engine held
// all that is in front of such a block, it has not announced anything of this request
// before: what it is known to hold of it ends where the ids part.
func (x *Watched) resembles(h *block.Hasher, ids []uint32) bool {
	_, equal := slices.BinarySearch(x.keys, h.Key(ids))
	return !equal && x.grams.near(h, ids)
}

// common is how many ids a block begins with are those of the prompt from at on, where a
// block of the prompt begins.
func (x *Watched) common(h *block.Hasher, at int, ids []uint32) int {
	for i := range ids {
		if x.runs[at-x.from+i] != run(h, ids, i) {
			return i
		}
	}
	return len(ids)
}

// near reports whether ids behind a place are of nearly the same text; few tell nothing,
// and of a place in front of one that is known nobody asks.
func (x *Watched) near(h *block.Hasher, at int, ids []uint32) bool {
	return at > x.at && len(ids) >= 2*gramLen && x.grams.near(h, ids)
}

// parts notes that a prompt ceases to be alike at a position.
func (x *Watched) parts(at int, near bool) {
	x.nearest = max(x.nearest, at)
	if near {
		x.at = max(x.at, at)
	}
}

// run is a hash of an id with up to three of those in front of it in its block: two
// blocks begin to differ where it does.
func run(h *block.Hasher, ids []uint32, i int) uint16 {
	var last [gramLen]uint32
	copy(last[max(gramLen-1-i, 0):], ids[max(i-gramLen+1, 0):i+1])
	return uint16(gram(h, last[:]))
}

// runsOf are those of blocks, one behind the other.
func runsOf(h *block.Hasher, ids []uint32, size int) []uint16 {
	list := make([]uint16, len(ids))
	for i := range list {
		from := i / size * size
		list[i] = run(h, ids[from:from+size], i-from)
	}
	return list
}
