package serve

import (
	"crypto/rand"
	"encoding/binary"

	"github.com/eppctl/eppctl/internal/core/affinity"
	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

// newFleet makes the live state of a process. The index's hash constants are
// random: clients choose the token ids that are hashed.
func newFleet(c *Config) *view.Fleet {
	var seed [8]byte
	_, _ = rand.Read(seed[:]) // never fails
	return &view.Fleet{
		Pods: pod.NewTable(),
		Index: index.New(index.Options{
			Seed: binary.LittleEndian.Uint64(seed[:]), Clock: feed.Now,
			MaxBlocks: c.Limits.Blocks, MaxBytes: int64(c.Limits.IndexBytes),
		}),
		Telemetry: &telemetry.Board{},
		Sync:      &view.SyncBoard{},
		Load:      view.NewLedger(),
		Affinity:  affinity.NewTable(affinity.DefaultChunks),
	}
}

func hasEvents(p *pod.Pod) bool { return p.Spec.HasEvents() }
