package feed

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// What an engine tells of itself is read up to 1 MiB; more is no answer.
func TestAnswerIsBounded(t *testing.T) {
	for size, want := range map[int]bool{1 << 20: true, 1<<20 + 1: false} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`"` + strings.Repeat("x", size-2) + `"`))
		}))
		var got string
		err := askJSON(t.Context(), srv.Client(), srv.URL, nil, &got)
		srv.Close()
		if ok := err == nil && len(got) == size-2; ok != want {
			t.Errorf("%d bytes: %d read, %v", size, len(got), err)
		}
		if !want && (!errors.Is(err, errNotJSON) || !strings.Contains(err.Error(), "larger than 1048576 bytes")) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// says is a server that answers every request with the same bytes, whatever they are, and
// with what it was asked behind them.
func says(t *testing.T, text string) (url string) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, _ := io.ReadAll(r.Body)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = fmt.Fprintf(conn, "%s%s\r\n\r\n", text, asked) // the client hangs up when it has had enough
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// garbled are answers that package http quotes in its errors.
func garbled(length int) map[string]string {
	long := strings.Repeat("A\x1b[31m", length)
	return map[string]string{
		"no HTTP":              long,
		"a status":             "HTTP/1.1 " + long,
		"a version":            "HTTP/9." + long + " 200 OK\r\n",
		"a header":             "HTTP/1.1 200 OK\r\nno colon " + long,
		"a length":             "HTTP/1.1 200 OK\r\nContent-Length: " + long,
		"a coding of transfer": "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + long,
		"a trailer":            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nno colon " + long,
	}
}

// Package http quotes what it cannot read. People are told the beginning of it: it stands
// on the board, and so in every decision that is kept, in every frame of top and in the log.
func TestQuotedAnswersAreCut(t *testing.T) {
	for name, text := range garbled(100_000) {
		t.Run(name, func(t *testing.T) {
			url := says(t, text)
			s := &scraper{
				id: 1, url: url, board: &telemetry.Board{}, client: Options{}.withDefaults().HTTP,
				every: time.Minute, now: Now, counters: &ScrapeCounters{},
			}
			defer s.client.CloseIdleConnections()
			if _, err := s.once(t.Context(), nil); err == nil {
				t.Fatal("it was read")
			}
			if got := s.board.Get(1).Err; got == "" || len(got) > 2*mostSaid || strings.ContainsRune(got, 0x1b) {
				t.Errorf("the board has %d bytes: %.300q", len(got), got)
			}
			err := askJSON(t.Context(), s.client, url, nil, &struct{}{})
			if err == nil || len(err.Error()) > 2*mostSaid {
				t.Errorf("a question: %.300v", err)
			}
		})
	}
}

// What an engine says of itself is told in a finding up to a length.
func TestFindingsAreCut(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	on := []eventSource{{on: true, endpoint: "tcp://" + long + ":0", replay: "tcp://" + long + ":0"}}
	told := told{
		engine: pod.EngineVLLM, events: on, aboutModels: question{outcome: given}, aboutEvents: question{outcome: given},
		models: []servedModel{{ID: long}, {ID: "base"}, {ID: long + "a", Parent: &long}},
	}
	spec, findings := complete(pod.Spec{Name: "p", Address: "10.0.0.1:8000"}, told)
	if spec.Model != "base" || len(spec.Adapters) != 0 {
		t.Errorf("model %.20q, %d adapters: want no name that no request can ask for", spec.Model, len(spec.Adapters))
	}
	if len(findings) == 0 {
		t.Error("nothing was found")
	}
	for _, f := range findings {
		if n := len(f.String()); n > 1000 {
			t.Errorf("%s: a finding of %d bytes", f.Code, n)
		}
	}
}
