package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/recording"
)

// framesOf opens /v1/frames of a server and returns its reader; stop ends the call.
func framesOf(t *testing.T, url, query string) (r *recording.Reader, status int, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "GET", url+"/v1/frames"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "localhost"
	tr := &http.Transport{DisableKeepAlives: true}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	stop = func() { cancel(); resp.Body.Close() }
	t.Cleanup(stop)
	if resp.StatusCode == http.StatusOK {
		if r, err = recording.NewReader(resp.Body); err != nil {
			t.Fatal(err)
		}
	}
	return r, resp.StatusCode, stop
}

func framesServer(t *testing.T) (*admin, *httptest.Server) {
	t.Helper()
	a := newAdmin(newRig(t, rigOptions{}).picker, Version{Version: "test"}, quietLog())
	srv := httptest.NewServer(a.handler())
	t.Cleanup(srv.Close)
	return a, srv
}

// What the feed receives arrives, for the pods asked for.
func TestFrames(t *testing.T) {
	a, srv := framesServer(t)
	mine, other := &recording.Pod{Name: "vllm-a-0", Addr: "h:1"}, &recording.Pod{Name: "vllm-b-0", Addr: "h:2"}
	a.hub.Open(mine, 1)
	a.hub.Open(other, 1)
	r, _, stop := framesOf(t, srv.URL, "?pod=vllm-a-*")
	if rec, err := r.Next(); err != nil || rec.Type != recording.TypePod || *rec.Pod != *mine {
		t.Fatalf("%+v, %v", rec, err)
	}
	a.hub.Publish(&recording.Record{Type: recording.TypeFrame, At: 2, Pod: other, Parts: [][]byte{{1}}})
	a.hub.Publish(&recording.Record{Type: recording.TypeFrame, At: 3, Pod: mine, Parts: [][]byte{{1}, {}, {2, 3}}})
	rec, err := r.Next()
	if err != nil || rec.Pod.Name != mine.Name || rec.At != 3 || len(rec.Parts) != 3 || string(rec.Parts[2]) != "\x02\x03" {
		t.Fatalf("%+v, %v", rec, err)
	}
	if h := r.Header(); h.Source != "serve" || h.Program != "eppctl test" || len(h.Filters) != 1 {
		t.Errorf("%+v", h)
	}
	stop()
	waitFor(t, "the reader is gone", func() bool { return !a.hub.Watched() })
}

// The calls do not end, so they have slots of their own, and few.
func TestFramesAreFew(t *testing.T) {
	a, srv := framesServer(t)
	var stops []func()
	for range frameClients {
		_, status, stop := framesOf(t, srv.URL, "")
		if status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
		stops = append(stops, stop)
	}
	if _, status, _ := framesOf(t, srv.URL, ""); status != http.StatusTooManyRequests {
		t.Errorf("one more gets %d", status)
	}
	for range 2 * adminInFlight {
		if w := serveAdmin(a, "GET", "/v1/version", ""); w.Code != http.StatusOK {
			t.Fatalf("other calls get %d", w.Code)
		}
	}
	stops[0]()
	waitFor(t, "a slot is free again", func() bool {
		_, status, stop := framesOf(t, srv.URL, "")
		stop()
		return status == http.StatusOK
	})
	req := httptest.NewRequest("GET", "/v1/frames", nil)
	req.Host = "evil.example"
	w := httptest.NewRecorder()
	a.handler().ServeHTTP(w, req)
	if w.Code != http.StatusForbidden {
		t.Errorf("foreign host: %d", w.Code)
	}
}

// A client that does not read costs a bounded amount of memory, and learns how
// much it missed; whoever publishes never waits.
func TestFramesOfASlowClient(t *testing.T) {
	a, srv := framesServer(t)
	c, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET /v1/frames HTTP/1.0\r\nHost: localhost\r\n\r\n")
	waitFor(t, "a reader", a.hub.Watched)
	pod := &recording.Pod{Name: "p"}
	const sent, size = 4000, 64 << 10 // 250 MiB
	for i := range int64(sent) {
		a.hub.Publish(&recording.Record{Type: recording.TypeFrame, At: i, Pod: pod, Parts: [][]byte{make([]byte, size)}})
	}
	head := make([]byte, 0, 4096)
	for !strings.Contains(string(head), "\r\n\r\n") {
		b := make([]byte, 1)
		if _, err := io.ReadFull(c, b); err != nil {
			t.Fatal(err)
		}
		head = append(head, b...)
	}
	if err := c.SetReadDeadline(time.Now().Add(eventually)); err != nil {
		t.Fatal(err)
	}
	r, err := recording.NewReader(c)
	if err != nil {
		t.Fatal(err)
	}
	var seen, dropped uint64
	for last := int64(-1); last < sent-1; {
		rec, err := r.Next()
		if err != nil {
			var fe *recording.FormatError
			t.Fatalf("%d seen, %d dropped: %v (cut: %v)", seen, dropped, err, errors.As(err, &fe))
		}
		switch rec.Type {
		case recording.TypeFrame:
			seen, last = seen+1, rec.At
		case recording.TypeNotice:
			dropped += rec.Notice.Count
		}
	}
	if seen+dropped != sent || dropped == 0 {
		t.Errorf("%d seen and %d dropped of %d", seen, dropped, sent)
	}
}

// Through the whole of serve.
func TestFramesOfServe(t *testing.T) {
	p := startProcess(t, 1, same)
	r, status, _ := framesOf(t, "http://"+p.at.Admin, "")
	if status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	body := completion("sim", ids(1, 320))
	resp, err := http.Post(p.fleet.Engines[0].URL()+"/v1/completions", "application/json", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	var up, frame bool
	for !up || !frame {
		rec, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		up = up || rec.Type == recording.TypeNotice && rec.Notice.Kind == recording.Up
		frame = frame || rec.Type == recording.TypeFrame && len(rec.Parts) == 3
	}
}
