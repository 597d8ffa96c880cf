package phase

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// CPU is the time the calling thread has spent on a processor. The goroutine
// must be locked to its thread. On a machine that does other things too it is
// the one clock that does not count them.
func CPU() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err) // a kernel without the clock
	}
	return time.Duration(t.Nano())
}

// Stopwatch times short calls: it knows what reading the clock costs.
type Stopwatch struct{ empty time.Duration }

// NewStopwatch takes the smallest of 2,000 empty measurements off every later
// one.
func NewStopwatch() Stopwatch {
	least := time.Hour
	for range 2000 {
		t := CPU()
		least = min(least, CPU()-t)
	}
	return Stopwatch{least}
}

// Since is the time since a reading of CPU.
func (s Stopwatch) Since(t time.Duration) time.Duration { return max(0, CPU()-t-s.empty) }

// Samples are durations of one kind of call.
type Samples []time.Duration

// Micros returns a quantile in µs.
func (s Samples) Micros(q float64) float64 {
	sorted := slices.Sorted(slices.Values(s))
	return float64(sorted[int(q*float64(len(sorted)-1))].Nanoseconds()) / 1e3
}

// Rate is work done in CPU time.
type Rate struct {
	Blocks, Events int
	CPU            time.Duration
}

// BlocksPerSecond counts blocks stored and removed.
func (r Rate) BlocksPerSecond() float64 { return float64(r.Blocks) / r.CPU.Seconds() }

// EventsPerSecond counts the events they came in.
func (r Rate) EventsPerSecond() float64 { return float64(r.Events) / r.CPU.Seconds() }
