package index

import (
	"sync"
	"sync/atomic"

	"github.com/eppctl/eppctl/internal/core/block"
)

// shards is the number of writer locks. Readers take none, so it only spreads
// writers; one shared system prompt puts everything into a single shard, which
// still takes millions of blocks a second (BenchmarkStore).
const shards = 64

// shard is one root and the lock of everything that hangs below it.
type shard struct {
	mu     sync.Mutex
	blocks int // keys of the runs below, dead tails included
	room   int // keys there is memory for in them
	runs   int
	root   run // has no blocks of its own, and no parent
	secret uint64
	clock  func() int64 // Options.Clock

	// Contention: what says whether one root became too narrow for the writers.
	waits  atomic.Uint64 // locks that were not free at once
	waited atomic.Int64  // ns until they were; stays 0 without a clock
}

func (sh *shard) init(ix *Index, clock func() int64) {
	sh.root.shard, sh.secret, sh.clock = sh, ix.secret, clock
}

func (sh *shard) lock() {
	if !sh.mu.TryLock() {
		sh.wait()
	}
}

func (sh *shard) wait() {
	sh.waits.Add(1)
	if sh.clock == nil {
		sh.mu.Lock()
		return
	}
	since := sh.clock()
	sh.mu.Lock()
	sh.waited.Add(sh.clock() - since)
}

func (sh *shard) unlock() { sh.mu.Unlock() }

// size reads the counts of what is below.
func (sh *shard) size() (blocks, room, runs int) {
	sh.lock()
	defer sh.unlock()
	return sh.blocks, sh.room, sh.runs
}

func (ix *Index) shardOf(root block.Key) *shard { return &ix.shards[root>>58] }
