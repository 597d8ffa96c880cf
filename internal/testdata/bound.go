package testdata

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// Bounded fails when do allocates more than limit bytes, all goroutines counted.
// The garbage collector is off meanwhile: what it does would count too.
func Bounded(tb testing.TB, limit uint64, do func()) {
	tb.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before := allocated()
	do()
	if grown := allocated() - before; grown > limit {
		tb.Fatalf("%d bytes allocated, limit %d", grown, limit)
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
