package view

import (
	"testing"
	"time"
)

func TestFaultsLeaveAPodOut(t *testing.T) {
	l, p := NewLedger(), somePod(0, 1)
	want := func(at int64, row int, out bool, in time.Duration) {
		t.Helper()
		if got := l.Load(p, at).Faults; got != (Faults{row, out, in}) {
			t.Errorf("at %d ms: %+v, want %+v", at/ms, got, Faults{row, out, in})
		}
	}
	place := func(at int64) *Placement { return l.Place(p, seconds(0), at) }
	fail := func(r *Placement, at int64) { r.Status(true, at); r.End(at) }

	old := place(0) // these two are on the pod all the time
	older := place(0)
	for range FaultLimit - 1 {
		fail(place(0), 0)
	}
	want(0, 4, false, 0)
	ok := place(0)
	ok.Status(false, 0)
	want(0, 0, false, 0)
	for range FaultLimit {
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
		want(at, l.Load(p, at).Faults.Row, true, 0)
		second := place(at + ms) // all pods are left out: it came all the same
		second.Status(true, at+2*ms)
		want(at+3*ms, l.Load(p, at).Faults.Row, true, 0)
		second.End(at + 3*ms)
		fail(probe, at+10*ms)
		want(at+10*ms, l.Load(p, at).Faults.Row, true, time.Duration(wait)*time.Second)
		at += 10*ms + wait*1000*ms
	}
	// A probe that ends without a status says nothing: the same wait again.
	row := l.Load(p, at).Faults.Row
	place(at).End(at + ms)
	want(at+ms, row, true, 30*time.Second)
	at += ms + 30_000*ms
	want(at, row, false, 0)
	probe := place(at)
	probe.Status(false, at+ms)
	want(at+ms, 0, false, 0)
	for range FaultLimit { // and the wait begins anew
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
func TestFaultsFollowThePod(t *testing.T) {
	l, a, b := NewLedger(), somePod(0, 1), somePod(1, 2)
	for range FaultLimit {
		r := l.Place(a, seconds(0), 0)
		r.Move(b, 0)
		r.Status(true, 0)
		r.End(0)
	}
	if got := l.Load(a, 0).Faults; got != (Faults{}) {
		t.Errorf("the pod that was not asked: %+v", got)
	}
	if got := l.Load(b, 0).Faults; !got.Out {
		t.Errorf("the pod that failed: %+v", got)
	}
	if got := l.Load(somePod(1, 3), 0).Faults; got != (Faults{}) {
		t.Errorf("after a restart: %+v", got)
	}
	// A probe that the proxy moved elsewhere is none.
	r := l.Place(b, seconds(0), 1000*ms)
	r.Move(a, 1000*ms)
	if got := l.Load(b, 1000*ms).Faults; got.ProbeIn != time.Second {
		t.Errorf("the probe left: %+v", got)
	}
	r.End(1001 * ms)
}
