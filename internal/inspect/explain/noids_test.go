package explain

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/inspect"
)

// TestNoIDs: of an engine that tells no ids it is said what it did, why, and what to do,
// without the calls and paths of libraries.
func TestNoIDs(t *testing.T) {
	status := func(code int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
		t.Cleanup(s.Close)
		return s.URL
	}
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the end of the connection is not seen
		<-r.Context().Done()
	}))
	t.Cleanup(hanging.Close)
	for name, tc := range map[string]struct {
		url, what, why, hint string
		patience             time.Duration
	}{
		"dead port":      {down.URL, "cannot reach the engine at URL: connection refused", "no engine is running there, or its port differs", "another engine that serves llama-3.3-70b", 0},
		"no such name":   {"http://engine.invalid:8000", "cannot reach the engine at URL: no such host", "the name engine.invalid has no address here", "another engine", 0},
		"hangs":          {hanging.URL, "cannot reach the engine at URL: no answer in 50ms", "it hangs", "another engine", 50 * time.Millisecond},
		"without TLS":    {strings.Replace(status(404), "http:", "https:", 1), "cannot reach the engine at URL: it does not speak TLS", "begins with http://", "another engine", 0},
		"not trusted":    {secure.URL, "cannot reach the engine at URL: its certificate is not trusted", "x509: ", "another engine", 0},
		"not HTTP":       {banner(t, "SSH-2.0-OpenSSH_9.6\r\n"), "cannot reach the engine at URL: it answers with something that is not HTTP", "no engine", "another engine", 0},
		"hangs up":       {banner(t, ""), "URL tells no token ids", "EOF", "another engine", 0},
		"offers nothing": {status(404), "URL tells no token ids", "neither render nor /tokenize for llama-3.3-70b", "'eppctl check'", 0},
		"refuses":        {status(400), "URL tells no token ids", "it refuses the request", "the engine's log", 0},
		"fails":          {status(500), "URL tells no token ids", "HTTP status 500", "another engine", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := pipe()
			c := Command{Input: Input{Prompt: "Once upon a time"}, Format: "table", Engine: tc.url, Patience: tc.patience}
			err := c.Run(t.Context(), &asker{body: withPrompt(t)}, s)
			var e *inspect.Error
			if !errors.As(err, &e) || e.Kind != inspect.Unreachable || e.Code != "E_ENGINE" {
				t.Fatalf("ends with %v", err)
			}
			if e.What != strings.Replace(tc.what, "URL", tc.url, 1) || !strings.Contains(e.Why, tc.why) || !strings.Contains(e.Hint, tc.hint) {
				t.Errorf("%s\n  %s\n  %s", e.What, e.Why, e.Hint)
			}
			for _, raw := range []string{"Post ", "dial tcp", "lookup", "read tcp", "/v1/"} {
				if strings.Contains(err.Error(), raw) {
					t.Errorf("quotes %q: %v", raw, err)
				}
			}
		})
	}
}

// TestNoIDsOfTheInterrupted: who interrupts is told of that alone.
func TestNoIDsOfTheInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var e *inspect.Error
	if err := noIDs(ctx, time.Second, "http://e", "m", context.Canceled); !errors.As(err, &e) || e.Kind != inspect.Interrupted {
		t.Errorf("%v", err)
	}
}

// banner is the URL of a server that says a line to whoever asks, and hangs up.
func banner(t *testing.T, line string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = c.Write([]byte(line))
		c.Close()
	}))
	t.Cleanup(s.Close)
	return s.URL
}
