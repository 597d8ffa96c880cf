package feed

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// Only a scrape that nothing answers speaks against the pod, and only where the
// pod itself, or its page once, was.
func TestMuteScrapes(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/good":
			fmt.Fprint(w, smallPage)
		case "/hang":
			<-r.Context().Done()
		case "/stops":
			fmt.Fprint(w, smallPage)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case "/missing":
			http.NotFound(w, r)
		default:
			fmt.Fprint(w, "no metrics here")
		}
	}))
	defer srv.Close()
	dead := httptest.NewServer(nil)
	dead.Close()
	for _, c := range []struct {
		name   string
		url    string
		own    bool
		worked bool
		mute   bool
	}{
		{"refused, own address", dead.URL, true, false, true},
		{"refused, worked before", dead.URL, false, true, true},
		{"refused, a page elsewhere that never came", dead.URL, false, false, false},
		{"hangs", srv.URL + "/hang", true, false, true},
		{"hangs, worked before", srv.URL + "/hang", false, true, true},
		{"stops in mid-page", srv.URL + "/stops", true, true, false},
		{"404", srv.URL + "/missing", true, true, false},
		{"no metrics on the page", srv.URL + "/other", true, true, false},
		{"good", srv.URL + "/good", true, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &scraper{
				id: 1, url: c.url, own: c.own, board: &telemetry.Board{}, client: srv.Client(),
				every: time.Second, timeout: 100 * time.Millisecond, now: Now, counters: &ScrapeCounters{},
			}
			var prev *telemetry.Sample
			if c.worked {
				prev = &telemetry.Sample{At: 1}
				s.board.Put(1, prev)
			}
			s.once(t.Context(), prev)
			if e := s.board.Get(1); e.Mute != c.mute || (e.Err == "") != (c.name == "good") {
				t.Errorf("mute %v, error %q", e.Mute, e.Err)
			}
		})
	}
}
