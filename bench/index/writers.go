package main

import (
	"fmt"
	"time"

	"github.com/eppctl/eppctl/bench/phase"
	"github.com/eppctl/eppctl/bench/product"
	"github.com/eppctl/eppctl/bench/workload"
)

// writers is how many goroutines store at once: more than this machine runs, and
// fewer than a fleet has.
const writers = 8

// contended says what it costs that one system prompt puts a fleet into one
// shard. Beside it stands the same workload with a root for each app, in shards of
// its own: what locks below the root could gain at most.
func (b *bench) contended() error {
	for _, per := range []int{workload.PerEvent, 1} {
		suffix := ""
		if per == 1 {
			suffix = "_single"
		}
		alone, _, err := b.write(b.small, 1, per)
		if err != nil {
			return err
		}
		one, waits, err := b.write(b.small, writers, per)
		if err != nil {
			return err
		}
		apart, _, err := b.write(b.rooted, writers, per)
		if err != nil {
			return err
		}
		b.add("writers_1"+suffix, alone)
		b.add("writers_8"+suffix, one)
		b.add("writers_8_many_roots"+suffix, apart)
		b.add("lock_waits"+suffix, waits.perSecond)
		b.add("lock_waited"+suffix, waits.share)
	}
	return nil
}

// waits is what writers waited for each other.
type waits struct{ perSecond, share float64 }

// write loads a fresh index by n goroutines: blocks per second of the wall.
func (b *bench) write(f *fleet, n, per int) (rate float64, x waits, err error) {
	ix := product.New(f.Workload, false)
	handles := []phase.Index{ix}
	for len(handles) < n {
		handles = append(handles, ix.Handle())
	}
	blocks, wall := phase.Writers(handles, f.Workload, per)
	if err := ix.Check(f.Workload, f.one); err != nil {
		return 0, x, fmt.Errorf("%d writers: %w", n, err)
	}
	s := ix.Stats()
	var times uint64
	var waited time.Duration
	for i := range s.ShardWaits {
		times += s.ShardWaits[i]
		waited += s.ShardWaited[i]
	}
	x = waits{float64(times) / wall.Seconds(), waited.Seconds() / wall.Seconds() / float64(n)}
	return float64(blocks) / wall.Seconds(), x, nil
}
