package tap

import (
	"io"
	"slices"
	"testing"

	"github.com/eppctl/eppctl/internal/inspect/out"
)

// What a message of a real engine costs, from a record to its line.
func BenchmarkTap(b *testing.B) {
	l := slices.Repeat(capture(b, "vllm-0.32.0/llama")[1:], 20)
	for _, form := range []string{"quiet", "table", "jsonl"} {
		b.Run(form, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c := &Command{Source: l, Format: form, Quiet: form == "quiet"}
				if c.Quiet {
					c.Format = "table"
				}
				if err := c.Run(b.Context(), &out.Streams{Out: io.Discard, Err: io.Discard}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(l)), "ns/message")
		})
	}
}
