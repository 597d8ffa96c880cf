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

	// With these, all that a store at the run's end needs is in one cache line.
	cap    uint32
	id     uint32
	parent *run // nil for a shard's root; a trim moves it, so the shard is locked
	shard  *shard
	first  block.Key

	space  spaces
	off    uint32    // offset in parent where it hangs
	dead   bool      // evicted: out of the trie, still named by reverse maps
	expect *expected // live expectations, nil = none
	_      [32]byte  // to two lines: objects of that size begin with one
}

// spaces names a run's namespace twice. Engines state the salt on the first
// store of a prompt only, so a child's store is compared without it.
type spaces struct{ full, unsalted block.Space }

// isRoot reports that the run is its shard's root. It may be asked without a lock.
func (r *run) isRoot() bool { return r == &r.shard.root }

// keys returns the first n keys; n is at most what run.n ever was.
func (r *run) keys(n uint32) []block.Key { return unsafe.Slice(r.arr.Load(), n) }

// published returns the keys a reader may see: the length first, see run.n.
func (r *run) published() []block.Key {
	n := r.n.Load()
	r.step(stageLength, n)
	return r.keys(n)
}

// warm reads what a store at the end of the run will need. The lines come in
// together here; behind the atomic operations of a store they would one by one.
func (r *run) warm() (sum uint64) {
	if r.n.Load() > 0 { // a root has no array
		keys := r.published()
		sum = uint64(keys[len(keys)-1])
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
	r.step(stageLink, 0)
	parent.addKid(r) // last: a reader that finds it finds it whole
	return r
}

// append adds keys at the end. The shard is locked.
func (r *run) append(keys []block.Key) {
	r.n.Store(r.extend(keys)) // the array first, see run.n
	r.shard.blocks += len(keys)
}

// extend writes keys behind the published ones, where no reader looks, and
// publishes the array if it is a new one. It returns the length to publish.
func (r *run) extend(keys []block.Key) (n uint32) {
	n = r.n.Load()
	need := n + uint32(len(keys))
	if need <= r.cap {
		copy(unsafe.Slice(r.arr.Load(), r.cap)[n:], keys)
		return need
	}
	// Doubling while small, a quarter more when long: decoding appends one
	// block at a time, and the slack of long runs is memory.
	a := slices.Grow([]block.Key(nil), int(max(need, min(2*need, need+need/4+256)))) // not cleared
	a = append(append(a, r.keys(n)...), keys...)
	r.arr.Store(unsafe.SliceData(a))
	r.shard.room += cap(a) - int(r.cap)
	r.cap = uint32(cap(a))
	return need
}

// reap takes runs that hold nothing out of the trie, upwards. The shard is
// locked. Coverage went first, so a reader in between sees less, never more.
func (ix *Index) reap(r *run) {
	for !r.isRoot() && r.cover.Load() == nil && r.kidCount() == 0 && !r.dead {
		p := r.parent
		ix.unlink(r)
		ix.free(r)
		r = p
	}
}

// unlink takes a run out of its parent. The shard is locked.
func (ix *Index) unlink(r *run) {
	r.step(stageUnlink, 0)
	r.parent.dropKid(r)
	r.dead = true
	r.shard.runs--
	r.shard.blocks -= int(r.n.Load())
	r.shard.room -= int(r.cap)
}

// free gives the run's number back: it is out of the trie and of every reverse map.
func (ix *Index) free(r *run) {
	r.step(stageFree, 0)
	ix.runs.free(r.id)
}
