package feed

import (
	"testing"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

// That an engine lost what it held is told from our losing sight of it: by a clear,
// its start time, or numbers that begin anew, behind a reconnect too. A recording
// says the same.
func TestLost(t *testing.T) {
	again := func(t *testing.T, pub *zmtp.Publisher, seq uint64) {
		pub.Close()
		pub = publisher(t, pub.Addr(), zmtp.Options{})
		subscribed(t, pub)
		pub.Send("", seq, stored(2))
	}
	for name, c := range map[string]struct {
		mute bool // the engine does not tell its start time
		ages bool // it tells another one all the time
		do   func(t *testing.T, e *engine, pub *zmtp.Publisher)
		want bool
	}{
		"EX-12 cleared":     {do: func(_ *testing.T, _ *engine, pub *zmtp.Publisher) { pub.Send("", 11, cleared()) }, want: true},
		"numbers went back": {do: func(_ *testing.T, _ *engine, pub *zmtp.Publisher) { pub.Send("", 0, stored(2)) }, want: true},
		"start time":        {ages: true, do: func(*testing.T, *engine, *zmtp.Publisher) {}, want: true},
		"new connection, numbers anew": {mute: true, do: func(t *testing.T, _ *engine, pub *zmtp.Publisher) {
			again(t, pub, 0)
		}, want: true},
		"new connection, numbers go on": {mute: true, do: func(t *testing.T, _ *engine, pub *zmtp.Publisher) {
			again(t, pub, 11)
		}},
		"gap": {do: func(_ *testing.T, _ *engine, pub *zmtp.Publisher) { pub.Send("", 20, stored(2)) }},
		"removed": {do: func(_ *testing.T, _ *engine, pub *zmtp.Publisher) {
			pub.Send("", 11, removed(1))
			pub.Send("", 12, stored(2))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e, pub := newEngine(t, "m"), publisher(t, free(t), zmtp.Options{})
			hub := recording.NewHub()
			f, fleet := startFeed(t, Options{Hub: hub, Pages: true})
			l := look(t, hub)
			spec := pod.Spec{Name: "p", Address: e.address(), Model: "m", Engine: pod.EngineVLLM, Events: []string{"tcp://" + pub.Addr()}}
			if c.mute {
				spec.Address, spec.Engine = "127.0.0.1:1", pod.EngineSGLang
			}
			f.Apply([]pod.Spec{spec})
			p := waitPod(t, fleet, "p", func(*pod.Pod) bool { return true })
			m := p.Members[0]
			subscribed(t, pub)
			pub.Send("", 9, stored(5)) // or what comes first would be as much as was lost
			pub.Send("", 10, stored(1))
			long := &block.Prompt{Model: "m", Tokens: []uint32{1, 7, 8}, Cut: -1}
			waitHeld(t, fleet, m, long, 2)

			c.do(t, e, pub)
			eventually(t, "gone", func() bool {
				if c.ages { // until one process has been seen before the next
					e.started.Add(1)
				}
				return held(fleet, m, long) == 0
			}, nil)
			lost := func(v *view.Fleet) (int64, bool) {
				return v.Index.Lost(v.Pods.Snapshot().ByName("p").Members[0], long)
			}
			if c.want {
				eventually(t, "lost", func() bool { _, ok := lost(fleet); return ok }, nil)
			} else {
				waitHeld(t, fleet, m, &block.Prompt{Model: "m", Tokens: []uint32{2, 7, 8}, Cut: -1}, 2)
			}
			at, ok := lost(fleet)
			if ok != c.want || ok && at == 0 {
				t.Errorf("lost %v at %d, want %v", ok, at, c.want)
			}
			if _, other := fleet.Index.Lost(m, &block.Prompt{Model: "m", Tokens: []uint32{3, 7, 8}, Cut: -1}); other {
				t.Error("a prompt is lost that was never held")
			}
			eventually(t, "recorded alike", func() bool {
				l.all = append(l.all, l.q.Take()...)
				played := playBack(t, l.all)
				if played.Pods.Snapshot().ByName("p") == nil {
					return false
				}
				when, same := lost(played)
				return same == c.want && (when != 0) == c.want && held(played, m, long) == 0
			}, l.String)
		})
	}
}

// A new process spoils what is overheard, as any purge does.
func TestOverheardRestart(t *testing.T) {
	var w spoiled
	l := &tape{}
	o := overheard{l, &w}
	o.Restart(0)
	if w != 1 || l.String() != "purge" {
		t.Errorf("spoiled %d times, %s", w, l)
	}
}

type spoiled int

func (*spoiled) Store(pod.Member, []event.Event) {}

func (n *spoiled) Spoil(pod.Member) { *n++ }
