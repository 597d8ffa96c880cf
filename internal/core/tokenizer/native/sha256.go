package native

import "crypto/sha256"

// hashedAtOnce is how many bytes are hashed between two calls of clearVectors: 50 µs by
// the processor's instructions for it, and 5 ms where these are slow.
const hashedAtOnce = 64 << 10

// SHA256 is that of a model's file.
//
// A goroutine that is interrupted in a program with vectors comes back with the upper
// halves of the vector registers in use (Go 1.27, runtime/preempt_amd64.s restores them
// and no VZEROUPPER follows). Until something clears them the SHA instructions, which know
// the lower halves alone, take a hundred times as long: 2.2 s for 28 MB in place of 20 ms
// (Intel Sapphire Rapids; BenchmarkSHA256). An interruption can come at any time, so they
// are cleared again and again.
func SHA256(b []byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	for len(b) > 0 {
		clearVectors()
		n := min(len(b), hashedAtOnce)
		_, _ = h.Write(b[:n]) // never fails
		b = b[n:]
	}
	h.Sum(sum[:0])
	return sum
}
