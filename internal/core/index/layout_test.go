package index

import (
	"testing"
	"unsafe"
)

// The sizes are what the figures of memory per block rest on.
func TestLayout(t *testing.T) {
	for _, x := range []struct {
		name      string
		got, want uintptr
	}{
		{"bucket is a cache line", unsafe.Sizeof(bucket{}), 64},
		{"segment", unsafe.Sizeof(segment{}), 24},
		{"group", unsafe.Sizeof(group{}), 32},
		{"coverage with its first group", unsafe.Sizeof(coverage{}), 56},
		{"run is two cache lines", unsafe.Sizeof(run{}), 128},
		{"match", unsafe.Sizeof(Match{}), 36},
		{"resident", unsafe.Sizeof(resident{}), 8},
	} {
		if x.got != x.want {
			t.Errorf("%s: %d bytes, want %d", x.name, x.got, x.want)
		}
	}
}
