package top

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/inspect"
)

// A server that hangs, stops half way, is somebody else, or never ends is told of, and
// what was shown stays, with its age.
func TestServerThatFails(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"hangs": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no answer in time"},
		"drips": {func(w http.ResponseWriter, r *http.Request) { drip(w, r) }, "no answer in time"},
		"half an answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"kind":"Snapshot","pods":[`))
		}, "unexpected EOF"},
		"cut JSON": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind":"Snapshot","pods":[`))
		}, "the answer is no Snapshot"},
		"another server": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>\x1b[2J")) }, "is not the admin API"},
		"no end": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for chunk := []byte(strings.Repeat(" ", 1<<20)); ; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, "larger than 64 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(tc.answer)
			defer s.Close()
			c, err := inspect.NewClient(s.Listener.Addr().String(), inspect.Timeouts{})
			if err != nil {
				t.Fatal(err)
			}
			r := busy(t, 160, 40)
			r.m.server = c
			r.send(r.m.poll()())
			// On a slow machine an endless answer takes longer than anybody waits.
			if err := r.m.failure; err == nil || !strings.Contains(err.Error(), tc.want) && (name != "no end" || !strings.Contains(err.Error(), "no answer in time")) {
				t.Errorf("%v, want %q", err, tc.want)
			}
			r.has("LOST", "disconnected, last data ", "vllm-a-7", "trying on")
		})
	}
}

// drip sends a byte at a time until nobody listens.
func drip(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	for r.Context().Err() == nil {
		_, _ = w.Write([]byte(" "))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Names of any script, and numbers of any size, keep every line within the screen, and
// none of them is a command to the terminal.
func TestNamesAndNumbersThatLie(t *testing.T) {
	names := []string{
		"日本語のとても長いポッドの名前です", "\u05e9\u05dc\u05d5\u05dd-pod", "\u202eevil", "a\u0301\u0302\u0303\u0304b", "zero\u200b\u200d\ufeffwidth", "\x1b]52;c;eA==\a", "\u009b31m", "🇩🇪👍🏽❤️", "",
		strings.Repeat("x", 6_000), strings.Repeat("\u0301", 3_000), "tab\tand\nline", "\xff\xfe",
	}
	s := fleet()
	few := s.Pods
	s.Pods = nil
	for i, name := range names {
		p := few[i%len(few)]
		p.Name, p.Addr, p.Model, p.Engine, p.State = name, name, name, name, []string{"ok", name}[i%2]
		p.Load, p.Breaker.Waiting, p.Breaker.Limit = view.PodLoad{InFlight: -1 << 62, Waiting: 1 << 62, QueueMs: 1e300, HeldTokens: -1 << 62}, 1<<62, -1
		p.Telemetry.KVUsage, p.Telemetry.Waiting, p.Telemetry.Error = new(-1e300), new(1e300), name
		p.Ranks = []view.Rank{{Rank: -1, Sync: name, Why: name, Detail: name, GPU: -1 << 62, Host: 1 << 62, SinceMs: -1e300, EventAge: new(int64(-1 << 62))}, {Load: view.RankLoad{InFlight: 1 << 62, QueueMs: -1e300}}}
		p.Served = view.PodServed{Picks: 1 << 63, Queried: 1, Cached: 1 << 63, Depths: [view.DepthBuckets]uint64{3: 1 << 63, 9: 1<<64 - 1}}
		s.Pods = append(s.Pods, p)
		s.Picks[i] = view.RecentPick{RequestID: name, PickID: name, At: name, Model: name, Pod: &s.Pods[i].Name, Tokens: -1, Cached: 1 << 62, Score: new(1e300), TookUs: -1e300}
		s.Tokenizers = append(s.Tokenizers, view.TokenizerState{Model: name, Providers: []view.ProviderState{{
			Name: native, State: name, Why: name, Detail: name, Told: 1<<64 - 1, Failed: map[string]uint64{name: 1<<64 - 1},
			Parity: &view.Parity{State: "failed", Probe: name, Engine: name, DiffersAt: new(-1 << 62), AgeMs: new(int64(-1 << 62))}, Files: &view.TokenizerFiles{Source: name},
		}}})
	}
	s.Index, s.Totals.Pods = view.IndexState{Blocks: -1 << 62, MaxBlocks: 1, Bytes: -1}, -1
	s.At = begin.Format(time.RFC3339Nano)
	raw, err := json.Marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range [][2]int{{60, 12}, {80, 24}, {200, 60}} {
		for _, keys := range []string{"X", "2", "3", "4", "enter", "4 enter", "4 j j j j j j j j j enter", "3 e", "1 j j j j j j j j j enter", "a X"} {
			r := newRig(t, size[0], size[1])
			r.fleet = s
			r.send(frameMsg{raw: raw, got: r.time})
			r.send(frameMsg{raw: raw, got: r.time.Add(time.Second)})
			r.keys(keys)
			for l := range strings.SplitSeq(strings.TrimSuffix(r.plain(), "\n"), "\n") {
				if strings.ContainsAny(l, "\x1b\x07\r\t\x00\u202e\u200b\u200d\ufeff\u009b") {
					t.Errorf("%v %q: %q", size, keys, l)
				}
				if n := lipgloss.Width(l); n > size[0] {
					t.Errorf("%v %q: %d columns: %q", size, keys, n, l)
				}
			}
		}
	}
}

// A name of megabytes is looked through as far as a line could show it.
func TestLongText(t *testing.T) {
	if n := len(plain(strings.Repeat("x", 1<<20))); n != longestText {
		t.Errorf("%d bytes of a text are looked through", n)
	}
}

// More pods than serve ever lists are cut off, and the head says so.
func TestFrameOfManyPods(t *testing.T) {
	s := view.Snapshot{Kind: "Snapshot"}
	for i := range 3 * mostRows {
		s.Pods = append(s.Pods, view.PodState{Name: fmt.Sprint("p", i)})
		s.Picks = append(s.Picks, view.RecentPick{})
	}
	raw, err := json.Marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, 120, 40)
	r.send(frameMsg{raw: raw, got: r.time})
	r.has("(the first 1024)")
	if n := len(r.m.sheet.picks); n != mostRows {
		t.Errorf("%d picks", n)
	}
}
