package feed

import (
	"fmt"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

// What is lost or begins anew on the wire, as seen in the real index.
func TestLossInTheIndex(t *testing.T) {
	start := func(t *testing.T) (*zmtp.Publisher, *Feed, func(block uint32, tokens int)) {
		pub := publisher(t, "127.0.0.1:0", zmtp.Options{})
		f, fleet := startFeed(t, Options{})
		f.Apply([]pod.Spec{{
			Name: "p", Address: "127.0.0.1:1", Model: "m", Engine: pod.EngineVLLM, Events: []string{"tcp://" + pub.Addr()},
		}})
		m := fleet.Pods.Snapshot().ByName("p").Members[0]
		subscribed(t, pub)
		return pub, f, func(block uint32, tokens int) {
			t.Helper()
			waitHeld(t, fleet, m, prompt("m", block), tokens)
		}
	}
	t.Run("IX-44", func(t *testing.T) {
		pub, f, holds := start(t)
		pub.Send("", 10, stored(1))
		holds(1, 2)
		pub.Send("", 15, stored(2)) // 11 to 14 may have removed block 1
		holds(2, 2)
		holds(1, 0)
		eventually(t, "4 batches lost, for a gap", func() bool {
			c := f.Counters()[0]
			return c.Lost == 4 && c.Purges["gap"] > 0
		}, func() string { return fmt.Sprint(f.Counters()) })
		pub.Send("", 16, stored(1))
		holds(1, 2)
		holds(2, 2)
	})
	t.Run("IX-45", func(t *testing.T) {
		pub, _, holds := start(t)
		pub.Send("", 50, stored(1))
		holds(1, 2)
		pub.Send("", 0, stored(2)) // another process: what the old one held is gone
		holds(2, 2)
		holds(1, 0)
	})
}
