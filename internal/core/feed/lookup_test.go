package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/testdata"
)

// One failure of a name reads the same however often it happens: no port of ours.
func TestLookupWords(t *testing.T) {
	for want, e := range map[string]*net.DNSError{
		"no such host: vllm-0.svc":                                {Err: "no such host", Name: "vllm-0.svc", Server: "10.0.0.1:53", IsNotFound: true},
		"lookup of vllm-0.svc at 10.0.0.1:53: no answer in time":  {Err: "read udp 10.0.0.9:49622->10.0.0.1:53: i/o timeout", Name: "vllm-0.svc", Server: "10.0.0.1:53", IsTimeout: true},
		"lookup of vllm-0.svc at 10.0.0.1:53: connection refused": {Err: "read udp 10.0.0.9:49622->10.0.0.1:53: read: connection refused", Name: "vllm-0.svc", Server: "10.0.0.1:53"},
		"lookup of vllm-0.svc at 10.0.0.1:53: server misbehaving": {Err: "server misbehaving", Name: "vllm-0.svc", Server: "10.0.0.1:53"},
		"lookup of vllm-0.svc: no answer in time":                 {Err: "i/o timeout", Name: "vllm-0.svc", IsTimeout: true},
		"lookup of a b: no answer in time":                        {Err: "i/o timeout", Name: "a\nb", IsTimeout: true},
		"no such host: " + strings.Repeat("x", 100) + "\u2026":    {Name: strings.Repeat("x", 300), IsNotFound: true},
		"lookup of : ": {},
	} {
		if got, ok := LookupWords(fmt.Errorf("asked: %w", &net.OpError{Op: "dial", Err: e})); got != want || !ok {
			t.Errorf("%q, %v; want %q", got, ok, want)
		}
	}
	if words, ok := LookupWords(errors.New("connection refused")); ok {
		t.Errorf("of another error: %q", words)
	}
}

// silentNames is a client whose name server takes every question and answers none.
func silentNames(t *testing.T) *http.Client {
	names := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { ours.Close(); theirs.Close() })
		return ours, nil
	}}
	tr := &http.Transport{DialContext: (&net.Dialer{Resolver: names}).DialContext}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// A name server that does not answer is what is told, and of which name, by whatever
// asks a pod: not that something took too long.
func TestSilentNameServer(t *testing.T) {
	const want = "lookup of vllm-0.invalid"
	client := silentNames(t)
	for what, ask := range map[string]func(context.Context) error{
		"a question": func(ctx context.Context) error {
			var into any
			return askJSON(ctx, client, "http://vllm-0.invalid:8000/v1/models", nil, &into)
		},
		"a page": func(ctx context.Context) error {
			_, err := fetchPage(ctx, client, "http://vllm-0.invalid:8000/metrics", 0, &bytes.Buffer{})
			return err
		},
		"a pull": (&puller{url: "http://vllm-0.invalid:8000/kv_cache_events", client: client}).poll,
		"a prompt": func(ctx context.Context) error {
			_, err := (&RemoteTokenizer{http: client}).ask(ctx, "http://vllm-0.invalid:8000/tokenize", nil, 1, 1)
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err := ask(ctx)
		cancel()
		if words, ok := LookupWords(err); !ok || !strings.HasPrefix(words, want) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", what, err)
		}
		if got := inWords(err); !strings.HasPrefix(got, want) {
			t.Errorf("%s in words: %q", what, got)
		}
	}

	board := &telemetry.Board{}
	s := &scraper{id: 1, url: "http://vllm-0.invalid:8000/metrics", own: true, board: board, client: client, timeout: 20 * time.Millisecond, now: Now, counters: &ScrapeCounters{}}
	if _, err := s.once(t.Context(), nil); err == nil {
		t.Fatal("scraped")
	}
	if e := board.Get(1); !strings.HasPrefix(e.Err, want) || !e.Mute {
		t.Errorf("the board has %+v", e)
	}

	short, end := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer end()
	r := (&Prober{Client: client}).Probe(short, pod.Spec{Name: "p", Address: "vllm-0.invalid:8000"})
	if f := r.Facts[0]; f.What != "http" || f.OK || !strings.HasPrefix(f.Detail, "vllm-0.invalid:8000: "+want) {
		t.Errorf("check says %v", f)
	}
}

// What took too long for another reason is not the name server's fault, and names
// what was asked.
func TestSilentEngine(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	address := "localhost" + strings.TrimPrefix(ln.Addr().String(), "127.0.0.1")
	r := (&Prober{Client: &http.Client{Transport: tr}}).Probe(ctx, pod.Spec{Name: "p", Address: address})
	if f := r.Facts[0]; f.OK || f.Detail != address+": no answer in time" {
		t.Errorf("check says %v", f)
	}
}

// The log of serve has a pod that nobody hears, once, and that it was heard again.
func TestUnheardIsLogged(t *testing.T) {
	log := &testdata.Buffer{}
	k := &keeper{spec: pod.Spec{Name: "p", Address: "vllm-0.svc:8000"}, pod: &pod.Pod{}, log: slog.New(slog.NewTextHandler(log, nil)), feed: &Feed{fleet: &view.Fleet{Telemetry: &telemetry.Board{}}}}
	w := &work{keeper: k, ctx: t.Context()}
	for range 2 {
		w.unanswered(&net.DNSError{Name: "vllm-0.svc", IsNotFound: true})
	}
	w.answered()
	w.answered()
	if got := log.String(); strings.Count(got, "does not answer") != 1 || strings.Count(got, "the engine answers") != 1 ||
		!strings.Contains(got, "vllm-0.svc:8000") || !strings.Contains(got, "no such host: vllm-0.svc") {
		t.Errorf("logged\n%s", got)
	}
}
