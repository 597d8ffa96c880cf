package feed

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

// waitSync waits for a member's state, why it is in it, and a part of the text.
func waitSync(t *testing.T, b *view.SyncBoard, m pod.Member, want view.SyncState, why reason.Code, detail string) view.Sync {
	t.Helper()
	var s view.Sync
	eventually(t, fmt.Sprintf("%v, %q, %q", want, why, detail), func() bool {
		s = b.Get(m)
		return s.State == want && s.Why == why && strings.Contains(s.Detail, detail)
	}, func() string { return fmt.Sprintf("%v %+v", s, s) })
	return s
}

func (r *rig) waitSync(want view.SyncState, why reason.Code, detail string) view.Sync {
	r.t.Helper()
	return waitSync(r.t, r.sub.board, r.sub.member, want, why, detail)
}

// Every state of a stream over real sockets, with why and since when.
func TestStates(t *testing.T) {
	t.Run("connecting, then down, then back", func(t *testing.T) {
		t.Parallel()
		addr := free(t)
		r := subscribe(t, dialled{dialer{}, "tcp://" + addr}, "").start()
		began := r.waitSync(view.Connecting, reason.Unreachable, "refused")
		s := r.waitSync(view.Down, reason.Unreachable, "refused")
		if s.Since-began.Since < int64(10*time.Second) || s.Connected {
			t.Errorf("down %v after the start, %+v", time.Duration(s.Since-began.Since), s)
		}
		p := publisher(t, addr, zmtp.Options{})
		subscribed(t, p)
		r.waitSync(view.Syncing, reason.NoEventsEver, "")
		p.Send("", 0, stored(1))
		if s := r.waitSync(view.Live, reason.None, ""); s.Detail != "" || !s.Connected || s.LastEvent == 0 {
			t.Errorf("%+v", s)
		}
		p.Close()
		r.waitSync(view.Connecting, reason.Unreachable, "")
	})
	t.Run("a publisher that is to dial in", func(t *testing.T) {
		t.Parallel()
		g, _ := gateFor(t, Limits{})
		r := subscribe(t, claimOf(t, g, "p", "127.0.0.1:8000", 1).ranks[0], "").start()
		r.waitSync(view.Connecting, reason.Starting, "dialled in")
		r.waitSync(view.Down, reason.Starting, "dialled in")
		dialIn(t, g).Send("", 0, stored(1))
		r.waitSync(view.Live, reason.None, "")
	})
	t.Run("syncing, gap, live", func(t *testing.T) {
		t.Parallel()
		p := publisher(t, "127.0.0.1:0", zmtp.Options{})
		hold := make(chan struct{})
		rp := replayServer(t, zmtp.ReplayOptions{Keep: func(int, uint64) bool { <-hold; return true }})
		stream(nil, rp, 0, 10)
		r := subscribe(t, to(p), rp.Addr()).start()
		r.waitSync(view.Syncing, reason.Replaying, "")
		hold <- struct{}{}
		for range 9 {
			hold <- struct{}{}
		}
		r.waitSync(view.Live, reason.None, "")
		subscribed(t, p) // live by replay says nothing of the publisher, which drops what nobody asked for
		stream(nil, rp, 10, 14)
		stream(p, rp, 14, 15)
		if s := r.waitSync(view.Gap, reason.Missing, ""); s.Missing != 4 || s.String() != "gap(4)" {
			t.Errorf("%v, %+v", s, s)
		}
		close(hold)
		if s := r.waitSync(view.Live, reason.None, ""); s.Missing != 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("partial", func(t *testing.T) {
		t.Parallel()
		p, r := following(t)
		p.Send("", 3, stored(1))
		r.waitSync(view.Partial, reason.HistoryLost, "nothing before batch 3 is known; no replay port")
		p.Send("", 9, stored(1))
		r.waitSync(view.Partial, reason.HistoryLost, "lost batches 4 to 8; no replay port")
	})
	t.Run("stale: messages of another shape", func(t *testing.T) {
		t.Parallel()
		p, r := following(t)
		p.SendFrames(nil, stored(1)) // without a sequence, as one release of ATOM
		r.waitSync(view.Stale, reason.WrongFraming, "message of 2 frames")
		p.Send("", 0, stored(1))
		r.waitSync(view.Live, reason.None, "")
	})
	t.Run("stale: batches that are none", func(t *testing.T) {
		t.Parallel()
		p, r := following(t)
		p.Send("", 0, stored(1))
		p.Send("", 1, []byte("no msgpack"))
		r.waitSync(view.Stale, reason.Undecodable, "could not be decoded")
		p.Send("", 2, stored(1))
		r.waitSync(view.Partial, reason.Undecodable, "could not be decoded")
	})
}

// ZF-40: requests that must make the engine publish have ended on it, and nothing
// came: its publisher thread is dead, though its sockets live.
func TestSilentStream(t *testing.T) {
	start := func(t *testing.T, ranks int) (*view.Fleet, *pod.Pod, []*zmtp.Publisher) {
		f, fleet := startFeed(t, Options{})
		spec := pod.Spec{Name: "p", Address: "127.0.0.1:1", Model: "m", Engine: pod.EngineVLLM, Ranks: ranks}
		var pubs []*zmtp.Publisher
		for range ranks {
			p := publisher(t, "127.0.0.1:0", zmtp.Options{})
			pubs = append(pubs, p)
			spec.Events = append(spec.Events, "tcp://"+p.Addr())
		}
		f.Apply([]pod.Spec{spec})
		for _, p := range pubs {
			subscribed(t, p)
		}
		p := fleet.Pods.Snapshot().ByName("p")
		for _, m := range p.Members { // requests count from when the feed takes note of the connection, a moment behind
			waitSync(t, fleet.Sync, m, view.Syncing, reason.NoEventsEver, "")
		}
		return fleet, p, pubs
	}
	// serve sends n requests whose prompts have this many unknown tokens.
	serve := func(fleet *view.Fleet, p *pod.Pod, n, uncached, rank int) {
		for i := range n {
			q := prompt("m", uint32(i))
			q.Tokens = make([]uint32, 64)
			r := fleet.Place(p, view.Work{Prompt: q, Tokens: 64, Uncached: uncached, Rank: rank}, Now())
			r.FirstByte(Now())
			r.End(Now())
		}
	}
	t.Run("ZF-40 60 requests and no event", func(t *testing.T) {
		t.Parallel()
		fleet, p, pubs := start(t, 1)
		serve(fleet, p, 60, 64, 0)
		waitSync(t, fleet.Sync, p.Members[0], view.Stale, reason.Silent, "60 requests")
		if s := fleet.Sync.Get(p.Members[0]); !s.Connected {
			t.Errorf("%+v", s)
		}
		pubs[0].Send("", 0, stored(1))
		waitSync(t, fleet.Sync, p.Members[0], view.Live, reason.None, "")
	})
	t.Run("only the rank they went to", func(t *testing.T) {
		t.Parallel()
		fleet, p, pubs := start(t, 2)
		pubs[0].Send("", 0, stored(1))
		pubs[1].Send("", 0, stored(1))
		for _, m := range p.Members {
			waitSync(t, fleet.Sync, m, view.Live, reason.None, "")
		}
		serve(fleet, p, 60, 64, 1)
		waitSync(t, fleet.Sync, p.Members[1], view.Stale, reason.Silent, "60 requests")
		if s := fleet.Sync.Get(p.Members[0]); s.State != view.Live {
			t.Errorf("rank 0: %+v", s)
		}
	})
	// What need not be announced says nothing, nor do a few requests, nor those
	// of a moment ago.
	t.Run("quiet for a reason", func(t *testing.T) {
		fleet, p, _ := start(t, 1)
		sub := subscribe(t, nil, "").sub
		sub.routed = func() uint64 { return fleet.Load.Caused(p, 0) }
		sub.order.up(Now())
		late := func() int64 { return Now() + int64(2*staleAfter) }
		serve(fleet, p, 60, 15, 0) // less than a block
		if sub.watch(late()); sub.order.silent != 0 {
			t.Error("prompts that are cached count")
		}
		for range 60 { // never answered
			fleet.Place(p, view.Work{Prompt: prompt("m", 1), Tokens: 64, Uncached: 64, Rank: 0}, Now()).End(Now())
		}
		serve(fleet, p, silentRequests-1, 64, 0)
		if sub.watch(late()); sub.order.silent != 0 {
			t.Errorf("%d requests are enough", silentRequests-1)
		}
		serve(fleet, p, 1, 64, -1)
		if sub.watch(Now()); sub.order.silent != 0 {
			t.Error("events may still be on their way")
		}
		if sub.watch(late()); sub.order.silent != silentRequests {
			t.Errorf("silent %d", sub.order.silent)
		}
	})
}

// An engine that writes something unreadable in each batch, or a network that
// loses again and again: said once, with what really lost them.
func TestPurgesAreLoggedOnce(t *testing.T) {
	run := func(t *testing.T, publish func(p *zmtp.Publisher, i uint64), purges int) (logged []string) {
		p := publisher(t, "127.0.0.1:0", zmtp.Options{})
		r := subscribe(t, to(p), "")
		var text bytes.Buffer
		r.sub.log = slog.New(slog.NewTextHandler(&text, nil))
		r.start()
		subscribed(t, p)
		for i := range uint64(20) {
			publish(p, i)
		}
		eventually(t, "all purges", func() bool { return strings.Count(r.sink.String(), "purge") == purges }, r.sink.String)
		r.stop()
		for line := range strings.Lines(text.String()) {
			if strings.Contains(line, "dropped the cached blocks") {
				logged = append(logged, line)
			}
		}
		return logged
	}
	for _, c := range []struct {
		name    string
		publish func(p *zmtp.Publisher, i uint64)
		purges  int
		want    string
	}{
		{"unreadable", func(p *zmtp.Publisher, i uint64) { p.Send("", i, tagged(tag("BlockRemoved"))) }, 20, "BlockRemoved could not be read"},
		{"gap", func(p *zmtp.Publisher, i uint64) { p.Send("", 2*i, stored(i)) }, 19, "lost batch 1; no replay port"},
	} {
		t.Run(c.name, func(t *testing.T) {
			logged := run(t, c.publish, c.purges)
			if len(logged) != 1 || !strings.Contains(logged[0], "cause="+c.name) || !strings.Contains(logged[0], c.want) {
				t.Errorf("%q", logged)
			}
		})
	}
}
