package index

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// member is what the index knows of one cache owner. Everything but size and
// the expectations belongs to mu, which one event holds from begin to end.
type member struct {
	// What every event reads stands together: decoding goes round the members,
	// and each line of memory it touches is fetched anew.
	mu       sync.Mutex
	size     atomic.Int32 // tokens per block, 0 = not known yet; written under mu
	told     atomic.Int32 // Owner.BlockSize
	id       pod.Member
	sizing   sizing
	capacity int // Owner's, 0 = not told
	groups   groups
	rev      reverse
	others   others
	named    named
	sink     uint64
	chunks   chunks
	parked   orphans
	stats    MemberStats
	owner    Owner
	hybrid   atomic.Pointer[hybrid] // nil = one cache group
	losing   *loss                  // what is being gathered of it
	expiry   int64                  // when the TTL is due next

	// Scratch of one event.
	keys []block.Key
	// vacated are due places whose last hash left during the event.
	vacated []place
	// came and gone are hashes that began and ceased to be live in it; kept for
	// members with windows only.
	came, gone []standing

	expected expectations
}

func newMember(ix *Index, id pod.Member) *member {
	m := &member{id: id}
	m.rev.secret, m.rev.pool = ix.secret, &ix.tables
	return m
}

// named is the namespace of the latest store: most name the same.
type named struct {
	lora  string
	size  int
	space block.Space
}

// place is where a block stands in the trie.
type place struct{ run, off uint32 }

// stretch is a part of a stored chain that lies in one run.
type stretch struct {
	run    uint32
	off, n uint32
	// before is what the run's coverage was, if the member held part of the
	// stretch already.
	before *coverage
}

// chain is a store in the form the trie takes it: what orphans keep, since keys
// do not depend on where a block stands.
type chain struct {
	layer     layer
	span      int // blocks per hash: 1, or more for offload chunks
	hashes    []uint64
	keys      []block.Key // span per hash
	parent    uint64
	hasParent bool
	space     spaces
	salted    bool // space.full was stated, else the parent's counts
	late      bool // was parked: what the member stored meanwhile is newer
	// gone tells of each hash of a late one whether it was removed meanwhile; nil = none.
	// Then hashes are those that are left, and keys end with the last of them.
	gone []bool
}

// clone copies c and what it points to. It names each field, since the compiler
// would otherwise take c's slices to outlive the event and allocate for them.
func (c *chain) clone() chain {
	return chain{
		layer: c.layer, span: c.span, hashes: slices.Clone(c.hashes), keys: slices.Clone(c.keys),
		parent: c.parent, hasParent: c.hasParent, space: c.space, salted: c.salted, late: c.late,
	}
}
