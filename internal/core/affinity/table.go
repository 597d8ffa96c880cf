package affinity

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/eppctl/eppctl/internal/core/pod"
)

const (
	// DefaultChunks bounds a table: 128 MiB of distinct prompt text, about 33
	// million tokens, or 13 pods with pools of 150,000 blocks of 16 tokens. An
	// entry is 64 bytes, and half as much in its shard's map: 25 MB when full.
	DefaultChunks = 256 << 10
	numShards     = 64
	// holders are the pods that a chunk remembers, the last ones it was placed on:
	// what fills a cache line with the rest of an entry. A prefix that more pods
	// have is one that load alone may place.
	numHolders = 12
)

// Table keeps which pods were given which prefixes, the least recently placed
// chunks leaving first. Any goroutine may call any method; each takes the lock of
// one of 64 shards for one chunk at a time. The memory grows with use up to its
// bound, and then nothing is allocated. A nil Table is an empty one.
type Table struct {
	seed   maphash.Seed
	limit  int                         // entries per shard
	placed [pod.MaxMembers]atomic.Bool // by pod, since Forget
	shards [numShards]shard
}

// NewTable returns a table for this many chunks, rounded up to a multiple of 64.
func NewTable(chunks int) *Table {
	t := &Table{seed: maphash.MakeSeed(), limit: (max(chunks, 1) + numShards - 1) / numShards}
	for i := range t.shards {
		t.shards[i] = shard{at: map[Key]int32{}, newest: none, oldest: none}
	}
	return t
}

// Place notes that a prompt was sent to a pod. The last chunk is noted first, so
// that where room is short the beginning outlives the end.
func (t *Table) Place(p *pod.Pod, prefix Prefix) {
	h := holderOf(p)
	if t == nil || h == 0 { // of four million epochs one looks like nobody
		return
	}
	for i := len(prefix.Keys) - 1; i >= 0; i-- {
		t.shard(prefix.Keys[i]).place(prefix.Keys[i], h, t.limit)
	}
	// Said after the fact, so that no Forget misses what a later one would not find.
	if len(prefix.Keys) > 0 && !t.placed[p.ID].Load() { // a write takes the cache line from the others
		t.placed[p.ID].Store(true)
	}
}

// Lookup finds how much of a prompt each pod of the set was given before. It
// moves nothing in the table, and allocates nothing once out has been used.
func (t *Table) Lookup(prefix Prefix, set *pod.Set, out *Result) {
	out.reset()
	if t == nil {
		return
	}
	for i, k := range prefix.Keys {
		pods, ok := t.shard(k).get(k)
		if !ok {
			return
		}
		// A pod that has this chunk was given all before it, though other pods may
		// have pushed it out of the holders of those.
		for _, h := range pods {
			if h == 0 {
				break
			}
			if p := set.ByID(h.id()); p != nil && holderOf(p) == h {
				out.put(p.ID, i+1)
			}
		}
	}
}

// Forget takes a pod out of all entries: it left the fleet, or its engine began
// anew with an empty cache. It looks at every entry, which takes milliseconds,
// unless nothing was placed there since the last time: engines may clear their
// caches as often as they like. A prompt that is placed meanwhile may stay.
func (t *Table) Forget(id pod.ID) {
	if t == nil || !t.placed[id].Swap(false) {
		return
	}
	for i := range t.shards {
		t.shards[i].forget(id)
	}
}

// Chunks counts the entries.
func (t *Table) Chunks() (n int) {
	if t == nil {
		return 0
	}
	for i := range t.shards {
		n += t.shards[i].len()
	}
	return n
}

func (t *Table) shard(k Key) *shard { return &t.shards[k%numShards] }
