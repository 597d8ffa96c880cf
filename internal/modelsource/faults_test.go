package modelsource

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What the hub refuses, and faults of every kind: each has an error that says what to
// do, and leaves nothing in the cache that is not whole.
func TestHubFaults(t *testing.T) {
	files := tinyFiles(t)
	cut := func(w http.ResponseWriter, content []byte) bool { // announces all, sends half, closes
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		w.Write(content[:len(content)/2])
		panic(http.ErrAbortHandler)
	}
	for _, c := range []struct {
		name  string
		setup func(h *hub, s *Settings)
		model string
		rev   string
		kind  Kind
		says  string // "" = it succeeds
		tries int    // of the vocabulary; 0 = not looked at
	}{
		{name: "gated, no token", setup: func(h *hub, s *Settings) { h.token, h.gated = "hf_x", true }, kind: Forbidden, says: "set HF_TOKEN"},
		{name: "gated, no access", setup: func(h *hub, s *Settings) { h.token, h.gated, s.Token = "hf_x", true, "hf_mine" }, kind: Forbidden, says: "not in the authorized list"},
		{name: "a wrong token", setup: func(h *hub, s *Settings) { h.token, s.Token = "hf_x", "hf_mine" }, kind: Forbidden, says: "HF_TOKEN is valid"},
		{name: "no such model", model: "acme/other", kind: Forbidden, says: "check the name"},
		{name: "no such revision", rev: "v9", kind: Missing, says: "no such revision"},
		{name: "not found", setup: func(h *hub, s *Settings) {
			h.fault = func(p string, _ int, w http.ResponseWriter, _ []byte) bool { w.WriteHeader(404); return true }
		}, kind: Missing, says: "no such model"},
		{name: "no tokenizer", setup: func(h *hub, s *Settings) { h.push("main", map[string][]byte{"config.json": []byte("{}")}) }, kind: Missing, says: "no tokenizer file"},
		{name: "down", setup: func(h *hub, s *Settings) {
			h.fault = func(p string, _ int, w http.ResponseWriter, _ []byte) bool { w.WriteHeader(503); return true }
		}, kind: Unreachable, says: "HTTP status 503"},
		{name: "nobody there", setup: func(h *hub, s *Settings) { s.Endpoint = "http://127.0.0.1:1" }, kind: Unreachable, says: "HF_HUB_OFFLINE"},
		{name: "a portal's page", setup: func(h *hub, s *Settings) {
			h.fault = func(p string, _ int, w http.ResponseWriter, _ []byte) bool { w.Write([]byte("<html>")); return true }
		}, kind: Damaged, says: "not what a hub answers"},
		{name: "redirects without end", setup: func(h *hub, s *Settings) {
			h.fault = func(p string, _ int, w http.ResponseWriter, _ []byte) bool {
				w.Header().Set("Location", p)
				w.WriteHeader(302)
				return true
			}
		}, kind: Damaged, says: "more than 5"},
		{name: "no ETag", setup: func(h *hub, s *Settings) {
			h.fault = func(p string, _ int, w http.ResponseWriter, _ []byte) bool {
				is := strings.HasSuffix(p, "/config.json")
				if is {
					w.Write([]byte("{}"))
				}
				return is
			}
		}, kind: Damaged, says: "ETag"},
		{name: "an ETag that leads out", setup: func(h *hub, s *Settings) {
			h.fault = func(p string, _ int, w http.ResponseWriter, _ []byte) bool {
				is := strings.HasSuffix(p, "/config.json")
				if is {
					w.Header().Set("Etag", `"../../../x"`)
					w.Write([]byte("{}"))
				}
				return is
			}
		}, kind: Damaged, says: "ETag"},
		{name: "cut once", setup: func(h *hub, s *Settings) {
			h.fault = func(p string, try int, w http.ResponseWriter, b []byte) bool {
				return p == "cdn" && try == 1 && cut(w, b)
			}
		}, tries: 2},
		{name: "always cut", setup: func(h *hub, s *Settings) {
			h.fault = func(p string, try int, w http.ResponseWriter, b []byte) bool { return p == "cdn" && cut(w, b) }
		}, kind: Damaged, says: "the transfer ended after", tries: 4},
		{name: "no retries", setup: func(h *hub, s *Settings) {
			s.Retries = -1
			h.fault = func(p string, try int, w http.ResponseWriter, b []byte) bool { return p == "cdn" && cut(w, b) }
		}, kind: Damaged, says: "the transfer ended after", tries: 1},
		{name: "fewer bytes than linked", setup: func(h *hub, s *Settings) {
			h.fault = func(p string, try int, w http.ResponseWriter, b []byte) bool {
				if p == "cdn" {
					w.Write(b[:100])
				}
				return p == "cdn"
			}
		}, kind: Damaged, says: "100 of 48712 bytes came"},
		{name: "more bytes", setup: func(h *hub, s *Settings) {
			h.fault = func(p string, try int, w http.ResponseWriter, b []byte) bool {
				if p == "cdn" {
					w.Write(append(slices.Clone(b), ' '))
				}
				return p == "cdn"
			}
		}, kind: Damaged, says: "more bytes came"},
		{name: "another content", setup: func(h *hub, s *Settings) {
			h.fault = func(p string, try int, w http.ResponseWriter, b []byte) bool {
				if p == "cdn" {
					w.Write(append(slices.Clone(b[:len(b)-1]), ' '))
				}
				return p == "cdn"
			}
		}, kind: Damaged, says: "not that of its hash"},
		{name: "another content of a small file", setup: func(h *hub, s *Settings) {
			h.fault = func(p string, try int, w http.ResponseWriter, b []byte) bool {
				is := strings.HasSuffix(p, "/config.json")
				if is {
					w.Header().Set("Etag", `"`+etagFor("config.json", []byte("{}"))+`"`)
					w.Write([]byte("[]"))
				}
				return is
			}
		}, kind: Damaged, says: "not that of its hash"},
		{name: "too large", setup: func(h *hub, s *Settings) {
			h.fault = func(p string, try int, w http.ResponseWriter, b []byte) bool {
				is := strings.HasSuffix(p, "/config.json")
				if is {
					w.Header().Set("Etag", `"abc"`)
					w.Header().Set("Content-Length", "99999999999")
				}
				return is
			}
		}, kind: Invalid, says: "more than any of its kind"},
		{name: "a list without end", setup: func(h *hub, s *Settings) {
			s.Retries = -1
			h.fault = func(p string, _ int, w http.ResponseWriter, _ []byte) bool {
				w.Write([]byte(`{"siblings":[`))
				for more := []byte(strings.Repeat(`{"rfilename":"tokenizer.json"},`, 1<<12)); ; {
					if _, err := w.Write(more); err != nil {
						return true
					}
				}
			}
		}, kind: Damaged, says: "not what a hub answers"},
		{name: "another commit than was asked for", rev: strings.Repeat("a1", 20), setup: func(h *hub, s *Settings) {
			h.commits[strings.Repeat("a1", 20)] = h.commits["main"]
		}, kind: Damaged, says: "another commit"},
		{name: "a file without size or end", setup: func(h *hub, s *Settings) {
			s.Retries = -1
			h.fault = func(p string, try int, w http.ResponseWriter, b []byte) bool {
				is := strings.HasSuffix(p, "/config.json")
				if is {
					w.Header().Set("Etag", `"abc"`)
					for more := make([]byte, 1<<20); ; {
						if _, err := w.Write(more); err != nil {
							break
						}
					}
				}
				return is
			}
		}, kind: Damaged, says: "more bytes came"},
		{name: "a stall", setup: func(h *hub, s *Settings) {
			s.Stall, s.Retries = 500*time.Millisecond, 1 // what does not stall is given time
			h.fault = func(p string, try int, w http.ResponseWriter, b []byte) bool {
				if p == "cdn" {
					w.Header().Set("Content-Length", strconv.Itoa(len(b)))
					w.Write(b[:10])
					w.(http.Flusher).Flush()
					<-h.gone
				}
				return p == "cdn"
			}
		}, kind: Unreachable, says: "no byte of tokenizer.json came", tries: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHub(t, files)
			s := h.settings(t)
			if c.setup != nil {
				c.setup(h, s)
			}
			_, err := find(t, s, cmpOr(c.model, modelName), c.rev)
			kind, ours := kindOf(err)
			switch {
			case c.says == "" && err != nil:
				t.Fatal(err)
			case c.says != "" && (!ours || kind != c.kind || !strings.Contains(err.Error(), c.says)):
				t.Errorf("kind %d: %v; want kind %d and %q", kind, err, c.kind, c.says)
			}
			if err != nil && (strings.Contains(err.Error(), "hf_") || strings.Contains(err.Error(), "signature")) {
				t.Errorf("a secret is in the error: %v", err)
			}
			if c.tries > 0 && h.tries["cdn"] != c.tries {
				t.Errorf("%d tries, want %d", h.tries["cdn"], c.tries)
			}
			for _, name := range tree(t, s.Cache) {
				if strings.Contains(name, "incomplete") || strings.HasSuffix(name, ".tmp") || c.says != "" && strings.Contains(name, "refs/") {
					t.Errorf("left in the cache: %s", name)
				}
			}
		})
	}
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
