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
	root   run // has no blocks of its own, and no parent
	secret uint64

	blocks atomic.Int64  // keys of the runs below, dead tails included
	runs   atomic.Int64  // runs below
	waits  atomic.Uint64 // locks that were not free at once
}

func (sh *shard) init(ix *Index) { sh.root.shard, sh.secret = sh, ix.secret }

// lock counts contention: the measure that says whether one root became too
// narrow for the writers.
func (sh *shard) lock() {
	if !sh.mu.TryLock() {
		sh.waits.Add(1)
		sh.mu.Lock()
	}
}

func (sh *shard) unlock() { sh.mu.Unlock() }

func (ix *Index) shardOf(root block.Key) *shard { return &ix.shards[root>>58] }
