//go:build !goexperiment.simd || !amd64

package native

// clearVectors has nothing to do: nobody uses the registers' upper halves for long.
func clearVectors() {}
