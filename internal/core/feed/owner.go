package feed

import (
	"cmp"

	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// enlist tells the index about the pod's members, again when a sample tells
// more.
func (k *keeper) enlist(s *telemetry.Sample) {
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.owner
	if s == nil {
		o.Model, o.Engine = k.spec.Model, k.spec.Engine
		o.BlockSize = cmp.Or(o.BlockSize, k.spec.BlockSize)
	} else {
		o = sized(o, s)
	}
	if o == k.owner && s != nil {
		return
	}
	k.owner = o
	for _, m := range k.pod.Members {
		k.feed.fleet.Index.Register(m, o)
	}
}

// sized completes what is known of a member by what a page tells.
func sized(o index.Owner, s *telemetry.Sample) index.Owner {
	if s.KVBlocks.Known {
		o.Blocks = s.KVBlocks.Count()
	}
	if s.KVBlockSize.Known {
		o.BlockSize = s.KVBlockSize.Count()
	}
	return o
}

// created hears from an event source how many blocks the engine has on its GPU,
// on that source's goroutine. A metrics page that says so too is asked more often
// and wins.
func (k *keeper) created(blocks int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.owner.Blocks == blocks {
		return
	}
	k.owner.Blocks = blocks
	for _, m := range k.pod.Members {
		k.feed.fleet.Index.Register(m, k.owner)
	}
}

// sampled hears of every good scrape, on the scraper's goroutine.
func (k *keeper) sampled(s *telemetry.Sample, restart string) {
	k.enlist(s)
	k.mu.Lock()
	defer k.mu.Unlock()
	if restart != "" {
		k.restarts++
	}
	if k.inTurn.sees(s.ProcessStart) {
		k.log.Warn("several engines at one address: " + hintSeveral)
	}
	id := identity{id: k.restarts, guessed: true, at: s.At}
	if s.ProcessStart.Known {
		id = identity{id: s.ProcessStart.V, at: s.At}
	}
	for _, sub := range k.subs {
		if sub != nil {
			sub.identify(id)
		}
	}
}
