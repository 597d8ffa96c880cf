//go:build goexperiment.simd && amd64

package split

import (
	"math/bits"
	"simd/archsimd"
)

// hasByteTables: the processor looks 64 bytes up in a table of 128 at once (AVX-512 VBMI:
// Intel since Ice Lake, AMD since Zen 4).
var hasByteTables = archsimd.X86.AVX512VBMI()

// classify fills the masks of a block and returns how many of its bytes are ASCII up to
// the first that is not. Warm English took 13 to 14 % less than by words, warm code 10 to
// 12 %, English that was new 8 to 11 %.
func classify(control bool, b []byte, m *masks) uint {
	if !hasByteTables || len(b) < 64 {
		return classifyWords(control, b, m)
	}
	table := &byteClasses
	if control {
		table = &byteClassesControl
	}
	return classifyVector(table, (*[64]byte)(b), m)
}

// byteClasses are the bits of a byte in spread, and in spreadControl.
var byteClasses, byteClassesControl = inOneByte(&spread), inOneByte(&spreadControl)

func inOneByte(spread *[256]uint64) (t [128]byte) {
	for b := range t {
		for class := range 8 {
			t[b] |= byte(spread[b]>>(8*class)&1) << class
		}
	}
	return t
}

// classifyVector is written out: a loop took 2 % longer, and a function of vectors that the
// compiler does not inline passes them by memory.
func classifyVector(t *[128]byte, b *[64]byte, m *masks) uint {
	text := archsimd.LoadUint8x64Array(b)
	classes := archsimd.LoadUint8x64(t[:64]).ConcatPermute(archsimd.LoadUint8x64(t[64:]), text)
	zero := archsimd.BroadcastUint8x64(0)
	size := uint(bits.TrailingZeros64(text.And(archsimd.BroadcastUint8x64(0x80)).NotEqual(zero).ToBits()))
	ascii := uint64(1)<<size - 1
	m[0] = classes.And(archsimd.BroadcastUint8x64(1<<0)).NotEqual(zero).ToBits() & ascii
	m[1] = classes.And(archsimd.BroadcastUint8x64(1<<1)).NotEqual(zero).ToBits() & ascii
	m[2] = classes.And(archsimd.BroadcastUint8x64(1<<2)).NotEqual(zero).ToBits() & ascii
	m[3] = classes.And(archsimd.BroadcastUint8x64(1<<3)).NotEqual(zero).ToBits() & ascii
	m[4] = classes.And(archsimd.BroadcastUint8x64(1<<4)).NotEqual(zero).ToBits() & ascii
	m[5] = classes.And(archsimd.BroadcastUint8x64(1<<5)).NotEqual(zero).ToBits() & ascii
	m[6] = classes.And(archsimd.BroadcastUint8x64(1<<6)).NotEqual(zero).ToBits() & ascii
	m[7] = classes.And(archsimd.BroadcastUint8x64(1<<7)).NotEqual(zero).ToBits() & ascii
	archsimd.ClearAVXUpperBits()
	return size
}
