package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/core/view"
)

func (r *rig) admin(method, path, body string, kv ...string) *httptest.ResponseRecorder {
	return serveAdmin(newAdmin(r.picker, Version{Version: "test"}, quietLog()), method, path, body, kv...)
}

func serveAdmin(a *admin, method, path, body string, kv ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Host = "127.0.0.1:9004"
	for i := 0; i < len(kv); i += 2 {
		req.Header.Add(kv[i], kv[i+1])
	}
	w := httptest.NewRecorder()
	a.handler().ServeHTTP(w, req)
	return w
}

// untimed removes the one field that is measured and not decided.
func untimed(t *testing.T, b []byte) string {
	t.Helper()
	out := regexp.MustCompile(`"(read|decide)_us":[0-9.]+|"source":"(live|recorded)"`).ReplaceAll(b, nil)
	if len(out) == len(b) {
		t.Fatalf("no decide_us in %s", b)
	}
	return string(out)
}

func TestExplainIsThePick(t *testing.T) {
	t.Run("EX-01 EX-02", func(t *testing.T) {
		r := newRig(t, rigOptions{})
		at := time.Now() // queues empty and inputs age with the clock
		r.picker.clock = func() time.Time { return at }
		for i := range 5 {
			r.cache([]string{"a", "b", "c"}[i%3], 0, ids(i+1, 64+i*32))
		}
		for i := range 100 {
			body := string(completion([]string{"m", "m-alias", "ad", "unknown"}[i%4], ids(i%7+1, 200)))
			id := fmt.Sprintf("request-%d", i)
			subset := []string{}
			if i%5 == 0 {
				subset = []string{"10.0.0.2", "[fd00::3]:8000"}
			}
			kv := []string{"content-type", "application/json", requestIDHeader, id}
			if len(subset) > 0 {
				kv = append(kv, subsetKey, strings.Join(subset, ","))
			}
			before := r.inFlight()
			w := r.admin("POST", "/v1/explain?path="+completionsPath, body, kv...)
			if w.Code != 200 || r.inFlight() != before {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			m := reqHeaders(fullDuplex, false, completionsPath, requestIDHeader, id)
			if len(subset) > 0 {
				withSubset(m, subset...)
			}
			c := r.talk() // stays open: load builds up and must be explained too
			c.send(m, reqBody([]byte(body), true))
			d := destination(t, c.recv())
			kept := r.admin("GET", "/v1/explain/"+id, "")
			if a, b := untimed(t, w.Body.Bytes()), untimed(t, kept.Body.Bytes()); a != b {
				t.Fatalf("explained\n%s\npicked\n%s", a, b)
			}
			if !strings.Contains(w.Body.String(), fmt.Sprintf("%q", d)) {
				t.Fatalf("picked %s, explained %s", d, w.Body)
			}
		}
	})
}

func TestAdmin(t *testing.T) {
	r := newRig(t, rigOptions{})
	t.Run("version", func(t *testing.T) {
		if w := r.admin("GET", "/v1/version", ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"version":"test"`) {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	})
	t.Run("names", func(t *testing.T) {
		if w := r.admin("GET", "/v1/names?kind=pod", ""); !strings.Contains(w.Body.String(), `{"name":"a","state":"ok"}`) {
			t.Fatalf("%s", w.Body)
		}
		if w := r.admin("GET", "/v1/names?kind=model", ""); !strings.Contains(w.Body.String(), `[{"name":"ad"},{"name":"m"},{"name":"m-alias"}]`) {
			t.Fatalf("%s", w.Body)
		}
		if w := r.admin("GET", "/v1/names?kind=x", ""); w.Code != 400 {
			t.Fatalf("%d", w.Code)
		}
	})
	t.Run("EX-04", func(t *testing.T) {
		if w := r.admin("GET", "/v1/explain/none", ""); w.Code != 404 || !strings.Contains(w.Body.String(), "no pick is kept yet") {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		for i := range 70 { // the rig's ring holds 64
			c := r.talk()
			c.send(reqHeaders(fullDuplex, true, "/v1/models", requestIDHeader, fmt.Sprintf("id/%d", i)))
			c.rest()
		}
		if w := r.admin("GET", "/v1/explain/id%2F69", ""); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if w := r.admin("GET", "/v1/explain/id%2F5", ""); w.Code != 404 ||
			!strings.Contains(w.Body.String(), "recent picks: id/69, id/68, id/67; the oldest kept: id/6;") {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		list, _ := r.picker.ring.recent("", 64)
		for _, p := range []view.RecentPick{list[0], list[40], list[63]} { // x-eppctl-pick-id names a pick as well
			x, _, _ := r.picker.ring.find(p.PickID)
			if x == nil || x.RequestID != p.RequestID || x.Source != "recorded" {
				t.Fatalf("pick id %q: %+v", p.PickID, x)
			}
		}
		w := r.admin("GET", "/v1/picks?limit=3", "")
		if w.Code != 200 || strings.Count(w.Body.String(), `"request_id"`) != 3 || !strings.Contains(w.Body.String(), `"total":64,"truncated":true`) {
			t.Fatalf("%s", w.Body)
		}
	})
	t.Run("refusals", func(t *testing.T) {
		for body, want := range map[string]int{"{": 400, `{"prompt":"x"}`: 400} {
			if w := r.admin("POST", "/v1/explain?path="+completionsPath, body); w.Code != want || !strings.Contains(w.Body.String(), `"error"`) {
				t.Fatalf("%s: %d %s", body, w.Code, w.Body)
			}
		}
		small := newRig(t, rigOptions{config: func(c *Config) { c.Limits.RequestBytes = 1 << 10 }})
		if w := small.admin("POST", "/v1/explain?path="+completionsPath, strings.Repeat("x", 1<<10+1)); w.Code != 413 {
			t.Fatalf("%d", w.Code)
		}
	})
	t.Run("foreign host", func(t *testing.T) {
		req := httptest.NewRequest("GET", "/v1/version", nil)
		req.Host = "evil.example:9004"
		w := httptest.NewRecorder()
		newAdmin(r.picker, Version{}, quietLog()).handler().ServeHTTP(w, req)
		if w.Code != 403 {
			t.Fatalf("%d", w.Code)
		}
	})
	t.Run("EX-16", func(t *testing.T) {
		body := `{"model":"m","prompt":"a very secret text","messages":[]}`
		w := r.admin("POST", "/v1/explain?path="+completionsPath, body, requestIDHeader, "secret")
		r.ask(reqHeaders(fullDuplex, false, completionsPath, requestIDHeader, "secret"), reqBody([]byte(body), true))
		all := w.Body.String() + r.admin("GET", "/v1/explain/secret", "").Body.String() + r.admin("GET", "/v1/picks", "").Body.String() +
			r.admin("GET", "/v1/state", "").Body.String() + scrapePage(t, r.picker.met, true)
		if strings.Contains(all, "very secret") {
			t.Fatal("prompt text leaks")
		}
	})
}

// slow is a tokenizer that takes a time.
type slow time.Duration

func (slow) Name() string { return "slow" }
func (s slow) Tokenize(context.Context, tokenizer.Text) (tokenizer.Result, error) {
	time.Sleep(time.Duration(s))
	return tokenizer.Result{IDs: ids(1, 100), Cut: -1}, nil
}

// What a request waited for its token ids is told apart from the decision, of a pick and
// of a question: a pick that took long is seldom one that was hard.
func TestReadTime(t *testing.T) {
	const wait = 20 * time.Millisecond
	r := newRig(t, rigOptions{provider: slow(wait)})
	const body = `{"model":"m","prompt":"text"}`
	c := r.talk()
	c.send(reqHeaders(fullDuplex, false, completionsPath, requestIDHeader, "x"), reqBody([]byte(body), true))
	destination(t, c.recv())
	for what, w := range map[string]*httptest.ResponseRecorder{
		"the pick": r.admin("GET", "/v1/explain/x", ""), "a question": r.admin("POST", "/v1/explain?path="+completionsPath, body),
	} {
		var x pick.Explanation
		if err := json.Unmarshal(w.Body.Bytes(), &x); err != nil || x.ReadUs == nil || *x.ReadUs < micros(wait) || *x.DecideUs <= 0 {
			t.Errorf("%s: %s, %v", what, w.Body, err)
		}
	}
	var list struct{ Picks []view.RecentPick }
	w := r.admin("GET", "/v1/picks", "")
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || len(list.Picks) != 1 || list.Picks[0].ReadUs < micros(wait) {
		t.Errorf("picks: %s, %v", w.Body, err)
	}
}

func TestAdminInFlight(t *testing.T) {
	t.Run("ADM-02", func(t *testing.T) {
		g := gate{make(chan struct{}, 16), make(chan struct{})}
		r := newRig(t, rigOptions{provider: g})
		a := newAdmin(r.picker, Version{}, quietLog())
		explain := func() int {
			return serveAdmin(a, "POST", "/v1/explain?path="+completionsPath, `{"model":"m","prompt":"x"}`).Code
		}
		var wg sync.WaitGroup
		codes := make([]int, adminInFlight)
		for i := range codes {
			wg.Go(func() { codes[i] = explain() })
		}
		for range codes {
			<-g.asked
		}
		if code := explain(); code != http.StatusTooManyRequests {
			t.Fatalf("the ninth gets %d", code)
		}
		r.route(completion("m", ids(1, 64))) // picks go on
		close(g.open)
		wg.Wait()
		for _, code := range codes {
			if code != 200 {
				t.Fatalf("codes %v", codes)
			}
		}
	})
}

func TestStateIsBounded(t *testing.T) {
	t.Run("ADM-03", func(t *testing.T) {
		var pods []pod.Spec
		for i := range 300 {
			pods = append(pods, pod.Spec{Name: fmt.Sprintf("p%03d", i), Address: fmt.Sprintf("10.0.%d.%d:80", i/200, i%200+1), Model: "m"})
		}
		r := newRig(t, rigOptions{pods: pods})
		var s view.Snapshot
		for path, want := range map[string][2]int{
			"/v1/state?limit=50": {50, 300}, "/v1/state": {stateRows, 300}, "/v1/state?filter=p29": {10, 10}, "/v1/state?limit=-1": {stateRows, 300},
		} {
			s = view.Snapshot{}
			if err := json.Unmarshal(r.admin("GET", path, "").Body.Bytes(), &s); err != nil {
				t.Fatal(err)
			}
			if len(s.Pods) != want[0] || s.Total != want[1] || s.Truncated != (want[0] < want[1]) {
				t.Fatalf("%s: %d rows of %d, truncated %v", path, len(s.Pods), s.Total, s.Truncated)
			}
		}
	})
}

func TestRing(t *testing.T) {
	r := newRing(3)
	put := func(id string) *decided {
		d := r.take()
		d.card.RequestID, d.card.Winner, d.card.Now = id, -1, time.Now().UnixNano()
		r.put(d)
		return d
	}
	put("1")
	put("2")
	put("2") // the same id again: the later one counts
	put("3")
	if x, _, _ := r.clone("1"); x != nil {
		t.Fatal("the oldest is still there")
	}
	if x, _, _ := r.clone("2"); x == nil {
		t.Fatal("2 is gone")
	}
	put("4")
	if x, _, _ := r.clone("2"); x == nil {
		t.Fatal("the later 2 went with the earlier one")
	}
	if put("5"); len(r.byID) != 3 {
		t.Fatalf("%d ids of 3 decisions", len(r.byID))
	}
	none := newRing(0)
	d := none.take()
	none.put(d)
	if none.take() != d {
		t.Fatal("a ring of size 0 does not reuse")
	}
}
