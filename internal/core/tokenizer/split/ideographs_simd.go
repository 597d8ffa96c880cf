//go:build goexperiment.simd && amd64

package split

import (
	"math/bits"
	"simd/archsimd"
	"unsafe"
)

var hasAVX512 = archsimd.X86.AVX512()

// everyThird has a bit for each character of three bytes that starts in a block of 63.
const everyThird = 0x1249249249249249

// ideographs returns the end of the common ones from i on (see isCommon).
func ideographs(s string, i int) int {
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	for hasAVX512 && i+64 <= len(s) {
		n := ideographBytes((*[64]byte)(b[i:]))
		if i += n; n < 63 {
			return i
		}
	}
	for isCommon(s, i) {
		i += 3
	}
	return i
}

// ideographBytes returns how many of the first 63 bytes are of common ideographs. Of the
// pairs of first bytes those from E4 B8 to E9 BD are common. Chinese took 2 % less, and warm
// 3 to 6 %.
func ideographBytes(b *[64]byte) int {
	x := archsimd.LoadUint8x64Array(b)
	lead := x.Sub(archsimd.BroadcastUint8x64(0xE4)).Less(archsimd.BroadcastUint8x64(0xEA - 0xE4)).ToBits()
	first := x.Equal(archsimd.BroadcastUint8x64(0xE4)).ToBits()
	last := x.Equal(archsimd.BroadcastUint8x64(0xE9)).ToBits()
	below := x.Less(archsimd.BroadcastUint8x64(0xB8)).ToBits()
	above := x.Greater(archsimd.BroadcastUint8x64(0xBD)).ToBits()
	archsimd.ClearAVXUpperBits()
	common := lead &^ (first&(below>>1) | last&(above>>1))
	return min(bits.TrailingZeros64(everyThird&^common), 63)
}
