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
	slots []atomic.Pointer[chunk] // sets of cacheWays
	mu    sync.Mutex              // of what follows, and of changes to slots
	bytes int
	limit int
	hand  int
	_     [24]byte // shards apart by a cache line
}

// chunk is immutable but for used.
type chunk struct {
	hash uint64
	part part
	text string
	ids  []uint32
	used atomic.Bool // since the hand last passed
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
		c.shards[i].slots = make([]atomic.Pointer[chunk], sets*cacheWays)
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
	for at := 0; ; {
		end, inside, ok := t.cut(text, at, chunkSize)
		if !ok {
			if out, err = t.append(out, text[at:], p, sc); err != nil {
				return nil, 0, err
			}
			break
		}
		piece := text[at:end]
		h := maphash.String(c.seed, piece)
		if hit := c.find(h, p, piece); hit != nil {
			out = append(out, hit.ids...)
			reused += len(piece)
		} else {
			from := len(out)
			if out, err = t.append(out, piece, p, sc); err != nil {
				return nil, 0, err
			}
			c.store(h, p, piece, out[from:])
		}
		at, p = end, part{inside: inside}
	}
	if special {
		out = append(out, t.surround.after...)
	}
	sc.keep(out)
	return append([]uint32(nil), out...), reused, nil
}

func (c *Cache) set(h uint64) (*cacheShard, []atomic.Pointer[chunk]) {
	s := &c.shards[h%cacheShards]
	at := int(h/cacheShards) & (len(s.slots)/cacheWays - 1) * cacheWays
	return s, s.slots[at : at+cacheWays]
}

func (c *Cache) find(h uint64, p part, text string) *chunk {
	_, set := c.set(h)
	for i := range set {
		x := set[i].Load()
		if x != nil && x.hash == h && x.part == p && x.text == text {
			if !x.used.Load() {
				x.used.Store(true)
			}
			return x
		}
	}
	return nil
}

func (c *Cache) store(h uint64, p part, text string, ids []uint32) {
	if len(text) > maxChunk {
		return
	}
	s, set := c.set(h)
	x := &chunk{hash: h, part: p, text: strings.Clone(text), ids: append([]uint32(nil), ids...)}
	if x.size() > s.limit {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := &set[h>>32%cacheWays]
	for i := range set {
		old := set[i].Load()
		if old == nil || old.hash == h && old.part == p && old.text == text { // free, or stored by another meanwhile
			slot = &set[i]
			break
		}
		if !old.used.Load() {
			slot = &set[i]
		}
	}
	s.drop(slot)
	for s.bytes+x.size() > s.limit {
		s.sweep()
	}
	slot.Store(x)
	s.bytes += x.size()
}

func (s *cacheShard) drop(slot *atomic.Pointer[chunk]) {
	if old := slot.Swap(nil); old != nil {
		s.bytes -= old.size()
	}
}

// sweep moves the hand by one slot: a chunk used since its last pass gets another
// round.
func (s *cacheShard) sweep() {
	slot := &s.slots[s.hand]
	s.hand = (s.hand + 1) % len(s.slots)
	if x := slot.Load(); x != nil && x.used.Load() {
		x.used.Store(false)
		return
	}
	s.drop(slot)
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
