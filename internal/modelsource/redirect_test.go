package modelsource

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestNoStepDown: a hub that is reached by https sends nobody on by http, nor to what
// is no address of a server.
func TestNoStepDown(t *testing.T) {
	var plain atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { plain.Add(1) }))
	t.Cleanup(other.Close)
	for _, to := range []string{other.URL + "/x", "file:///etc/passwd", "https:///x", "http:x"} {
		h := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
		}))
		t.Cleanup(h.Close)
		s := &Settings{Endpoint: h.URL, Cache: t.TempDir(), HTTP: h.Client(), Token: "hf_secret", Retries: -1}
		_, err := find(t, s, modelName, "")
		if kind, ours := kindOf(err); !ours || kind != Damaged || !strings.Contains(err.Error(), "redirect") {
			t.Errorf("%s: %v", to, err)
		}
	}
	if n := plain.Load(); n != 0 {
		t.Errorf("%d questions went over http", n)
	}
}
