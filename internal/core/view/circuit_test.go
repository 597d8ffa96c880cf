package view

import (
	"testing"
	"time"
)

func TestServerErrorsLeaveAPodOut(t *testing.T) {
	l, p := NewLedger(), somePod(0, 1)
	want := func(at int64, row int, out bool, in time.Duration) {
		t.Helper()
		got := l.Load(p, at).Circuit
		if got.Errors != row || got.Out != out || got.ProbeIn != in {
			t.Errorf("at %d ms: %+v, want %d errors, out %v, next probe in %v", at/ms, got, row, out, in)
		}
		if (got.State == Closed) != (row < DefaultLimits.Errors) || (got.State == Open) != (in > 0) {
			t.Errorf("at %d ms: %s: %+v", at/ms, got.State, got)
		}
	}
	place := func(at int64) *Placement { return l.Place(p, seconds(0), at) }
	fail := func(r *Placement, at int64) { r.Status(true, at); r.End(at) }

	old := place(0) // these two are on the pod all the time
	older := place(0)
	for range DefaultLimits.Errors - 1 {
		fail(place(0), 0)
	}
	want(0, 4, false, 0)
	ok := place(0)
	ok.Status(false, 0)
	want(0, 0, false, 0)
	for range DefaultLimits.Errors {
		fail(place(10*ms), 10*ms)
	}
	want(10*ms, 5, true, time.Second)
	want(510*ms, 5, true, 500*time.Millisecond)
	fail(old, 600*ms) // placed before: prolongs nothing
	want(610*ms, 6, true, 400*time.Millisecond)
	want(1010*ms, 6, false, 0)

	// One probe at a time, and each that fails doubles the wait.
	at := 1010 * ms
	for _, wait := range []int64{2, 4, 8, 16, 30, 30} {
		probe := place(at)
		want(at, l.Load(p, at).Circuit.Errors, true, 0)
		second := place(at + ms) // all pods are left out: it came all the same
		second.Status(true, at+2*ms)
		want(at+3*ms, l.Load(p, at).Circuit.Errors, true, 0)
		second.End(at + 3*ms)
		fail(probe, at+10*ms)
		want(at+10*ms, l.Load(p, at).Circuit.Errors, true, time.Duration(wait)*time.Second)
		at += 10*ms + wait*1000*ms
	}
	// A probe that ends without a status says nothing: the same wait again.
	row := l.Load(p, at).Circuit.Errors
	place(at).End(at + ms)
	want(at+ms, row, true, 30*time.Second)
	at += ms + 30_000*ms
	want(at, row, false, 0)
	probe := place(at)
	probe.Status(false, at+ms)
	want(at+ms, 0, false, 0)
	for range DefaultLimits.Errors { // and the wait begins anew
		fail(place(at+2*ms), at+2*ms)
	}
	want(at+2*ms, 5, true, time.Second)
	// Any answer but a server error ends it, not only the probe's.
	older.Status(false, at+3*ms)
	want(at+3*ms, 0, false, 0)
	older.End(at + 3*ms)
	older.Status(true, at+4*ms) // too late to be of use
	want(at+4*ms, 0, false, 0)
}

// A pod that was removed and added again starts anew, and one that served a
// request another was picked for gets its status.
func TestCircuitFollowsThePod(t *testing.T) {
	l, a, b := NewLedger(), somePod(0, 1), somePod(1, 2)
	for range DefaultLimits.Errors {
		r := l.Place(a, seconds(0), 0)
		r.Move(b, 0)
		r.Status(true, 0)
		r.End(0)
	}
	if got := l.Load(a, 0).Circuit; got.Errors != 0 || got.State != Closed {
		t.Errorf("the pod that was not asked: %+v", got)
	}
	if got := l.Load(b, 0).Circuit; !got.Out {
		t.Errorf("the pod that failed: %+v", got)
	}
	if got := l.Load(somePod(1, 3), 0).Circuit; got != (Circuit{}) {
		t.Errorf("after a restart: %+v", got)
	}
	// A probe that the proxy moved elsewhere is none.
	r := l.Place(b, seconds(0), 1000*ms)
	r.Move(a, 1000*ms)
	if got := l.Load(b, 1000*ms).Circuit; got.ProbeIn != time.Second {
		t.Errorf("the probe left: %+v", got)
	}
	r.End(1001 * ms)
}

// A pod that fills up and answers nothing is left out when its requests give up,
// though it then looks idle; one answer is enough to bring it back.
func TestDrownedPodIsLeftOut(t *testing.T) {
	limits := Limits{Depth: 4, Errors: 2, Cooldown: time.Second, Longest: 4 * time.Second, Probes: 2}
	l, p := NewLedger(), somePod(0, 1)
	place := func(at int64) *Placement {
		return l.Place(p, Work{Prefill: time.Second, Rank: -1, Limits: limits}, at)
	}
	circuit := func(at int64) Circuit { return l.Load(p, at).Circuit }
	fill := func(n int) (all []*Placement) {
		for range n {
			all = append(all, place(0))
		}
		return all
	}
	for _, r := range fill(3) {
		r.End(ms)
	}
	if c := circuit(ms); c.Lost != 0 || c.Out {
		t.Fatalf("clients that give up on a pod with room: %+v", c)
	}
	all := fill(4)
	all[0].FirstByte(ms)
	all[1].End(2 * ms)
	all[2].End(2 * ms)
	if c := circuit(2 * ms); c.Lost != 0 || c.Out || c.Answered != 1 {
		t.Fatalf("a full pod that answers: %+v", c)
	}
	all[3].End(2 * ms)
	for _, r := range fill(4) {
		r.Status(false, 3*ms) // headers of an event stream: nothing is computed yet
		r.End(10 * ms)
	}
	c := circuit(10 * ms)
	if c.State != Open || !c.Out || c.Lost != 4 || c.ProbeIn != time.Second || c.Answered != 0 || l.Load(p, 10*ms).Waiting != 0 {
		t.Fatalf("a drowned pod: %+v", c)
	}
	// Two probes at a time, no third; the wait doubles once for both.
	at := 1010 * ms
	if c := circuit(at); c.State != HalfOpen || c.Out {
		t.Fatalf("after the cooldown: %+v", c)
	}
	one, two := place(at), place(at)
	if c := circuit(at); c.State != HalfOpen || !c.Out || c.Probing != 2 {
		t.Fatalf("with two probes: %+v", c)
	}
	one.End(at + ms)
	if c := circuit(at + ms); !c.Out || c.ProbeIn != 2*time.Second || c.Probing != 1 {
		t.Fatalf("after a failed probe: %+v", c)
	}
	two.FirstByte(at + 2*ms)
	if c := circuit(at + 2*ms); c.State != Closed || c.Out || c.Lost != 0 || c.Probing != 0 || c.Answered != 1 {
		t.Fatalf("after an answered probe: %+v", c)
	}
	two.End(at + 3*ms)
	if c := circuit(at + 3*ms); c.Probing != 0 {
		t.Fatalf("after everything: %+v", c)
	}
}
