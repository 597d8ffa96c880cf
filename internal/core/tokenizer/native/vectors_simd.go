//go:build goexperiment.simd && amd64

package native

import "simd/archsimd"

var hasAVX = archsimd.X86.AVX()

// clearVectors clears the upper halves of the vector registers.
func clearVectors() {
	if hasAVX {
		archsimd.ClearAVXUpperBits()
	}
}
