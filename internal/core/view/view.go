// Package view is the fleet at one instant, as the decision sees it: which pods
// there are, what each caches, how loaded each is and how far each of these can
// be trusted. Reading a view takes no lock.
package view

import (
	"github.com/eppctl/eppctl/internal/core/affinity"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// Fleet is the live state the writers keep: feed writes Index, Telemetry and
// Sync, serve writes Load. It is made once per process.
type Fleet struct {
	Pods      *pod.Table
	Index     *index.Index
	Telemetry *telemetry.Board
	Sync      *SyncBoard
	Load      *Ledger
	// Affinity has where prompts without token ids were placed, by their bytes; nil
	// = not kept. Place writes it; feed takes pods out whose caches are empty.
	Affinity *affinity.Table
}

// View is what one decision reads: the pod set is frozen, the other parts are
// read once per pod and decision.
type View struct {
	Pods      *pod.Set
	Index     *index.Index
	Telemetry *telemetry.Board
	Sync      *SyncBoard
	Load      *Ledger
	Affinity  *affinity.Table
}

// View returns the fleet as it is now.
func (f *Fleet) View() View {
	return View{Pods: f.Pods.Snapshot(), Index: f.Index, Telemetry: f.Telemetry, Sync: f.Sync, Load: f.Load, Affinity: f.Affinity}
}
