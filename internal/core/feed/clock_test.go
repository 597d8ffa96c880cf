package feed

import (
	"testing"
	"time"
	"unsafe"
)

// stepped is t as it would have been read after a step of the wall clock:
// another wall reading beside the same monotonic one. package time has no way to
// make such a value, so its first word is written: with a monotonic reading
// present, the seconds are its bits from 30 on.
func stepped(t time.Time, seconds int64) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(seconds) << 30
	return t
}

func TestClockIgnoresWallSteps(t *testing.T) {
	start := time.Now()
	later := start.Add(3 * time.Second)
	for _, step := range []int64{3600, -3600} {
		at := stepped(later, step)
		if got := at.UnixNano() - later.UnixNano(); got != step*int64(time.Second) {
			t.Fatalf("the test's step of %d s moved the wall reading by %d ns", step, got)
		}
		if got := reading(start, at).UnixNano() - start.UnixNano(); got != int64(3*time.Second) {
			t.Errorf("3 s after the start, the wall clock stepped by %d s: clock says %v", step, time.Duration(got))
		}
	}
}

func TestClockIsTheWallClockAtFirst(t *testing.T) {
	if got := reading(begun, begun); !got.Equal(begun) {
		t.Errorf("at the start %v, want %v", got, begun)
	}
	a := Now()
	b := Now()
	if b < a || a < begun.UnixNano() {
		t.Errorf("clock went back: %d, then %d", a, b)
	}
}
