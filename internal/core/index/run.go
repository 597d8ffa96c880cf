package index

import (
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/eppctl/eppctl/internal/core/block"
)

// run is a stretch of consecutive blocks. Its keys only ever get more, and none
// changes, so that (run, offset) names a block for life; a run whose tail is
// dead is replaced by a shorter twin of the same id (trim.go), never cut.
//
// Readers use arr, n, cover, kids and read; the other fields belong to whoever
// holds the shard's lock.
type run struct {
	// n keys are published. A writer stores the array before n and a reader
	// loads n before the array: whatever array it then finds is long enough.
	arr   atomic.Pointer[block.Key]
	cover atomic.Pointer[coverage]
	kids  atomic.Pointer[children]
	n     atomic.Uint32
	read  atomic.Uint32 // second of the latest read or store; ranks runs for eviction

	cap    uint32
	off    uint32 // offset in parent where it hangs
	id     uint32
	dead   bool // evicted: out of the trie, still named by reverse maps
	first  block.Key
	space  spaces
	parent *run // nil for a shard's root
	shard  *shard
	expect *expected // live expectations, nil = none
}

// spaces names a run's namespace twice. Engines state the salt on the first
// store of a prompt only, so a child's store is compared without it.
type spaces struct{ full, unsalted block.Space }

// keys returns the first n keys; n is at most what run.n ever was.
func (r *run) keys(n uint32) []block.Key { return unsafe.Slice(r.arr.Load(), n) }

// warm reads what a store at the end of the run will need. The lines come in
// together here; behind the atomic operations of a store they would one by one.
func (r *run) warm() (sum uint64) {
	if n := r.n.Load(); n > 0 {
		sum = uint64(r.keys(n)[n-1])
	}
	if gs := r.groups(); len(gs) > 0 {
		sum ^= uint64(gs[0].start)
	}
	return sum
}

// touch stamps the run as used. A relaxed store once a second per run is all
// that eviction costs the readers.
func (r *run) touch(second uint32) {
	if r.read.Load() != second {
		r.read.Store(second)
	}
}

// newRun makes a run of these keys below parent and publishes it. The shard is
// locked; the caller covers and stamps the run before it unlocks.
func (ix *Index) newRun(parent *run, off uint32, keys []block.Key, sp spaces) *run {
	r := &run{parent: parent, off: off, first: keys[0], space: sp, shard: parent.shard}
	a := append([]block.Key(nil), keys...)
	r.arr.Store(unsafe.SliceData(a))
	r.cap = uint32(cap(a))
	r.n.Store(uint32(len(a)))
	ix.runs.add(r)
	r.shard.runs++
	r.shard.blocks += len(a)
	r.shard.room += cap(a)
	parent.addKid(r) // last: a reader that finds it finds it whole
	return r
}

// append adds keys at the end. The shard is locked.
func (r *run) append(keys []block.Key) {
	n := r.n.Load()
	need := n + uint32(len(keys))
	if need <= r.cap {
		copy(unsafe.Slice(r.arr.Load(), r.cap)[n:], keys)
	} else {
		// Doubling while small, a quarter more when long: decoding appends one
		// block at a time, and the slack of long runs is memory.
		a := slices.Grow([]block.Key(nil), int(max(need, min(2*need, need+need/4+256)))) // not cleared
		a = append(append(a, r.keys(n)...), keys...)
		r.arr.Store(unsafe.SliceData(a)) // before n, see run.n
		r.shard.room += cap(a) - int(r.cap)
		r.cap = uint32(cap(a))
	}
	r.n.Store(need)
	r.shard.blocks += len(keys)
}

// reap takes runs that hold nothing out of the trie, upwards. The shard is
// locked. Coverage went first, so a reader in between sees less, never more.
func (ix *Index) reap(r *run) {
	for r.parent != nil && r.cover.Load() == nil && r.kidCount() == 0 && !r.dead {
		p := r.parent
		ix.unlink(r)
		ix.runs.free(r.id)
		r = p
	}
}

// unlink takes a run out of its parent. The shard is locked.
func (ix *Index) unlink(r *run) {
	r.parent.dropKid(r)
	r.dead = true
	r.shard.runs--
	r.shard.blocks -= int(r.n.Load())
	r.shard.room -= int(r.cap)
}
