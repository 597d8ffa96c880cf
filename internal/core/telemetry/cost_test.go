package telemetry

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// cost is what one call allocates, taken over ten.
func cost(t *testing.T, do func()) (allocs, bytes uint64) {
	t.Helper()
	const runs = 10
	do()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		do()
	}
	runtime.ReadMemStats(&after)
	return (after.Mallocs - before.Mallocs) / runs, (after.TotalAlloc - before.TotalAlloc) / runs
}

// TestParseAllocatesForWantedSeries: 50,000 series, thousands of them histogram
// buckets, cost nothing where nobody wants them.
func TestParseAllocatesForWantedSeries(t *testing.T) {
	for _, path := range promFiles(t) {
		text, want := readGolden(t, path)
		if want["engine"] == nil {
			continue
		}
		t.Run(pageName(path), func(t *testing.T) {
			parse := func(text []byte) func() {
				return func() {
					if _, err := Parse(text, ParseOptions{}); err != nil {
						t.Fatal(err)
					}
				}
			}
			large := padded(text, 50_000)
			n, size := cost(t, parse(text))
			m, largeSize := cost(t, parse(large))
			// What the runtime does beside us may show as one or two.
			if m > n+2 || largeSize > size+1024 {
				t.Errorf("%d bytes: %d allocations of %d bytes; %d bytes: %d of %d", len(text), n, size, len(large), m, largeSize)
			}
			if n > 100 || size > 64<<10 {
				t.Errorf("%d allocations of %d bytes for one page", n, size)
			}
		})
	}
}

// TestAdaptersEverSeen: vLLM's LoRA gauge keeps a series for every combination
// of adapters it ever had. The newest is found, and the others cost a few bytes
// each, no allocation of their own.
func TestAdaptersEverSeen(t *testing.T) {
	const n = 10_000
	var page bytes.Buffer
	for i := range n {
		fmt.Fprintf(&page, "vllm:lora_requests_info{max_lora=\"4\",running_lora_adapters=\"a%d\",waiting_lora_adapters=\"\"} %d\n", i, 1_700_000_000+(i*7919)%n)
	}
	var s *Sample
	allocs, size := cost(t, func() {
		var err error
		if s, err = Parse(page.Bytes(), ParseOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	if newest := s.LoRA.Running; len(newest) != 1 || !strings.Contains(page.String(), newest[0]+`",waiting_lora_adapters=""} `+fmt.Sprint(1_700_000_000+n-1)) {
		t.Errorf("running %q is not the newest series", newest)
	}
	if allocs > n/20 || size > 4*uint64(page.Len()) {
		t.Errorf("%d allocations of %d bytes for %d series on %d bytes", allocs, size, n, page.Len())
	}
}

// TestHostilePages are as large as a page may be. Each is read or refused in
// linear time, and for a bounded multiple of its size.
func TestHostilePages(t *testing.T) {
	const limit = 4 << 20 // feed.DefaultScrapeBytes
	fill := func(line func(i int) string) []byte {
		var page bytes.Buffer
		for i := 0; page.Len() < limit; i++ {
			page.WriteString(line(i))
		}
		return page.Bytes()
	}
	for _, c := range []struct {
		name string
		page []byte
		says string // "" = it is read
	}{
		{"only wanted series", fill(func(i int) string { return fmt.Sprintf("vllm:num_requests_waiting{a=\"%d\"} 0\n", i) }), ""},
		{"one series again and again", fill(func(int) string { return "vllm:num_requests_waiting 3\n" }), ""},
		{"two forms of a name in turns", fill(func(i int) string {
			return fmt.Sprintf("vllm_num_requests_waiting{a=\"%d\"} 1\nray_vllm_num_requests_waiting{a=\"%d\"} 1\n", i, i)
		}), ""},
		{"one line of labels", append([]byte("vllm:num_requests_waiting{"), fill(func(i int) string { return fmt.Sprintf("a%d=\"\",", i) })...), "more than 256 labels"},
		{"one label without end", append([]byte("vllm:num_requests_waiting{a=\""), fill(func(int) string { return "x" })...), "never closed"},
		{"one name", fill(func(int) string { return "vllm:" }), "no known engine"},
		{"blanks", append([]byte("vllm:num_requests_waiting"), fill(func(int) string { return " " })...), "no value"},
		{"a number of 4 MiB", append([]byte("vllm:num_requests_waiting "), fill(func(int) string { return "1" })...), "no value"},
		{"empty lines", append(fill(func(int) string { return "\n" }), "vllm:num_requests_waiting 3"...), ""},
		{"adapters in one list", append(append([]byte(`vllm:lora_requests_info{running_lora_adapters="`), fill(func(i int) string { return fmt.Sprintf("%d,", i) })...), "\"} 1\n"...), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			s, err := Parse(c.page, ParseOptions{})
			runtime.ReadMemStats(&after)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("sample %v, error %v, want one that says %q", s != nil, err, c.says)
			}
			if err != nil && len(err.Error()) > 500 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > 16*limit {
				t.Errorf("%d bytes allocated for a page of %d", got, len(c.page))
			}
		})
	}
}
