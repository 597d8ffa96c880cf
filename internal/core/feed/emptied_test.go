package feed

import (
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/affinity"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

// Prompts that were sent to a pod are no reason to send more there once its cache is
// empty: when it was cleared, when its events tell of a new process, and when its
// metrics page does, events or not. A gap in its events is no such word.
func TestEmptyCacheIsForgotten(t *testing.T) {
	for name, c := range map[string]struct {
		events  bool
		empties func(e *engine, pub *zmtp.Publisher)
		stays   bool
	}{
		"cleared":           {events: true, empties: func(_ *engine, pub *zmtp.Publisher) { pub.Send("", 11, cleared()) }},
		"numbers went back": {events: true, empties: func(_ *engine, pub *zmtp.Publisher) { pub.Send("", 0, stored(2)) }},
		"start time, without events": {empties: func(e *engine, _ *zmtp.Publisher) {
			e.started.Store(2000)
		}},
		"gap": {events: true, stays: true, empties: func(_ *engine, pub *zmtp.Publisher) { pub.Send("", 20, stored(2)) }},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, "m")
			pub := publisher(t, "127.0.0.1:0", zmtp.Options{})
			if c.events {
				e.tells(pub.Addr(), "")
			}
			f, fleet := startFeed(t, Options{})
			fleet.Affinity = affinity.NewTable(64)
			f.Apply([]pod.Spec{{Name: "p", Address: e.address()}, {Name: "other", Address: "127.0.0.1:1"}})
			p := waitPod(t, fleet, "p", func(p *pod.Pod) bool { return p.Spec.Model == "m" })
			eventually(t, "a first page", func() bool { return fleet.Telemetry.Get(p.ID).Sample != nil }, nil)
			if c.events {
				subscribed(t, pub)
				pub.Send("", 10, stored(1))
				waitHeld(t, fleet, p.Members[0], prompt("m", 1), 2)
			}

			d := fleet.Affinity.Digest(affinity.Namespace{Model: "m"})
			d.Write([]byte(strings.Repeat("x", affinity.ChunkBytes)))
			work := view.Work{Bytes: d.Prefix()}
			fleet.Place(p, work, Now())
			fleet.Place(fleet.Pods.Snapshot().ByName("other"), work, Now())
			sent := func(name string) int {
				var out affinity.Result
				set := fleet.Pods.Snapshot()
				fleet.Affinity.Lookup(d.Prefix(), set, &out)
				return out.Bytes(set.ByName(name).ID)
			}
			if sent("p") == 0 {
				t.Fatal("nothing was placed")
			}
			c.empties(e, pub)
			if c.stays {
				waitHeld(t, fleet, p.Members[0], prompt("m", 1), 0) // its blocks are dropped
				if sent("p") == 0 {
					t.Error("forgotten though the engine may hold it")
				}
				return
			}
			eventually(t, "forgotten", func() bool { return sent("p") == 0 }, nil)
			if sent("other") == 0 {
				t.Error("another pod's cache is not empty")
			}
		})
	}
}
