package native_test

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
)

// BenchmarkParallel is warm calls on one core and on two: of the table of words and what a
// scratch remembers, and of the cache of chunks. No lock is shared: whatever else runs,
// "lock-ns/op" is what Go's runtime waits for itself, some nanoseconds, where one lock
// around a call makes it thousands. With two free cores "of-one-core" is near 2.
func BenchmarkParallel(b *testing.B) {
	tok := load(b, "qwen3")
	text := strings.Repeat("The quick brown fox, 12 of them: jumps(over) the lazy dogs. 中文也可以。\n", 600)
	cache := native.NewCache(tok, 64<<20)
	for _, c := range []struct {
		name   string
		encode func(string) error
	}{
		{"words", func(s string) error { _, err := tok.Encode(s, false); return err }},
		{"chunks", func(s string) error { _, _, err := cache.Encode(s, false); return err }},
	} {
		one := 0.0 // calls a second
		for cores := 1; cores <= 2; cores++ {
			b.Run(fmt.Sprintf("%s/%d", c.name, cores), func(b *testing.B) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
				b.SetBytes(int64(len(text)))
				waited := lockWait()
				b.RunParallel(func(p *testing.PB) {
					for p.Next() {
						if err := c.encode(text); err != nil {
							b.Error(err)
						}
					}
				})
				rate := float64(b.N) / b.Elapsed().Seconds()
				if cores == 1 {
					one = rate
				}
				b.ReportMetric(rate/one, "of-one-core")
				b.ReportMetric((lockWait()-waited)*1e9/float64(b.N), "lock-ns/op")
			})
		}
	}
}

// lockWait is how long goroutines have waited for locks in all, in seconds.
func lockWait() float64 {
	s := []metrics.Sample{{Name: "/sync/mutex/wait/total:seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64()
}
