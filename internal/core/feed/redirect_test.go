package feed

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/eppctl/eppctl/internal/testdata"
)

// Nobody is asked but the server whose address is configured, whatever it answers; what
// it sends on to within itself is followed, if that ends.
func TestRedirects(t *testing.T) {
	var strayed atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		strayed.Add(1)
		if strings.HasSuffix(r.URL.Path, "/json") {
			w.Write([]byte(`{"models":1}`))
			return
		}
		w.Write([]byte(smallPage))
	}))
	defer other.Close()
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch to, _ := strings.CutPrefix(r.URL.Path, "/to"); {
			case r.URL.Path == "/page/":
				w.Write([]byte(smallPage))
			case r.URL.Path == "/loop":
				http.Redirect(w, r, "/loop", status)
			case r.URL.Path == "/page":
				http.Redirect(w, r, "/page/", status)
			default:
				http.Redirect(w, r, other.URL+to, status)
			}
		}))
		client := srv.Client()
		sentOn := func(what string, err error) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), "sends on to "+other.URL) || outcomeOf(err) != failed || !answered(err) {
				t.Errorf("%d, %s: %v", status, what, err)
			}
		}
		var buf bytes.Buffer
		_, err := fetchPage(t.Context(), client, srv.URL+"/to/page", 0, &buf)
		sentOn("a page", err)
		if _, mute := err.(muteError); mute {
			t.Error("a server that sends on is taken for one that does not answer")
		}
		var into any
		sentOn("a question", askJSON(t.Context(), client, srv.URL+"/to/json", nil, &into))
		sentOn("a question with a body", askJSON(t.Context(), client, srv.URL+"/to/json", []byte(`{}`), &into))
		sentOn("a pull", (&puller{url: srv.URL + "/to/json", client: client}).poll(t.Context()))
		log := &testdata.Buffer{}
		d := newDevices(client, Now, slog.New(slog.NewTextHandler(log, nil)), srv.URL+"/to/page")
		sentOn("a device exporter", d.scrape(t.Context(), 0, &buf))

		if page, err := fetchPage(t.Context(), client, srv.URL+"/page", 0, &buf); err != nil || string(page) != smallPage {
			t.Errorf("%d within the server: %q, %v", status, page, err)
		}
		if _, err := fetchPage(t.Context(), client, srv.URL+"/loop", 0, &buf); err == nil || !strings.Contains(err.Error(), "sends on to /loop") {
			t.Errorf("%d in a circle: %v", status, err)
		}
		if client.CheckRedirect != nil {
			t.Error("the caller's client was changed")
		}
		client.CloseIdleConnections()
		srv.Close()
	}
	if n := strayed.Load(); n != 0 {
		t.Errorf("%d requests reached the other server", n)
	}
}
