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
	c := content{hasher: ix.hasher, tokens: p.Known()}
	for _, c.size = range ix.sizes.now() {
		if len(c.tokens) < c.size {
			continue
		}
		if len(p.Items) > 0 {
			out.keys = ix.hasher.PromptKeys(out.keys[:0], p, c.size)
			c.keys = out.keys
		}
		space := ix.hasher.Space(block.Namespace{Model: p.Model, LoRA: p.LoRA, Salt: p.Salt, Size: c.size})
		ix.walk(space, &c, (len(p.Tokens)-1)/c.size, out)
	}
}

// content is what a prompt's blocks of one size hold. Their keys are made as far as
// the walk comes, but for a prompt with images: the keys of that are all there.
type content struct {
	hasher *block.Hasher
	tokens []uint32
	size   int
	keys   []block.Key // nil = made as needed
}

func (c *content) blocks() int { return len(c.tokens) / c.size }

func (c *content) key(i int) block.Key {
	if c.keys != nil {
		return c.keys[i]
	}
	return c.hasher.Key(c.tokens[i*c.size:][:c.size])
}

// match counts the blocks from the i-th on whose keys are those given. Where it stops
// short of len(have), miss is the key of the block that differs.
func (c *content) match(have []block.Key, i int) (n int, miss block.Key) {
	if c.keys == nil {
		return c.hasher.Match(have, c.tokens[i*c.size:], c.size)
	}
	for n, k := range have {
		if got := c.keys[i+n]; got != k {
			return n, got
		}
	}
	return len(have), 0
}

// walk looks one block size up. most is the number of blocks an engine can
// reuse of the prompt: all but the one with its last token.
func (ix *Index) walk(space block.Space, c *content, most int, out *Result) {
	f := fold{out: out, from: len(out.Matches), size: c.size, words: int(ix.words.Load()), most: most}
	if ix.hybrids.Load() > 0 {
		f.hybrids = ix
	}
	second := ix.clock.Load()
	blocks := c.blocks()

	key := ix.hasher.Root(space, c.key(0))
	for r := ix.shardOf(key).root.kid(0, key); r != nil; {
		r.touch(second)
		keys := r.published()
		n := min(len(keys), blocks-f.base)
		keys = keys[:n]
		same, miss := c.match(keys[1:], f.base+1) // finding the run matched its first key
		same++

		// The coverage is loaded after the keys were compared: what it says of
		// them was published after them.
		var next *run
		if left := blocks - f.base - same; left > 0 {
			if same == n {
				miss = c.key(f.base + same)
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
	keys  []block.Key // of a prompt with images
	rows  []row       // parallel to Matches
	trail []step      // the path of a block size, when a member is hybrid
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
