package serve

import (
	"net/netip"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// counted is a request that only counts its ends.
type counted struct {
	on    *pod.Pod
	ended int
}

func (c *counted) answer() *answer       { return &answer{} }
func (c *counted) pod() *pod.Pod         { return c.on }
func (c *counted) served(netip.AddrPort) {}
func (c *counted) status(reply)          {}
func (c *counted) spent(usage)           {}
func (c *counted) content()              {}
func (c *counted) end()                  { c.ended++ }

func TestEndSignal(t *testing.T) {
	reset := ending{canceled: true, headers: true}
	early := ending{canceled: true, headers: true, sse: true, after: time.Millisecond}
	late := ending{canceled: true, headers: true, sse: true, after: time.Second}
	lateAnswer := ending{canceled: true, headers: true, after: time.Second}
	trailers := ending{eof: true, headers: true, beyond: true, done: true}
	for _, c := range []struct {
		name string
		mode endMode
		seen []ending // before
		end  ending
		over bool
	}{
		{"half-close", endAuto, nil, ending{eof: true}, true},
		{"half-close, metrics", endMetrics, nil, ending{eof: true}, true},
		{"connection lost", endAuto, nil, ending{}, true},
		{"reset after headers, nothing known", endAuto, nil, reset, false},
		{"reset after the end of the response", endAuto, nil, ending{canceled: true, headers: true, done: true}, true},
		{"reset after headers, streams last", endAuto, []ending{{eof: true, headers: true, sse: true}}, reset, true},
		{"reset after headers, a late stream was seen", endAuto, []ending{late}, reset, true},
		{"late stream itself", endAuto, nil, late, true},
		{"reset after headers, a late answer was seen", endAuto, []ending{lateAnswer}, reset, true},
		{"late answer itself", endAuto, nil, lateAnswer, true},
		{"reset after headers, trailers were seen", endAuto, []ending{trailers}, reset, true},
		{"reset after headers, an answer ended with them", endAuto, []ending{{eof: true, headers: true}, reset}, reset, false},
		{"early event stream, a late answer was seen", endAuto, []ending{early, lateAnswer}, early, true},
		{"early stream", endAuto, []ending{early, early}, early, false},
		{"reset after the headers of a whole answer", endAuto, nil, ending{canceled: true, headers: true, whole: true}, true},
		{"a whole answer proves nothing of event streams", endAuto, []ending{{canceled: true, headers: true, whole: true}}, early, false},
		{"reset after the headers of a whole answer, forced metrics", endMetrics, nil, ending{canceled: true, headers: true, whole: true}, false},
		{"reset before headers, phases skipped", endAuto, nil, ending{canceled: true}, false},
		{"reset before headers, phases come", endAuto, []ending{reset}, ending{canceled: true}, true},
		{"reset, forced stream", endStream, nil, early, true},
		{"reset late, forced metrics", endMetrics, []ending{late}, late, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEndSignal(c.mode, time.Hour, quietLog())
			for _, x := range c.seen {
				e.over(x)
			}
			if got := e.over(c.end); got != c.over {
				t.Fatalf("over %v, want %v", got, c.over)
			}
		})
	}
}

func TestLooseEnds(t *testing.T) {
	r := newRig(t, rigOptions{})
	a := r.pod("a")
	t.Run("learning releases them", func(t *testing.T) {
		e := newEndSignal(endAuto, time.Hour, quietLog())
		x := &counted{on: a}
		e.linger(x)
		e.over(ending{eof: true, headers: true, sse: true})
		if x.ended != 1 || e.lingering() != 0 {
			t.Fatalf("ended %d times, %d left", x.ended, e.lingering())
		}
	})
	t.Run("ttl", func(t *testing.T) {
		e := newEndSignal(endMetrics, time.Minute, quietLog())
		x := &counted{on: a}
		e.linger(x)
		e.reconcile(r.fleet.View(), time.Now().Add(59*time.Second))
		if x.ended != 0 {
			t.Fatal("ended before its time")
		}
		e.reconcile(r.fleet.View(), time.Now().Add(time.Minute))
		if x.ended != 1 {
			t.Fatal("leaked")
		}
	})
	t.Run("scrapes", func(t *testing.T) {
		for range 3 { // three requests are on the pod, by our books
			c := r.talk()
			c.send(withSubset(reqHeaders(fullDuplex, true, "/v1/models"), a.Target))
			destination(t, c.recv())
		}
		e := newEndSignal(endMetrics, time.Hour, quietLog())
		var list []*counted
		for range 3 {
			x := &counted{on: a}
			list = append(list, x)
			e.linger(x)
		}
		ended := func() (n int) {
			for _, x := range list {
				n += x.ended
			}
			return n
		}
		e.reconcile(r.fleet.View(), time.Now())
		if ended() != 0 {
			t.Fatal("ended by a scrape from before")
		}
		r.scrape(a, 1, 1) // two are left in the engine
		for range 2 {     // and two come after the scrape: no surplus
			c := r.talk()
			c.send(withSubset(reqHeaders(fullDuplex, true, "/v1/models"), a.Target))
			destination(t, c.recv())
		}
		e.reconcile(r.fleet.View(), time.Now())
		if ended() != 1 || list[0].ended != 1 {
			t.Fatalf("%d ended, want the oldest", ended())
		}
	})
	t.Run("no gauge", func(t *testing.T) {
		c := r.pod("c")
		for _, s := range []*telemetry.Sample{nil, {At: feed.Now() + int64(time.Second), Waiting: telemetry.Value{Known: true}}} {
			r.fleet.Telemetry.Drop(c.ID)
			if s != nil {
				r.fleet.Telemetry.Put(c.ID, s)
			}
			e := newEndSignal(endAuto, time.Hour, quietLog())
			x := &counted{on: c}
			e.linger(x)
			e.reconcile(r.fleet.View(), feed.Clock().Add(blindTTL-time.Second))
			if x.ended != 0 {
				t.Fatal("ended before its time")
			}
			e.reconcile(r.fleet.View(), feed.Clock().Add(blindTTL))
			if x.ended != 1 {
				t.Fatal("counted until the TTL, though nothing can tell its end")
			}
		}
	})
	t.Run("pod removed", func(t *testing.T) {
		e := newEndSignal(endMetrics, time.Hour, quietLog())
		x := &counted{on: r.pod("b")}
		e.linger(x)
		r.fleet.Pods.Remove(x.on.ID)
		e.reconcile(r.fleet.View(), time.Now())
		if x.ended != 1 {
			t.Fatal("a request on a pod that is gone is still counted")
		}
		before := *a // of another pod that had its number
		before.Epoch--
		late := &counted{on: &before}
		e.linger(late)
		e.reconcile(r.fleet.View(), time.Now())
		if late.ended != 1 {
			t.Fatal("a request on a pod that is gone is counted on the one that has its number now")
		}
	})
	t.Run("pod dead", func(t *testing.T) {
		for after, want := range map[time.Duration]int{deadAfter - time.Second: 0, deadAfter + time.Second: 1} {
			r.scrape(a, 9, 9)
			e := newEndSignal(endMetrics, time.Hour, quietLog())
			x := &counted{on: a}
			e.linger(x)
			r.fleet.Telemetry.Fail(a.ID, "refused", e.loose[0].since.Add(after).UnixNano())
			e.reconcile(r.fleet.View(), feed.Clock())
			if x.ended != want {
				t.Errorf("scrapes fail %v after the stream's end: ended %d times, want %d", after, x.ended, want)
			}
		}
	})
	t.Run("too many", func(t *testing.T) {
		e := newEndSignal(endMetrics, time.Hour, quietLog())
		first, others := &counted{on: a}, &counted{on: a}
		e.linger(first)
		for range maxLoose {
			e.linger(others)
		}
		if first.ended != 1 || others.ended != 0 || e.lingering() != maxLoose {
			t.Errorf("the oldest ended %d times, others %d, %d are left", first.ended, others.ended, e.lingering())
		}
	})
}
