package native

import (
	"context"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
)

// Cache remembers the ids of chunks of texts. A text is cut at the first safe place
// (see cutter) every chunkSize bytes, so a conversation that goes on has the chunks of
// its last turn again, and only what is new is encoded. What is remembered is the
// chunk's own text and ids, not a prefix of the prompt: memory grows with the text,
// not with its square, and a hit is compared byte by byte, so it is never wrong.
//
// Lookups take no lock and write nothing but a mark that is already there when a
// chunk is hit often. Storing locks one of the shards. All methods may be called from
// any goroutine.
type Cache struct {
	tok    *Tokenizer
	seed   maphash.Seed
	shards [cacheShards]cacheShard
}

const (
	// chunkSize: a chunk costs about 0.2 µs to find and as much for each kilobyte to
	// compare, where encoding a kilobyte takes 5 µs; the tail of a text, on average
	// half a chunk, is encoded each time.
	chunkSize   = 4 << 10
	maxChunk    = 64 << 10 // a longer one is not kept
	cacheShards = 16
	cacheWays   = 4
	// chunkCost is what a chunk takes beside its text and ids.
	chunkCost = 128
	// typicalChunk is used to size the table: text, and an id of four bytes for each
	// four of text.
	typicalChunk = 2*chunkSize + chunkCost
)

type cacheShard struct {
	slots []slot     // sets of cacheWays
	mu    sync.Mutex // of what follows, and of changes to slots
	bytes int
	limit int
	hand  int
	_     [24]byte // shards apart by a cache line
}

// slot is where a chunk is, or none.
type slot struct{ atomic.Pointer[chunk] }

// chunk is immutable but for its marks.
type chunk struct {
	hash uint64
	part part
	text string
	ids  []uint32
	used atomic.Bool // since the hand last passed
	// next is where the chunk is that came behind this one the last time. A text that
	// came before has its chunks one behind the other, and none of them has to be hashed,
	// which took a third of the time. What is there is compared as any other, and it is
	// a place and no chunk, so that none is kept alive.
	next atomic.Pointer[slot]
}

// is reports whether the chunk is this text, at such a place.
func (c *chunk) is(p part, text string) bool { return c.part == p && c.text == text }

// mark writes only what is not there yet.
func (c *chunk) mark() {
	if !c.used.Load() {
		c.used.Store(true)
	}
}

// behind returns the chunk of this text if it came behind c the last time.
func (c *chunk) behind(p part, text string) *chunk {
	if c == nil {
		return nil
	}
	if at := c.next.Load(); at != nil {
		if x := at.Load(); x != nil && x.is(p, text) {
			x.mark()
			return x
		}
	}
	return nil
}

func (c *chunk) leadTo(next *slot) {
	if c != nil && next != nil {
		c.next.Store(next)
	}
}

func (c *chunk) size() int { return len(c.text) + 4*len(c.ids) + chunkCost }

// NewCache makes a cache of at most limit bytes in front of a tokenizer.
func NewCache(t *Tokenizer, limit int) *Cache {
	c := &Cache{tok: t, seed: maphash.MakeSeed()}
	sets := 1
	for 2*sets*cacheWays*typicalChunk*cacheShards <= 2*limit { // half empty: sets fill unevenly
		sets *= 2
	}
	for i := range c.shards {
		c.shards[i].slots = make([]slot, sets*cacheWays)
		c.shards[i].limit = limit / cacheShards
	}
	return c
}

// Encode returns what the tokenizer's Encode does, and how many bytes of the text
// were not encoded but found.
func (c *Cache) Encode(text string, special bool) (ids []uint32, reused int, err error) {
	return c.EncodeContext(context.Background(), text, special)
}

// EncodeContext is Encode until ctx ends, which is looked at as EncodeContext of a Tokenizer does.
func (c *Cache) EncodeContext(ctx context.Context, text string, special bool) (ids []uint32, reused int, err error) {
	if len(text) <= chunkSize || len(text) > MaxText {
		ids, err = c.tok.EncodeContext(ctx, text, special)
		return ids, 0, err
	}
	t := c.tok
	sc := t.scratches.get(ctx)
	defer t.scratches.put(sc)
	out := sc.ids[:0]
	if special {
		out = append(out, t.surround.before...)
	}
	p := part{first: true}
	var last *chunk
	for at := 0; ; {
		end, inside, ok := t.cut(text, at, chunkSize)
		if !ok {
			if out, err = t.append(out, text[at:], p, sc); err != nil {
				return nil, 0, err
			}
			break
		}
		found := false
		if out, last, found, err = c.append(out, last, text[at:end], p, sc); err != nil {
			return nil, 0, err
		}
		if found {
			reused += end - at
		}
		at, p = end, part{inside: inside}
	}
	if special {
		out = append(out, t.surround.after...)
	}
	sc.keep(out)
	return append([]uint32(nil), out...), reused, nil
}

// append appends the ids of a chunk and returns it if it is kept, and whether it was
// found. last is the chunk before.
func (c *Cache) append(out []uint32, last *chunk, text string, p part, sc *scratch) (_ []uint32, x *chunk, found bool, err error) {
	if x = last.behind(p, text); x != nil {
		return append(out, x.ids...), x, true, nil
	}
	h := maphash.String(c.seed, text)
	x, at := c.find(h, p, text)
	if x != nil {
		last.leadTo(at)
		return append(out, x.ids...), x, true, nil
	}
	from := len(out)
	if out, err = c.tok.append(out, text, p, sc); err != nil {
		return nil, nil, false, err
	}
	x, at = c.store(h, p, text, out[from:])
	last.leadTo(at)
	return out, x, false, nil
}

func (c *Cache) set(h uint64) (*cacheShard, []slot) {
	s := &c.shards[h%cacheShards]
	at := int(h/cacheShards) & (len(s.slots)/cacheWays - 1) * cacheWays
	return s, s.slots[at : at+cacheWays]
}

func (c *Cache) find(h uint64, p part, text string) (*chunk, *slot) {
	_, set := c.set(h)
	for i := range set {
		if x := set[i].Load(); x != nil && x.hash == h && x.is(p, text) {
			x.mark()
			return x, &set[i]
		}
	}
	return nil, nil
}

// store returns the chunk and its place, nil if it is too large to keep.
func (c *Cache) store(h uint64, p part, text string, ids []uint32) (*chunk, *slot) {
	if len(text) > maxChunk {
		return nil, nil
	}
	s, set := c.set(h)
	x := &chunk{hash: h, part: p, text: strings.Clone(text), ids: append([]uint32(nil), ids...)}
	if x.size() > s.limit {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := &set[h>>32%cacheWays]
	for i := range set {
		old := set[i].Load()
		if old == nil || old.hash == h && old.is(p, text) { // free, or stored by another meanwhile
			at = &set[i]
			break
		}
		if !old.used.Load() {
			at = &set[i]
		}
	}
	s.drop(at)
	for s.bytes+x.size() > s.limit {
		s.sweep()
	}
	at.Store(x)
	s.bytes += x.size()
	return x, at
}

func (s *cacheShard) drop(at *slot) {
	if old := at.Swap(nil); old != nil {
		s.bytes -= old.size()
	}
}

// sweep moves the hand by one slot: a chunk used since its last pass gets another
// round.
func (s *cacheShard) sweep() {
	at := &s.slots[s.hand]
	s.hand = (s.hand + 1) % len(s.slots)
	if x := at.Load(); x != nil && x.used.Load() {
		x.used.Store(false)
		return
	}
	s.drop(at)
}

// Bytes returns what the cache holds.
func (c *Cache) Bytes() (n int) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		n += s.bytes
		s.mu.Unlock()
	}
	return n
}
