// Package index knows which member of the fleet caches which prefix. Events of
// the engines go in, and a prompt's token ids give, per member, how many blocks
// it holds from the start of the prompt and on which tiers.
//
// It is a trie of runs: a run is one array of block keys, grown in place and
// never split; other runs hang below it at any offset. Who holds which stretch
// of a run on which tier is an immutable list behind one atomic pointer. Readers
// take no lock and allocate nothing, and Go's garbage collector is what frees
// the versions they still hold. All namespaces share the trie: the key under
// which a prompt's first block hangs has the namespace mixed in.
//
// A lookup beside a writer may undercount and must never overcount: a missed
// hit costs one prefill, a false one sends requests to the wrong pod until
// somebody notices. Hence publication goes keys, length, coverage, and
// withdrawal the other way round.
//
// Each run of a path is read at an instant of its own. Beside writers a lookup
// may so join stretches that were never held at one instant; each block it
// reports was held at some time while it ran.
//
// Locks are taken in this order: Index.admin, member.mu, expectations.mu,
// shard.mu, runTable.mu; sizes.mu is taken last and alone.
package index

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// Defaults of Options.
const (
	DefaultMaxBlocks = 10_000_000
	DefaultTTL       = 15 * time.Minute
)

// Options configure an Index.
type Options struct {
	Seed      uint64        // of the secret hash constants: random, once per process
	MaxBlocks int           // distinct blocks kept after a Sweep; 0 = DefaultMaxBlocks
	MaxBytes  int64         // the same in bytes, as Stats counts them; 0 = no such cap
	TTL       time.Duration // of copies that are not on a GPU; 0 = DefaultTTL, negative = none
	// Clock tells ns, from any start, and times how long writers wait for each
	// other. nil = waits are counted only.
	Clock func() int64
}

// Index is the block index of the fleet. Lookup, Expect and Stats may be called
// from any goroutine. Events of one member must be applied in wire order by one
// goroutine; different members may be written at the same time.
type Index struct {
	hasher *block.Hasher
	seed   uint64
	secret uint64 // odd; keeps hash tables from being attacked
	max    budget
	ttl    int64 // ns, 0 = none

	shards [shards]shard
	runs   runTable
	tables tablePool
	sizes  sizes
	clock  atomic.Uint32 // seconds, as told by the latest Apply or Sweep

	admin   sync.Mutex // Register, and one Sweep at a time
	members [pod.MaxMembers]atomic.Pointer[member]
	lost    [pod.MaxMembers]atomic.Pointer[loss] // nil = nothing; written under member.mu
	words   atomic.Int32                         // 64-bit words that hold every member registered so far
	hybrids atomic.Int32                         // members with several cache groups

	sweep sweeper
	// Counters of what Sweep did.
	evicted, expired, trimmed atomic.Uint64
}

// New returns an empty index.
func New(o Options) *Index {
	ix := &Index{seed: o.Seed, hasher: block.NewHasher(o.Seed), max: budget{o.MaxBlocks, o.MaxBytes}, ttl: int64(o.TTL)}
	if ix.max.blocks <= 0 {
		ix.max.blocks = DefaultMaxBlocks
	}
	if ix.max.bytes <= 0 {
		ix.max.bytes = math.MaxInt64
	}
	switch {
	case o.TTL == 0:
		ix.ttl = int64(DefaultTTL)
	case o.TTL < 0:
		ix.ttl = 0
	}
	ix.secret = uint64(ix.hasher.Key([]uint32{0x6b696473, 1})) | 1
	for i := range ix.shards {
		ix.shards[i].init(ix, o.Clock)
	}
	ix.sizes.init()
	return ix
}

// Owner is what the fleet knows of a member before its first event.
type Owner struct {
	Model  string // base model; part of the namespace of all its blocks
	Engine pod.Engine
	Blocks int // KV blocks of the engine, sizes the tables; 0 = not told
	// BlockSize in tokens, if the engine told it. It serves expectations until
	// the first event tells it again; events that differ from it win.
	BlockSize int
}

// Register announces a member. Its events count from then on, and its counters
// begin anew. Registering it again with another model drops what it held.
func (ix *Index) Register(id pod.Member, o Owner) {
	if int(id) >= pod.MaxMembers {
		return
	}
	ix.admin.Lock()
	defer ix.admin.Unlock()
	m := ix.members[id].Load()
	if m == nil {
		m = newMember(ix, id)
	}
	m.mu.Lock()
	if m.owner.Model != o.Model {
		ix.drop(m)
	}
	m.owner, m.stats = o, MemberStats{}
	m.told.Store(int32(o.BlockSize))
	m.rev.hint, m.capacity = o.Blocks, o.capacity()
	m.mu.Unlock()
	ix.words.Store(max(ix.words.Load(), int32(id)/64+1))
	ix.members[id].Store(m)
}

func (ix *Index) member(id pod.Member) *member {
	if int(id) >= pod.MaxMembers {
		return nil
	}
	return ix.members[id].Load()
}

// BlockSize returns the tokens per block of a member, as its events told; 0 if
// there was none yet.
func (ix *Index) BlockSize(id pod.Member) int {
	m := ix.member(id)
	if m == nil {
		return 0
	}
	return int(m.size.Load())
}

// LargestBlock returns the greatest block size of any member, 0 if none is known.
func (ix *Index) LargestBlock() (most int) {
	for _, size := range ix.sizes.now() {
		most = max(most, size)
	}
	return most
}

// tick moves the coarse clock. Going back is harmless: stamps only rank runs.
func (ix *Index) tick(now int64) uint32 {
	s := uint32(now / int64(time.Second))
	if ix.clock.Load() != s {
		ix.clock.Store(s)
	}
	return s
}
