package feed

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/testdata"
)

const smallPage = "vllm:num_requests_waiting 3\nvllm:num_requests_running 2\n"

func capture(tb testing.TB, path ...string) []byte {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{testdata.Dirs(tb, "engines")[0]}, path...)...))
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// answer serves one fixed response to one scrape and returns what the board
// shows then, with a good sample (waiting 7) on it from before.
func answer(t *testing.T, h http.HandlerFunc) telemetry.Entry {
	t.Helper()
	srv := httptest.NewServer(h)
	defer srv.Close()
	client := srv.Client()
	defer client.CloseIdleConnections()
	s := &scraper{
		id: 1, url: srv.URL + "/metrics", board: &telemetry.Board{}, client: client,
		every: 2 * time.Second, now: func() int64 { return 50 }, counters: &ScrapeCounters{},
	}
	before := &telemetry.Sample{At: 10, Waiting: telemetry.Value{V: 7, Known: true, Metric: "x"}}
	s.board.Put(1, before)
	if next, err := s.scrape(t.Context(), before); err != nil {
		s.board.Fail(1, err.Error(), s.now())
	} else {
		s.publish(next, before)
	}
	return s.board.Get(1)
}

func TestScrapeAnswers(t *testing.T) {
	const text = "text/plain; version=0.0.4"
	half := func(w http.ResponseWriter, r *http.Request) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		page := capture(t, "vllm-0.32.0", "llama", "metrics-loaded.prom")
		fmt.Fprintf(buf, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", text, len(page), page[:len(page)/2])
		buf.Flush()
	}
	plain := func(status int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	packed := func(text string, cut int) http.HandlerFunc {
		var page bytes.Buffer
		z := gzip.NewWriter(&page)
		fmt.Fprint(z, text)
		z.Close()
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(page.Bytes()[:page.Len()-cut])
		}
	}
	// What SGLang answers to a client that negotiates it (labels and names of
	// 0.5.23), with an exemplar where the format allows one.
	const openMetrics = `# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model_name="m"} 3.0
# TYPE vllm:prefix_cache_hits counter
vllm:prefix_cache_hits_total{model_name="m"} 96.0
vllm:prefix_cache_hits_created{model_name="m"} 1.7e9
# TYPE vllm:ttft_seconds histogram
vllm:ttft_seconds_bucket{le="0.1"} 4.0 # {trace_id="a"} 0.05 1.7e9
# EOF
`
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		says    string // of the error, "" = the page is read
	}{
		{"gzip", packed(smallPage, 0), ""},
		{"EM-29 gzip cut short", packed(smallPage, 9), "page cut after"},
		{"gzip in gzip", func(w http.ResponseWriter, r *http.Request) {
			rec := httptest.NewRecorder()
			packed(smallPage, 0)(rec, r)
			packed(rec.Body.String(), 0)(w, r)
		}, "binary data"},
		{"an encoding nobody asked for", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "zstd")
			w.Write([]byte("\x28\xb5\x2f\xfd\x04\x00"))
		}, "binary data"},
		{"OpenMetrics", plain(200, "application/openmetrics-text; version=1.0.0; charset=utf-8", openMetrics), ""},
		{"OpenMetrics with an exemplar on a wanted counter", plain(200, "application/openmetrics-text; version=1.0.0",
			strings.Replace(openMetrics, " 96.0", " 96.0 # {trace_id=\"a\"} 32", 1)), "no timestamp"},
		{"EM-43 version 1.0.0", plain(200, "text/plain; version=1.0.0; charset=utf-8", smallPage), ""},
		{"no content type", plain(200, "", smallPage), ""},
		{"EM-28 empty", plain(200, text, ""), "empty page"},
		{"EM-28 blank", plain(200, text, "\n \n"), "empty page"},
		{"EM-28 JSON list", plain(200, "application/json", "[]"), "/prometheus/metrics"},
		{"EM-28 JSON as text", plain(200, text, `[{"iter": 1}]`), "/prometheus/metrics"},
		{"EM-28 HTML", plain(200, "text/html", "<html><body>hi</body></html>"), "HTML instead"},
		{"EM-28 HTML as text", plain(200, text, "<!doctype html><p>hi"), "HTML instead"},
		{"EM-28 401", plain(401, text, "who\x1b[31m are\nyou?"), "HTTP 401: who [31m are you?"},
		{"EM-28 403", plain(403, text, ""), "HTTP 403"},
		{"EM-28 404", plain(404, text, "404 page not found\n"), "HTTP 404: 404 page not found"},
		{"EM-28 500", plain(500, "text/html", "<html>oops"), "HTTP 500: <html>oops"},
		{"another program", plain(200, text, "go_goroutines 1\n"), "no known engine metrics"},
		{"EM-26 exemplar", plain(200, text, "vllm:num_requests_waiting 2 # {a=\"b\"} 1\n"), "metrics page"},
		{"EM-29 5 MiB", plain(200, text, strings.Repeat("# "+strings.Repeat("x", 1022)+"\n", 5<<10)), "larger than 4194304"},
		{"EM-29 cut at half", half, "page cut after"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := answer(t, c.handler)
			if c.says == "" {
				if e.Err != "" || e.Sample.Waiting.V != 3 || e.Sample.At != 50 {
					t.Fatalf("%+v", e)
				}
				return
			}
			if !strings.Contains(e.Err, c.says) {
				t.Errorf("error %q, want one that says %q", e.Err, c.says)
			}
			if e.Sample == nil || e.Sample.Waiting.V != 7 || e.Sample.At != 10 || e.ErrAt != 50 {
				t.Errorf("the last good values are gone: %+v", e)
			}
		})
	}
}

func TestScrapeAsksForClassicText(t *testing.T) {
	var accept, encoding string
	page := capture(t, "vllm-0.32.0", "llama", "metrics-loaded.prom")
	e := answer(t, func(w http.ResponseWriter, r *http.Request) {
		accept, encoding = r.Header.Get("Accept"), r.Header.Get("Accept-Encoding")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		z.Write(page)
		z.Close()
	})
	if accept != "text/plain;version=0.0.4" || encoding != "gzip" {
		t.Errorf("Accept %q, Accept-Encoding %q", accept, encoding)
	}
	if e.Err != "" || e.Sample.Waiting.V != 4 || e.Sample.Running.V != 8 {
		t.Errorf("%+v", e)
	}
}

// TestEM29Bomb sends a page that is small on the wire and large when decoded.
func TestEM29Bomb(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprintf(z, "%s#%s\n", smallPage, strings.Repeat(" ", 64<<20))
	z.Close()
	e := answer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(packed.Bytes())
	})
	if !strings.Contains(e.Err, "larger than") {
		t.Errorf("error %q", e.Err)
	}
}

func TestScrapeNothingListens(t *testing.T) {
	s := &scraper{url: "http://" + testdata.Deaf(t) + "/metrics", client: &http.Client{}, every: time.Second, now: func() int64 { return 0 }}
	if _, err := s.scrape(t.Context(), nil); err == nil || strings.Contains(err.Error(), "/metrics") {
		t.Errorf("error %v, want one without the URL", err)
	}
}

// pipes is an in-memory network: a real HTTP server and client under the fake
// clock of a synctest bubble.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// fleet runs n scrapers against h inside the current bubble; h sees the pod's
// number in the path. stop ends all of it.
func fleet(t *testing.T, n int, every time.Duration, h http.Handler) (b *telemetry.Board, stop func()) {
	t.Helper()
	return countedFleet(t, n, every, h, &ScrapeCounters{})
}

func countedFleet(t *testing.T, n int, every time.Duration, h http.Handler, counters *ScrapeCounters) (b *telemetry.Board, stop func()) {
	t.Helper()
	net := newPipes()
	srv := &http.Server{Handler: h}
	var wg sync.WaitGroup
	wg.Go(func() { srv.Serve(net) })
	client := &http.Client{Transport: &http.Transport{DialContext: net.dial}}
	ctx, cancel := context.WithCancel(t.Context())
	b = &telemetry.Board{}
	for i := range n {
		s := &scraper{
			id: pod.ID(i), url: fmt.Sprintf("http://pod/%d", i), board: b, client: client, every: every,
			carry: 5 * time.Second, now: func() int64 { return time.Now().UnixNano() }, counters: counters,
		}
		wg.Go(func() { s.run(ctx) })
	}
	return b, func() {
		cancel()
		srv.Close()
		net.Close()
		client.CloseIdleConnections()
		wg.Wait()
	}
}

var defaultLimits = telemetry.Limits{FreshNs: int64(2 * time.Second), KnownNs: int64(5 * time.Second)}

func states(b *telemetry.Board, n int) map[telemetry.State]int {
	count := map[telemetry.State]int{}
	for i := range n {
		count[b.Get(pod.ID(i)).State(time.Now().UnixNano(), defaultLimits)]++
	}
	return count
}

func TestEM30HangingPodsDelayNobody(t *testing.T) {
	const every = 250 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		var scrapes [20]atomic.Int64
		b, stop := fleet(t, 20, every, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var i int
			fmt.Sscanf(r.URL.Path, "/%d", &i)
			scrapes[i].Add(1)
			if i < 3 {
				select { // hang for 30 s, or until the scraper gives up
				case <-r.Context().Done():
				case <-time.After(30 * time.Second):
				}
			}
			fmt.Fprint(w, smallPage)
		}))
		defer stop()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if got := states(b, 20); got[telemetry.Fresh] != 17 || got[telemetry.Unknown] != 3 {
			t.Errorf("states %v, want 17 fresh and 3 unknown", got)
		}
		for i := range 20 {
			n := scrapes[i].Load()
			if i < 3 {
				if n < 7 || n > 11 { // 0.5 s each, then waits of 0.5, 1, 2, 2, ... s
					t.Errorf("hanging pod %d was asked %d times", i, n)
				}
				if e := b.Get(pod.ID(i)); e.Err != "no complete answer within 500ms" {
					t.Errorf("pod %d: error %q", i, e.Err)
				}
				continue
			}
			if n < 75 || n > 85 { // 80 intervals, jitter averaged out
				t.Errorf("pod %d was scraped %d times in 80 intervals", i, n)
			}
		}
	})
}

// A fleet scraped in step would be a burst at each tick: 30 intervals of a pod
// differ, and no two pods begin together.
func TestScrapeJitter(t *testing.T) {
	const every, n, pods = 250 * time.Millisecond, 30, 3
	synctest.Test(t, func(t *testing.T) {
		var at [pods][]time.Time // each of its pod's only connection
		_, stop := fleet(t, pods, every, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var i int
			fmt.Sscanf(r.URL.Path, "/%d", &i)
			at[i] = append(at[i], time.Now())
			fmt.Fprint(w, smallPage)
		}))
		begin := time.Now()
		time.Sleep(2 * n * every)
		stop()
		starts := map[time.Duration]bool{}
		for i, times := range at {
			if len(times) <= n {
				t.Fatalf("pod %d: %d scrapes", i, len(times))
			}
			start := times[0].Sub(begin)
			if start < 0 || start >= every {
				t.Errorf("pod %d begins after %v", i, start)
			}
			starts[start] = true
			seen := map[time.Duration]bool{}
			for k := range n {
				d := times[k+1].Sub(times[k])
				if d < every*4/5 || d > every*6/5 {
					t.Errorf("pod %d: interval of %v, want %v ± 20 %%", i, d, every)
				}
				seen[d] = true
			}
			if len(seen) != n {
				t.Errorf("pod %d: %d different intervals of %d", i, len(seen), n)
			}
		}
		if len(starts) != pods {
			t.Errorf("%d different starts of %d pods", len(starts), pods)
		}
	})
}

// TestEM31EM32Ages stops a pod's page and looks at the board 1, 3 and 10 s later;
// EM-31 is that of a whole fleet, with one warning.
func TestEM31EM32Ages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 4
		var down atomic.Bool
		var log bytes.Buffer
		counters := &ScrapeCounters{blind: blindness{log: slog.New(slog.NewTextHandler(&log, nil))}}
		b, stop := countedFleet(t, n, 250*time.Millisecond, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if down.Load() {
				http.Error(w, "no", http.StatusInternalServerError)
				return
			}
			fmt.Fprint(w, smallPage)
		}), counters)
		time.Sleep(time.Second)
		down.Store(true)
		var at time.Duration
		for _, c := range []struct {
			after time.Duration
			want  telemetry.State
		}{{time.Second, telemetry.Fresh}, {3 * time.Second, telemetry.Stale}, {10 * time.Second, telemetry.Unknown}} {
			time.Sleep(c.after - at)
			at = c.after
			synctest.Wait()
			if got := states(b, n); got[c.want] != n {
				t.Errorf("EM-31, EM-32 after %v: %v, want all %s", c.after, got, c.want)
			}
			if e := b.Get(0); e.Sample.Waiting.V != 3 || e.Err != "HTTP 500: no" {
				t.Errorf("after %v: %+v", c.after, e)
			}
		}
		down.Store(false)
		time.Sleep(7 * time.Second) // the longest back-off with its jitter
		synctest.Wait()
		if got := states(b, n); got[telemetry.Fresh] != n {
			t.Errorf("after recovery: %v", got)
		}
		stop()
		said := log.String()
		if strings.Count(said, "level=WARN") != 1 || strings.Count(said, "level=INFO") != 1 || !strings.Contains(said, "pods=4 err=\"HTTP 500: no\"") {
			t.Errorf("EM-31: one warning and its end, logged:\n%s", said)
		}
		if c := &counters.blind; c.scraped != 0 || c.failed != 0 {
			t.Errorf("%d pods scraped, %d failing after the end", c.scraped, c.failed)
		}
	})
}

// That unreadable pods leave, or new ones come, makes no page readable.
func TestBlindness(t *testing.T) {
	for _, c := range []struct {
		name  string
		do    func(b *blindness)
		again int
	}{
		{"the end", func(b *blindness) { b.leave(true); b.leave(true) }, 0},
		{"one is removed", func(b *blindness) { b.leave(true) }, 0},
		{"another comes, and cannot be read either", func(b *blindness) { b.join(); b.fail(io.EOF) }, 0},
		{"another comes, and can", func(b *blindness) { b.join(); b.read(false) }, 1},
		{"one recovers, then the other", func(b *blindness) { b.read(true); b.read(true) }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			b := blindness{log: slog.New(slog.NewTextHandler(&log, nil))}
			b.join()
			b.join()
			b.fail(io.EOF)
			b.fail(io.EOF)
			c.do(&b)
			if w, i := strings.Count(log.String(), "level=WARN"), strings.Count(log.String(), "level=INFO"); w != 1 || i != c.again {
				t.Errorf("%d warnings, %d ends, want 1 and %d:\n%s", w, i, c.again, &log)
			}
		})
	}
}

// TestScrapeReportsRestart feeds two processes' pages through publish.
func TestScrapeReportsRestart(t *testing.T) {
	page := func(start, queries int) *telemetry.Sample {
		s, err := telemetry.Parse(fmt.Appendf(nil, "process_start_time_seconds %d\nvllm:prefix_cache_queries_total %d\n", start, queries), telemetry.ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	var got []string
	s := &scraper{
		board: &telemetry.Board{}, counters: &ScrapeCounters{}, carry: time.Second,
		sampled: func(_ *telemetry.Sample, restart string) { got = append(got, restart) },
	}
	a, b, c, d := page(100, 5), page(100, 9), page(200, 9), page(200, 1)
	s.publish(a, nil)
	s.publish(b, a)
	s.publish(c, b)
	s.publish(d, c)
	want := []string{"", "", "process start time changed", "vllm:prefix_cache_queries_total went back"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("restarts %q, want %q", got, want)
	}
	if n := s.counters.Restarts.Load(); n != 2 {
		t.Errorf("%d restarts counted", n)
	}
}

// TestScrapeCarries: a metric that drops out keeps its value, but not over a
// restart.
func TestScrapeCarries(t *testing.T) {
	page := func(text string) *telemetry.Sample {
		s, err := telemetry.Parse([]byte(text), telemetry.ParseOptions{At: 1})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	const full = "process_start_time_seconds 100\nvllm:num_requests_waiting 9\nvllm:num_requests_running 1\n"
	for text, want := range map[string]bool{
		"process_start_time_seconds 100\nvllm:num_requests_running 1\n": true,
		"process_start_time_seconds 200\nvllm:num_requests_running 1\n": false,
	} {
		s := &scraper{board: &telemetry.Board{}, counters: &ScrapeCounters{}}
		s.publish(page(text), page(full))
		if w := s.board.Get(0).Sample.Waiting; w.Known != want || (want && w.V != 9) {
			t.Errorf("%q: waiting %+v, want known %v", text, w, want)
		}
	}
}
