//go:build !goexperiment.simd || !amd64

package split

// ideographs returns the end of the common ones from i on (see isCommon).
func ideographs(s string, i int) int {
	for isCommon(s, i) {
		i += 3
	}
	return i
}
