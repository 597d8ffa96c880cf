//go:build goexperiment.simd && amd64

package split

import (
	"math/rand/v2"
	"testing"
)

// TestClassifyVector: a block has the same masks by vectors and by words, whatever stands
// in it and wherever its first byte that is not ASCII is.
func TestClassifyVector(t *testing.T) {
	if !hasAVX2 {
		t.Log("this processor has no AVX2: there is nothing to compare")
		return
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		var b [64]byte
		for i := range b {
			b[i] = byte(r.IntN(0x80))
		}
		if at := r.IntN(80); at < len(b) {
			b[at] |= 0x80
		}
		for _, control := range []bool{false, true} {
			var vector, words masks
			if n, want := classify(control, b[:], &vector), classifyWords(control, b[:], &words); n != want || vector != words {
				t.Fatalf("%q, control %v: %d bytes %x, want %d bytes %x", b, control, n, vector, want, words)
			}
		}
	}
}
