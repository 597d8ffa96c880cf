package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/reason"
)

// Names are kept with each decision, and a client chooses them: none may be as
// long as a body can be.
func TestNamesAreBounded(t *testing.T) {
	long := strings.Repeat("ñ", 1<<20)
	body := func(key string) string {
		b, _ := json.Marshal(map[string]any{"model": "m", "text": "x", "prompt": ids(1, 64), key: long})
		return string(b)
	}
	for _, c := range []struct {
		name, path, body string
		kv               []string
	}{
		{"model", completionsPath, body("model"), nil},
		{"lora_path", "/generate", body("lora_path"), nil},
		{"rewrite", completionsPath, body("user"), []string{"x-gateway-model-name-rewrite", long}},
		{"rewrite of a long name", completionsPath, body("model"), []string{"x-llm-d-model-name-rewrite", "m"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, rigOptions{})
			kv := append([]string{requestIDHeader, "long"}, c.kv...)
			got := r.ask(reqHeaders(fullDuplex, false, c.path, kv...), reqBody([]byte(c.body), true))[0]
			destination(t, got)
			if why := metadataOf(got, reasonKey); why != string(reason.NameTooLong) {
				t.Errorf("reason %q", why)
			}
			card, _, _ := r.picker.ring.clone("long")
			if len(card.Model) > prompt.MaxName || len(card.Adapter) > prompt.MaxName {
				t.Errorf("kept %d bytes of model, %d of adapter", len(card.Model), len(card.Adapter))
			}
			for _, path := range []string{"/v1/picks", "/v1/explain/long"} {
				if n := r.admin("GET", path, "").Body.Len(); n > 32<<10 {
					t.Errorf("%s: %d bytes", path, n)
				}
			}
		})
	}
	t.Run("strict models", func(t *testing.T) {
		r := newRig(t, rigOptions{config: func(c *Config) { c.StrictModels = true }})
		got := r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody([]byte(body("model")), true))[0]
		im := got.GetImmediateResponse()
		if im.GetStatus().GetCode() != http.StatusNotFound || len(im.GetBody()) > 1<<10 || !strings.Contains(string(im.GetBody()), "ññ…") {
			t.Errorf("%s with %d bytes: %.300s", kind(got), len(im.GetBody()), im.GetBody())
		}
	})
}

func TestRingCountsStrings(t *testing.T) {
	r := newRing(1 << 20)
	for i := range 300 {
		d := r.take()
		d.card.RequestID, d.card.Winner = fmt.Sprint(i), -1
		d.card.Model, d.card.Adapter = strings.Repeat("m", 1<<20), strings.Repeat("a", 1<<10)
		r.put(d)
	}
	if kept := r.next - r.oldest; kept > ringBytes>>20 {
		t.Errorf("%d decisions of more than 1 MiB are kept, in %d MiB", kept, ringBytes>>20)
	}
	if list, total := r.recent("", 256); len(list) > 2 || total != int(r.next-r.oldest) {
		t.Errorf("%d MiB listed of %d", len(list), total)
	}
}

// Requests whose bodies do not end hold no slot of the admin API: others are
// answered meanwhile.
func TestUnfinishedBodiesHoldNoSlot(t *testing.T) {
	r := newRig(t, rigOptions{})
	srv := httptest.NewServer(newAdmin(r.picker, Version{Version: "test"}, quietLog()).handler())
	defer srv.Close()
	for range 2 * adminInFlight {
		c, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "POST /v1/explain?path=/v1/completions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n{")
		// The server asks for the body when the handler reads it.
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, "100") {
			t.Fatalf("%q, %v", line, err)
		}
	}
	for range 2 * adminInFlight {
		resp, err := srv.Client().Post(srv.URL+"/v1/explain?path=/v1/completions", "application/json", strings.NewReader(string(completion("m", ids(1, 64)))))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Fatalf("explain: status %d", resp.StatusCode)
		}
	}
	if resp, err := srv.Client().Get(srv.URL + "/v1/version"); err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v, %v", resp, err)
	} else {
		resp.Body.Close()
	}
}

// All bodies under way together are bounded in bytes.
func TestBodiesShareABudget(t *testing.T) {
	var b budget
	first := b.reader(strings.NewReader(strings.Repeat("x", 60)), 100)
	if n, err := io.Copy(io.Discard, first); n != 60 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	second := b.reader(strings.NewReader(strings.Repeat("x", 60)), 100)
	if _, err := io.Copy(io.Discard, second); err != errBudget {
		t.Fatalf("%v", err)
	}
	second.release()
	first.release()
	third := b.reader(strings.NewReader(strings.Repeat("x", 100)), 100)
	if n, err := io.Copy(io.Discard, third); n != 100 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	third.release()
	if b.held.Load() != 0 {
		t.Fatalf("%d bytes leaked", b.held.Load())
	}
}

// However many explanations are asked for, they take one slot of the picks: the
// others stay free, and GETs are answered when explanations take all of the admin
// API's.
func TestExplanationsStandAside(t *testing.T) {
	r := newRig(t, rigOptions{})
	a := newAdmin(r.picker, Version{}, quietLog())
	r.picker.slots.aside <- struct{}{} // one is under way
	body := string(completion("m", ids(1, 6400)))
	var wg sync.WaitGroup
	codes := make([]int, adminInFlight)
	for i := range codes {
		wg.Go(func() {
			codes[i] = serveAdmin(a, "POST", "/v1/explain?path="+completionsPath, body).Code
		})
	}
	waitFor(t, "all explanations wait", func() bool { return len(a.slots) == adminInFlight })
	if n := len(r.picker.slots.all); n != 0 {
		t.Errorf("%d slots of the picks are taken", n)
	}
	r.route([]byte(body))
	if w := serveAdmin(a, "GET", "/v1/version", ""); w.Code != 200 {
		t.Errorf("GET beside them: %d", w.Code)
	}
	if w := serveAdmin(a, "POST", "/v1/explain?path="+completionsPath, body); w.Code != http.StatusTooManyRequests {
		t.Errorf("one more: %d", w.Code)
	}
	<-r.picker.slots.aside
	wg.Wait()
	for _, code := range codes {
		if code != 200 {
			t.Errorf("codes %v", codes)
		}
	}
	if len(r.picker.slots.aside)+len(r.picker.slots.all)+len(a.slots) != 0 {
		t.Error("a slot leaked")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	r.picker.slots.aside <- struct{}{}
	if r.picker.slots.enter(ctx, true) || len(r.picker.slots.all) != 0 {
		t.Error("an explanation went past the one under way")
	}
	<-r.picker.slots.aside
}
