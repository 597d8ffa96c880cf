package feed

import (
	"testing"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

// On a busy engine the events of a request come after its response, and a
// restarted one is silent until its first full block: until then our own
// placements tell what a pod holds, and the blocks of the process before do not.
func TestPlacementsBridgeLateEvents(t *testing.T) {
	e := newEngine(t, "m")
	pub := publisher(t, free(t), zmtp.Options{})
	e.tells(pub.Addr(), "")
	f, fleet := startFeed(t, Options{})
	f.Apply([]pod.Spec{{Name: "p", Address: e.address()}})
	p := waitPod(t, fleet, "p", func(p *pod.Pod) bool { return p.Spec.Model == "m" && len(p.Spec.Events) == 1 })
	m := p.Members[0]
	subscribed(t, pub)
	pub.Send("", 0, stored(1)) // blocks of 2 tokens, as the metrics page says too
	waitHeld(t, fleet, m, prompt("m", 1), 2)
	waitSync(t, fleet.Sync, m, view.Live, reason.None, "")
	now := func(want int, q *block.Prompt, when string) {
		t.Helper()
		if got := held(fleet, m, q); got != want {
			t.Errorf("%s: holds %d tokens, want %d", when, got, want)
		}
	}
	place := func(q *block.Prompt) *view.Placement {
		return fleet.Place(p, view.Work{Prompt: q, Tokens: len(q.Tokens), Uncached: len(q.Tokens), Rank: -1}, Now())
	}

	q := prompt("m", 2)
	r := place(q)
	now(2, q, "placed")
	r.FirstByte(Now())
	r.End(Now())
	now(2, q, "ended, nothing announced yet") // when a conversation's next turn comes
	pub.Send("", 1, stored(2))
	eventually(t, "announced", func() bool { return f.Counters()[0].Stored == 2 }, nil)
	now(2, q, "announced")
	fleet.Index.Sweep(Now() + 1<<40) // the expectation is over long since
	now(2, q, "and the event alone tells it")

	gone := place(prompt("m", 3)) // of which no event ever tells: a reset, say
	gone.FirstByte(Now())
	gone.End(Now())
	now(2, prompt("m", 3), "ended")
	waitHeld(t, fleet, m, prompt("m", 3), 0) // the feed lets it go by itself
	failed := place(prompt("m", 4))
	failed.Status(true, Now())
	failed.FirstByte(Now())
	failed.End(Now())
	now(0, prompt("m", 4), "failed")

	// Another process on the same ports. It publishes nothing yet.
	pub.Close()
	running := place(prompt("m", 5))
	e.started.Add(60)
	pub = publisher(t, pub.Addr(), zmtp.Options{})
	subscribed(t, pub)
	for _, n := range []uint32{1, 2, 5} {
		waitHeld(t, fleet, m, prompt("m", n), 0)
	}
	running.End(Now())
	waitSync(t, fleet.Sync, m, view.Syncing, reason.NoEventsEver, "")
	r = place(prompt("m", 6))
	r.FirstByte(Now())
	r.End(Now())
	now(2, prompt("m", 6), "placed on a restarted engine that is silent")
	pub.Send("", 0, stored(6))
	waitSync(t, fleet.Sync, m, view.Live, reason.None, "")
	fleet.Index.Sweep(Now() + 1<<40)
	now(2, prompt("m", 6), "its first event")
	if c := f.Counters()[0]; c.Purges[purgeIdentity] == 0 || c.Lost != 0 {
		t.Errorf("%+v", c)
	}
}
