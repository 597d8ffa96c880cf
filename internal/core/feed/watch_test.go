package feed

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

// looker writes down in short what a hub tells: "p+" and "p-" for up and down, the
// number of a message, "r" before that of a replayed one, "odd3" for a message of
// three other parts, and notices by their kind.
type looker struct {
	t   *testing.T
	q   *recording.Queue
	all []*recording.Record
}

func look(t *testing.T, h *recording.Hub) *looker {
	q := h.Subscribe(recording.Limits{}, nil)
	t.Cleanup(q.Close)
	return &looker{t: t, q: q}
}

func (l *looker) String() string {
	var out []string
	for _, r := range l.all {
		switch r.Type {
		case recording.TypeFrame:
			if _, seq, _, err := event.ParseFrames(r.Parts); err == nil {
				out = append(out, fmt.Sprint(seq))
			} else {
				out = append(out, fmt.Sprintf("odd%d", len(r.Parts)))
			}
		case recording.TypeReplay:
			out = append(out, "r"+fmt.Sprint(r.Parts[len(r.Parts)-2][7]))
		case recording.TypeNotice:
			switch n := r.Notice; n.Kind {
			case recording.Up:
				out = append(out, "+")
			case recording.Down:
				out = append(out, "-")
			case recording.Gap:
				out = append(out, fmt.Sprintf("gap%d..%d", *n.FromSeq, *n.ToSeq))
			case recording.Replay:
				out = append(out, fmt.Sprintf("%s%d", n.Outcome, n.Count))
			default:
				out = append(out, n.Kind)
			}
		}
	}
	return strings.Join(out, " ")
}

// frames are the messages it has been told.
func (l *looker) frames() (out []*recording.Record) {
	for _, r := range l.all {
		if r.Type == recording.TypeFrame {
			out = append(out, r)
		}
	}
	return out
}

// wait waits until it has been told just this.
func (l *looker) wait(want string) {
	l.t.Helper()
	eventually(l.t, want, func() bool {
		l.all = append(l.all, l.q.Take()...)
		return l.String() == want
	}, l.String)
}

// watch runs a Watch until the test ends.
func watch(t *testing.T, w *Watch) *looker {
	t.Helper()
	w.Hub = recording.NewHub()
	l := look(t, w.Hub)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l
}

// What comes, in order, with what is missing where it is missing.
func TestWatch(t *testing.T) {
	for name, c := range map[string]struct {
		send func(p *zmtp.Publisher)
		want string
	}{
		"TAP-01 a gap": {func(p *zmtp.Publisher) {
			for _, seq := range []uint64{1, 2, 5} {
				p.Send("", seq, stored(seq))
			}
		}, "+ 1 2 gap3..4 partial 5"},
		"TAP-02 a restart": {func(p *zmtp.Publisher) {
			p.Send("", 7, stored(7))
			p.Send("", 0, stored(1))
		}, "+ 7 restart 0"},
		"TAP-03 other shapes": {func(p *zmtp.Publisher) {
			p.SendFrames([]byte{1})
			p.SendFrames([]byte{1}, []byte{2})
			p.SendFrames([]byte{}, []byte{0, 0, 0, 1}, stored(1))
			p.SendFrames([]byte{}, []byte{2}, []byte{3}, []byte{4})
			p.Send("", 0, []byte("no msgpack"))
			p.Send("", 1, stored(1))
		}, "+ odd1 odd2 odd3 odd4 0 partial 1"},
		"twice": {func(p *zmtp.Publisher) {
			p.Send("", 0, stored(1))
			p.Send("", 0, stored(1))
		}, "+ 0 0"},
	} {
		t.Run(name, func(t *testing.T) {
			p := publisher(t, "127.0.0.1:0", zmtp.Options{})
			l := watch(t, &Watch{Publishers: []Publisher{{Endpoint: p.Addr()}}})
			l.wait("+")
			eventually(t, "subscribed", func() bool { return p.Subscribers() == 1 }, nil)
			c.send(p)
			l.wait(c.want)
			for _, r := range l.all {
				if r.Pod == nil || r.Pod.Name != p.Addr() || r.At == 0 {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

// TAP-04: both framings of replies; what is replayed stands where it was missing.
func TestWatchReplays(t *testing.T) {
	for _, bare := range []bool{true, false} {
		t.Run(fmt.Sprintf("TAP-04 bare %v", bare), func(t *testing.T) {
			p := publisher(t, "127.0.0.1:0", zmtp.Options{})
			rep := replayServer(t, zmtp.ReplayOptions{Bare: bare})
			for seq := range uint64(3) {
				rep.Record(seq, "", stored(seq))
			}
			l := watch(t, &Watch{Publishers: []Publisher{{Endpoint: p.Addr(), Replay: rep.Addr()}}})
			l.wait("+ r0 r1 r2 filled3")
			eventually(t, "subscribed", func() bool { return p.Subscribers() == 1 }, nil)
			for seq := uint64(3); seq < 6; seq++ {
				rep.Record(seq, "", stored(seq))
			}
			p.Send("", 5, stored(5))
			l.wait("+ r0 r1 r2 filled3 gap3..4 r3 r4 r5 filled3 5")
		})
	}
}

// A publisher that goes away for a moment: what was lost meanwhile is a gap, not a
// new publisher, as long as numbers go on.
func TestWatchReconnects(t *testing.T) {
	addr := free(t)
	p := publisher(t, addr, zmtp.Options{})
	l := watch(t, &Watch{Publishers: []Publisher{{Endpoint: addr}}})
	l.wait("+")
	eventually(t, "subscribed", func() bool { return p.Subscribers() == 1 }, nil)
	p.Send("", 0, stored(1))
	l.wait("+ 0")
	p.Close()
	eventually(t, "down", func() bool {
		l.all = append(l.all, l.q.Take()...)
		return strings.HasPrefix(l.String(), "+ 0 -")
	}, l.String)
	p = publisher(t, addr, zmtp.Options{})
	eventually(t, "subscribed", func() bool { return p.Subscribers() == 1 }, nil)
	p.Send("", 3, stored(3))
	eventually(t, "a gap", func() bool {
		l.all = append(l.all, l.q.Take()...)
		return strings.HasSuffix(l.String(), "+ gap1..2 partial 3")
	}, l.String)
}

// TAP-08: publishers that dial us, two of one address, and one that leaves right
// behind its last message.
func TestWatchListens(t *testing.T) {
	at := free(t)
	l := watch(t, &Watch{Listen: []string{"tcp://" + at}})
	var all []*zmtp.Publisher
	for range 2 {
		p := zmtp.Dial(at, zmtp.Options{})
		t.Cleanup(func() { p.Close() })
		eventually(t, "subscribed", func() bool { return p.Subscribers() == 1 }, nil)
		all = append(all, p)
	}
	l.wait("+ +")
	all[0].Send("", 0, stored(1))
	l.wait("+ + 0")
	all[1].Send("", 7, stored(1))
	l.wait("+ + 0 7")
	if a, b := l.frames()[0].Pod, l.frames()[1].Pod; a.Name == b.Name || a.Direction != recording.Listen {
		t.Errorf("%+v and %+v", a, b)
	}
	all[0].Close()
	eventually(t, "down", func() bool {
		l.all = append(l.all, l.q.Take()...)
		return strings.HasPrefix(l.String(), "+ + 0 7 -")
	}, l.String)
}

func TestWatchRefuses(t *testing.T) {
	for _, w := range []*Watch{
		{Publishers: []Publisher{{Endpoint: "ipc:///tmp/x"}}},
		{Publishers: []Publisher{{Endpoint: "host"}}},
		{Publishers: []Publisher{{Endpoint: "h:1", Replay: "h"}}},
		{Listen: []string{"tcp://192.0.2.1:1"}},
	} {
		w.Hub = recording.NewHub()
		if err := w.Run(t.Context()); err == nil {
			t.Errorf("%+v: runs", w)
		}
	}
}

// A feed tells its hub the same, and keeps its index as without one.
func TestFeedTellsHub(t *testing.T) {
	hub := recording.NewHub()
	f, fleet := startFeed(t, Options{Hub: hub})
	p := publisher(t, "127.0.0.1:0", zmtp.Options{})
	f.Apply([]pod.Spec{{Name: "p", Address: "127.0.0.1:1", Model: "m", Engine: pod.EngineVLLM, Events: []string{"tcp://" + p.Addr()}}})
	eventually(t, "subscribed", func() bool { return p.Subscribers() == 1 }, nil)
	p.Send("", 0, stored(1)) // nobody looks on
	eventually(t, "applied", func() bool { return f.Counters()[0].Stored == 1 }, nil)
	l := look(t, hub)
	l.wait("+")
	p.Send("", 1, stored(2))
	l.wait("+ 1")
	if got := l.all[len(l.all)-1].Pod; got.Name != "p" || got.Model != "m" || got.Engine != "vllm" || got.Addr != p.Addr() {
		t.Errorf("%+v", got)
	}
	// The hub hears of a batch before it is applied.
	eventually(t, "2 blocks in the index", func() bool { return fleet.Index.Stats().Blocks == 2 }, func() string { return fmt.Sprint(fleet.Index.Stats()) })
	f.Apply(nil)
	l.wait("+ 1 -")
}
