package index

import (
	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// Lookup reports which members hold how much of p. Every block size in use is
// looked up in its own right. It hashes block after block and stops at the first
// that nobody holds; it takes no lock and, once out has grown, allocates nothing.
func (ix *Index) Lookup(p *block.Prompt, out *Result) {
	out.reset()
	tokens := known(p)
	for _, size := range ix.sizes.now() {
		if len(tokens) < size {
			continue
		}
		space := ix.hasher.Space(block.Namespace{Model: p.Model, LoRA: p.LoRA, Salt: p.Salt, Size: size})
		ix.walk(space, tokens, size, (len(p.Tokens)-1)/size, out)
	}
}

// known is the part of the prompt whose content is known.
func known(p *block.Prompt) []uint32 {
	if p.Cut >= 0 && p.Cut < len(p.Tokens) {
		return p.Tokens[:p.Cut]
	}
	return p.Tokens
}

// walk looks one block size up. most is the number of blocks an engine can
// reuse of the prompt: all but the one with its last token.
func (ix *Index) walk(space block.Space, tokens []uint32, size, most int, out *Result) {
	h := ix.hasher
	f := fold{out: out, from: len(out.Matches), size: size, words: int(ix.words.Load()), most: most}
	if ix.hybrids.Load() > 0 {
		f.hybrids = ix
	}
	second := ix.clock.Load()
	blocks := len(tokens) / size

	key := h.Root(space, h.Key(tokens[:size]))
	for r := ix.shardOf(key).root.kid(0, key); r != nil; {
		r.touch(second)
		keys := r.published()
		n := min(len(keys), blocks-f.base)
		keys = keys[:n]
		rest := tokens[(f.base+1)*size:]
		same, miss := h.Match(keys[1:], rest, size) // finding the run matched its first key
		same++

		// The coverage is loaded after the keys were compared: what it says of
		// them was published after them.
		var next *run
		if left := blocks - f.base - same; left > 0 {
			if same == n {
				miss = h.Key(rest[(same-1)*size:][:size])
			}
			next = r.kid(uint32(same), miss)
		}
		f.run(r.groups(), uint32(same))
		if f.done() {
			break
		}
		r = next
	}
	f.finish()
}

// scratch is what a lookup needs besides its stack.
type scratch struct {
	rows  []row  // parallel to Matches
	trail []step // the path of a block size, when a member is hybrid
	// slot[m] is m's row if Matches says so there: never cleared, never wrong.
	slot []uint16
	// stops[m] is where in the run at hand m's stretch on the GPU ends that begins
	// with it, of the members that fold.run says it of.
	stops []uint32
}

func (r *Result) reset() {
	r.Matches, r.rows = r.Matches[:0], r.rows[:0]
	if r.slot == nil {
		r.slot, r.stops = make([]uint16, pod.MaxMembers), make([]uint32, pod.MaxMembers)
	}
}

// find returns the index of m's match, if it has one.
func (r *Result) find(m pod.Member) (int, bool) {
	i := int(r.slot[m])
	return i, i < len(r.Matches) && r.Matches[i].Member == m
}

// row follows one member through the groups of one run. A union of tiers is
// measured by how far it reaches: groups come in order of start.
type row struct {
	announced bool // no block before this run was missing
	any       uint32
	ext       uint32
	reach     [event.NumTiers]uint32 // end of the union of this and faster tiers
	count     [event.NumTiers]uint32 // and its length
	earlier   int32                  // row of the same member at another block size, or -1
}

func (w *row) begin() {
	w.any, w.ext = 0, 0
	w.reach, w.count = [event.NumTiers]uint32{}, [event.NumTiers]uint32{}
}

// add takes the stretch [a, b) in. One that begins behind a hole counts for
// nothing, and so do all that follow.
func (w *row) add(l layer, a, b uint32) {
	if a <= w.any && b > w.any {
		w.any = b
	}
	if l == layerExpected || a > w.ext {
		return
	}
	w.ext = max(w.ext, b)
	// A slower tier's union has the faster one's in it and reaches as far: once b adds
	// nothing it adds nothing further down either.
	for t := l.tier(); t < event.NumTiers && b > w.reach[t]; t++ {
		w.count[t] += b - max(a, w.reach[t])
		w.reach[t] = b
	}
}
