package index

import (
	"sync/atomic"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// loss is what a member held when its engine emptied its cache: the first blocks of
// prompts, no more, since a prompt matches something exactly while its first block
// is held. A block leaves it when it is stored again, for what becomes of it then is
// no longer the loss's doing; and all of it is forgotten once the member holds as
// many blocks as it did, for by then the engine might have evicted them anyway.
//
// The keys are those of the trie: nobody without the secret can tell what they are of.
type loss struct {
	size   int // tokens per block
	blocks int // held before

	// Written before the loss is published and never after, so that decisions read it
	// without a lock. The value says that the block has not been stored again.
	first map[block.Key]*atomic.Bool
	at    atomic.Int64 // set before sure
	sure  atomic.Bool  // the engine's cache was emptied, and not our sight of it lost
}

// maxLost bounds the prompts of one loss, and so what a publisher can have kept: a
// pool of 100,000 blocks of 16 tokens holds no more that have 100 tokens each.
const maxLost = 1 << 14

// begins reports that the member holds the run's first block and that it is a
// prompt's. The shard is locked.
func (r *run) begins(m pod.Member) bool {
	if !r.parent.isRoot() {
		return false
	}
	for _, g := range r.groups() {
		if g.start == 0 && g.layer.announced() && g.members.has(m) {
			return true
		}
	}
	return false
}

// lose keeps what empty takes from the member. Of a hybrid model the first block
// alone promises nothing, so there is nothing to keep. m.mu is held.
func (ix *Index) lose(m *member, empty func()) {
	l := &loss{size: int(m.size.Load()), blocks: m.rev.live, first: map[block.Key]*atomic.Bool{}}
	if len(m.groups.windows) == 0 {
		m.losing = l
	}
	empty()
	m.losing = nil
	if len(l.first) > 0 {
		ix.lost[m.id].Store(l)
	}
}

// add takes the first block of a prompt in, while it is being lost.
func (l *loss) add(key block.Key) {
	if len(l.first) < maxLost {
		gone := &atomic.Bool{}
		gone.Store(true)
		l.first[key] = gone
	}
}

// regained takes note that a prompt's first block is held again. m.mu is held.
func (ix *Index) regained(m *member, key block.Key) {
	l := ix.lost[m.id].Load()
	if l == nil {
		return
	}
	if int(m.size.Load()) != l.size { // its keys say nothing of these blocks
		ix.lost[m.id].Store(nil)
		return
	}
	if gone := l.first[key]; gone != nil {
		gone.Store(false)
	}
}

// refilled forgets the loss of a member that holds as much again. m.mu is held.
func (ix *Index) refilled(m *member) {
	if l := ix.lost[m.id].Load(); l != nil && m.rev.live >= l.blocks {
		ix.lost[m.id].Store(nil)
	}
}

// Restart is Purge of an engine that is, or may be, a new process. Which of the two
// it is Emptied tells, or nobody.
func (ix *Index) Restart(id pod.Member) {
	ix.purge(id, func(m *member) { ix.lose(m, func() { ix.drop(m) }) })
}

// Emptied tells that what a member lost last, by a clear or by Restart, its engine
// has lost: at a time in ns, 0 = not known. It is called by the goroutine that applies the
// member's events.
func (ix *Index) Emptied(id pod.Member, at int64) {
	if l := ix.lost[id].Load(); l != nil && !l.sure.Load() {
		l.at.Store(at)
		l.sure.Store(true)
	}
}

// Lost reports that p would match something on a member, had its engine not emptied its
// cache, and when it did: see Emptied. It may be called from anywhere and takes no lock.
func (ix *Index) Lost(id pod.Member, p *block.Prompt) (at int64, lost bool) {
	l := ix.lost[id].Load()
	if l == nil || !l.sure.Load() {
		return 0, false
	}
	tokens := p.Known()
	if len(tokens) < l.size || len(p.Tokens) <= l.size {
		return 0, false
	}
	h := ix.hasher
	first := h.WithExtra(h.Key(tokens[:l.size]), p.Extra(0, l.size))
	gone := l.first[h.Root(h.Space(block.Namespace{Model: p.Model, LoRA: p.LoRA, Salt: p.Salt, Size: l.size}), first)]
	if gone == nil || !gone.Load() {
		return 0, false
	}
	return l.at.Load(), true
}
