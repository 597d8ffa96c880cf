package bpe

import (
	"testing"
	"unsafe"
)

// TestMakeHuge: what is made is empty, whole, and where a huge page can hold it.
func TestMakeHuge(t *testing.T) {
	for _, n := range []int{1, hugeFrom/8 - 1, hugeFrom / 8, hugePage/8 + 1, 3 * hugePage / 8} {
		s := makeHuge[uint64](n)
		if len(s) != n {
			t.Fatalf("%d instead of %d", len(s), n)
		}
		if at := uintptr(unsafe.Pointer(&s[0])); n >= hugeFrom/8 && at%hugePage != 0 {
			t.Errorf("%d: at %#x", n, at)
		}
		for i := range s {
			if s[i] != 0 {
				t.Fatalf("%d: %d at %d", n, s[i], i)
			}
			s[i] = ^uint64(0)
		}
	}
}
