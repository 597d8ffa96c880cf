package feed

import (
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/view"
)

// Lag counts from the promptest batch, whatever the clocks say.
func TestLag(t *testing.T) {
	r := subscribe(t, nil, "")
	r.sub.order.connected, r.sub.order.confirmed, r.sub.order.history = true, true, whole
	at := int64(5000) // s
	comes := func(skew, late float64, want view.SyncState) {
		t.Helper()
		at += 10
		now := at * int64(time.Second)
		r.sub.lag(float64(at)-skew-late, now, now)
		if st := r.sub.order.state(at * int64(time.Second)); st.State != want {
			t.Errorf("%v s late, clock %v s behind: %+v", late, skew, st)
		}
	}
	comes(1000, 1, view.Live)
	comes(1000, 0, view.Live)
	comes(1000, 3, view.Live)
	comes(1000, 8, view.Stale)
	comes(1000, 0, view.Live)
	comes(2000, 0, view.Live) // the engine's clock is set back
	comes(2000, 8, view.Stale)
	comes(100, 0, view.Live) // and forward
	comes(100, 8, view.Stale)

	// A clock that drifts away by 8 s and stays there is late for some minutes.
	for drift := range 6 {
		comes(100+float64(drift), 0, view.Live)
	}
	comes(100+8, 0, view.Stale)
	for range 2 * promptestFor / (10 * time.Second) {
		at += 10
		r.sub.lag(float64(at)-108, at*int64(time.Second), at*int64(time.Second))
	}
	comes(100+8, 0, view.Live)
	comes(100+8, 6, view.Stale)

	// What has waited in our own queue is late by that.
	at += 10
	r.sub.lag(float64(at)-108, at*int64(time.Second), (at+6)*int64(time.Second))
	if st := r.sub.order.state(at); st.Why != reason.EventsLate {
		t.Errorf("6 s in the queue: %+v", st)
	}
	// A stamp can say anything.
	r.sub.lag(1e18, at*int64(time.Second), at*int64(time.Second))
	r.sub.lag(1, at*int64(time.Second), at*int64(time.Second))
	r.sub.lag(0.5, at*int64(time.Second), at*int64(time.Second))
	if l := r.sub.order.late; l < 0 || l > maxLag {
		t.Errorf("late by %v", l)
	}
}
