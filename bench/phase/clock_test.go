package phase

import (
	"runtime"
	"testing"
	"time"
)

func TestCPUStandsStillAsleep(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	from := CPU()
	time.Sleep(50 * time.Millisecond)
	if d := CPU() - from; d > 20*time.Millisecond {
		t.Errorf("%v of 50 ms asleep counted", d)
	}
	from = CPU()
	for n := 0; CPU() == from; n++ {
		if n > 1e9 {
			t.Fatal("the clock does not move")
		}
	}
}

func TestQuantiles(t *testing.T) {
	s := Samples{4000, 1000, 3000, 2000, 5000}
	for q, want := range map[float64]float64{0: 1, 0.5: 3, 0.99: 4, 1: 5} {
		if got := s.Micros(q); got != want {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
}

func TestAllocations(t *testing.T) {
	var keep []byte
	if n := Allocations(func() { keep = make([]byte, 64) }); n < 1 || n > 1.1 {
		t.Errorf("%v allocations, want 1", n)
	}
	_ = keep
	if n := Allocations(func() {}); n > 0.1 {
		t.Errorf("%v allocations, want none", n)
	}
}
