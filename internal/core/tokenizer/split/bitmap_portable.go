//go:build !goexperiment.simd || !amd64

package split

// classify fills the masks of a block and returns how many of its bytes are ASCII up to
// the first that is not.
func classify(control bool, b []byte, m *masks) uint { return classifyWords(control, b, m) }
