package telemetry

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

// benchPages are the pages of real engines under load, and one of them with
// 50,000 series that nobody wants.
func benchPages(tb testing.TB) (names []string, pages [][]byte) {
	tb.Helper()
	add := func(name string, text []byte) {
		names = append(names, fmt.Sprintf("%s_%dKB", name, len(text)/1000))
		pages = append(pages, text)
	}
	for _, path := range promFiles(tb) {
		name := strings.TrimSuffix(pageName(path), ".prom")
		if !strings.Contains(name, "loaded") {
			continue
		}
		text, _ := readGolden(tb, path)
		add(name, text)
		if name == "vllm-0.32.0/llama/metrics-loaded" {
			add(name+"_padded", padded(text, 50_000))
		}
	}
	return names, pages
}

// padded is a page with n more series, among them histogram buckets, whose
// names begin as wanted ones do.
func padded(text []byte, n int) []byte {
	var page bytes.Buffer
	page.Write(text)
	if !bytes.HasSuffix(text, []byte("\n")) {
		page.WriteByte('\n')
	}
	for i := range n {
		switch i % 3 {
		case 0:
			fmt.Fprintf(&page, "vllm:num_requests_waiting_%d 1\n", i)
		case 1:
			fmt.Fprintf(&page, "vllm:x_bucket{le=\"%d\"} 1\n", i)
		default:
			fmt.Fprintf(&page, "ray_sglang_y{a=\"%d\"} 1\n", i)
		}
	}
	return page.Bytes()
}

// BenchmarkParse reads each page with Parse and with expfmt in turns and prints
// how many times longer expfmt takes, and what both allocate.
func BenchmarkParse(b *testing.B) {
	names, pages := benchPages(b)
	for i, text := range pages {
		b.Run(names[i], func(b *testing.B) {
			ours := func() {
				if _, err := Parse(text, ParseOptions{}); err != nil {
					b.Fatal(err)
				}
			}
			expfmt := func() {
				if _, err := fullParse(text); err != nil {
					b.Fatal(err)
				}
			}
			var took, tookExpfmt time.Duration
			for b.Loop() {
				took += timed(ours)
				tookExpfmt += timed(expfmt)
			}
			b.ReportMetric(0, "ns/op") // of both together: says nothing
			b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "ns/page")
			b.ReportMetric(float64(tookExpfmt.Nanoseconds())/float64(b.N), "expfmt-ns/page")
			b.ReportMetric(float64(tookExpfmt)/float64(took), "x-faster")
			b.ReportMetric(testing.AllocsPerRun(10, ours), "allocs/page")
			b.ReportMetric(testing.AllocsPerRun(1, expfmt), "expfmt-allocs/page")
		})
	}
}

func timed(do func()) time.Duration {
	start := time.Now()
	do()
	return time.Since(start)
}
