package native

import (
	"crypto/sha256"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

func TestSHA256(t *testing.T) {
	b := make([]byte, 3*hashedAtOnce)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	for _, n := range []int{0, 1, 63, 64, hashedAtOnce - 1, hashedAtOnce, hashedAtOnce + 1, 2 * hashedAtOnce, 3*hashedAtOnce - 1, 3 * hashedAtOnce} {
		if got, want := SHA256(b[:n]), sha256.Sum256(b[:n]); got != want {
			t.Errorf("%d bytes: %x, want %x", n, got, want)
		}
	}
}

// BenchmarkSHA256 hashes what a large vocabulary has by a goroutine that was interrupted
// just before, beside the standard library at once.
func BenchmarkSHA256(b *testing.B) {
	file := make([]byte, 28<<20)
	for _, way := range []struct {
		name string
		hash func([]byte) [sha256.Size]byte
	}{{"cleared", SHA256}, {"at once", func(b []byte) [sha256.Size]byte { return sha256.Sum256(b) }}} {
		b.Run(way.name, func(b *testing.B) {
			var took time.Duration
			for range b.N {
				interrupted() // nothing between: the timer's own functions use the vectors
				began := time.Now()
				way.hash(file)
				took += time.Since(began)
			}
			b.ReportMetric(float64(took.Milliseconds())/float64(b.N), "ms/28MB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// interrupted computes until the collector has stopped this goroutine.
func interrupted() {
	stop := make(chan struct{})
	go func() {
		time.Sleep(10 * time.Millisecond)
		runtime.GC()
		close(stop)
	}()
	for x := 0; ; x++ {
		if x%(1<<20) != 0 {
			continue
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}
