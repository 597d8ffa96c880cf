package phase

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Heap is what is alive on the heap, in bytes.
func Heap() int {
	// The first cycle may end with what died meanwhile, the second has it all.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// Collect is the CPU time of one garbage collection, all threads together.
func Collect() time.Duration {
	before := process()
	runtime.GC()
	return process() - before
}

func process() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err) // a kernel without the clock
	}
	return time.Duration(t.Nano())
}

// Allocations is how many objects one call of f allocates: the least of three
// runs, since the runtime's own goroutines allocate now and then.
func Allocations(f func()) float64 {
	f()
	least := allocations(f)
	for range 2 {
		least = min(least, allocations(f))
	}
	return least
}

func allocations(f func()) float64 {
	const calls = 1000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range calls {
		f()
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / calls
}
