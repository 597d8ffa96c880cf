package top

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// saved are n frames of a busy fleet, a second apart, as -o jsonl writes them.
func saved(t testing.TB, n int) string {
	r := newRig(t, 80, 24)
	var b strings.Builder
	for range n {
		raw, err := r.State(t.Context(), picksShown, "")
		if err != nil {
			t.Fatal(err)
		}
		b.Write(out.JSON(raw))
		r.time = r.time.Add(time.Second)
		r.traffic()
	}
	return b.String()
}

func readFile(t testing.TB, text string) *File {
	t.Helper()
	f := &File{Name: "a.jsonl", Every: time.Second}
	if flaw, err := f.Read(strings.NewReader(text)); err != nil || flaw != "" {
		t.Fatal(flaw, err)
	}
	return f
}

// shown is a rig that shows a file, with a server that must not be asked.
func shown(t testing.TB, f *File) *rig {
	r := newRig(t, 120, 40)
	r.m.open(f)
	r.time = begin.Add(time.Hour)
	return r
}

// A file shows its newest frame and steps through the others; nothing of it goes on,
// and nobody is asked anything.
func TestFile(t *testing.T) {
	r := shown(t, readFile(t, saved(t, 5)))
	r.has("PAST 11:42:11  frame 5 of 5", "REQUESTS  374/s", "a.jsonl", "vllm-a-7", " 0.3\n")
	r.hasNot("LOST", "disconnected")
	r.keys("< <")
	r.has("PAST 11:42:09  frame 3 of 5")
	r.command("at 11:42:08")
	r.has("frame 2 of 5")
	r.keys("[")
	r.has("frame 1 of 5", "REQUESTS  ?/s")
	for _, key := range []string{"p", "space"} {
		r.keys(key)
		r.has("a file does not go on: < and > step", "frame 1 of 5")
	}
	r.keys("]")
	r.keys("j j j j enter")
	r.has("COURSE    picks/s", "now 20, most 20", "throttled")
	r.keys("esc e")
	r.has("a file has no explanations")
	r.keys("w")
	if len(r.wrote) != 1 {
		t.Errorf("wrote %d files", len(r.wrote))
	}
	r.time = r.time.Add(48 * time.Hour)
	r.has("PAST 2026-11-29 11:42:11")
	if cmd := r.m.Init(); cmd != nil {
		t.Error("a file is polled")
	}
	if len(r.asked) > 0 {
		t.Errorf("asked for %q", r.asked)
	}
}

func TestFileWithoutScreen(t *testing.T) {
	text := saved(t, 4)
	for name, tc := range map[string]struct {
		c    Command
		want func(s string) bool
	}{
		"one frame": {Command{Once: true}, func(s string) bool {
			return strings.Count(s, "REQUESTS  374/s") == 1 && strings.Contains(s, "11:42:10")
		}},
		"all frames":  {Command{Batch: true}, func(s string) bool { return strings.Count(s, "REQUESTS  374/s") == 3 }},
		"two frames":  {Command{Batch: true, Count: 2}, func(s string) bool { return strings.Count(s, "REQUESTS") == 2 && strings.Contains(s, "11:42:09") }},
		"as JSON":     {Command{Once: true, Format: "json"}, func(s string) bool { return s == text[strings.LastIndex(text[:len(text)-1], "\n")+1:] }},
		"all as JSON": {Command{Format: "jsonl"}, func(s string) bool { return s == text }},
	} {
		var b bytes.Buffer
		tc.c.Interval = time.Second
		if err := tc.c.Show(t.Context(), readFile(t, text), &out.Streams{Out: &b}); err != nil || !tc.want(b.String()) {
			t.Errorf("%s: %v\n%s", name, err, &b)
		}
	}
	var own *inspect.Error
	if err := (&Command{Interval: time.Second}).Show(t.Context(), readFile(t, text), &out.Streams{Out: io.Discard}); !errors.As(err, &own) || own.Kind != inspect.Usage {
		t.Errorf("a screen on a pipe: %v", err)
	}
}

// What is cut short is used as far as it goes; what is no frame is refused with its
// place.
func TestFileIsWrong(t *testing.T) {
	text := saved(t, 2)
	f := &File{Name: "x"}
	if flaw, err := f.Read(strings.NewReader(text[:len(text)-9])); err != nil || f.Len() != 1 || !strings.HasPrefix(flaw, "x ends inside of frame 2, after ") {
		t.Errorf("%d frames, %q, %v", f.Len(), flaw, err)
	}
	for in, want := range map[string]string{
		"":                         "frame 1 of x: EOF",
		"{":                        "frame 1 of x: unexpected EOF",
		"no":                       "frame 1 of x: invalid character",
		`{"kind":"Explanation"}`:   "frame 1 of x: it is no Snapshot: kind is another",
		`[]`:                       "frame 1 of x: it is no Snapshot: json: cannot unmarshal",
		text + `{"kind":1}`:        "frame 3 of x: it is no Snapshot",
		`{"kind":"Snapshot"}`:      `frame 1 of x: at: found ""; expected an RFC 3339 time`,
		"\x89EPTAP\r\n\x00\x01":    "frame 1 of x: invalid character",
		text + text[:200] + "\x00": "frame 3 of x: invalid character",
	} {
		_, err := (&File{Name: "x"}).Read(strings.NewReader(in))
		var own *inspect.Error
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &own) || own.Code != "E_RECORDING" {
			t.Errorf("%.40q: %v, want %s", in, err, want)
		}
	}
	blank := io.MultiReader(strings.NewReader(`{"kind":"`), forever{})
	if _, err := (&File{Name: "x"}).Read(blank); err == nil || !strings.Contains(err.Error(), "it is larger than 64 MiB") {
		t.Errorf("a frame without end: %v", err)
	}
}

type forever struct{}

func (forever) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

// A long recording is kept in frames that lie farther apart, from its begin to its
// end.
func TestFileThins(t *testing.T) {
	f := &File{Name: "x", Every: time.Second}
	for i := range 3 * keptFrames {
		raw, err := json.Marshal(view.Snapshot{Kind: "Snapshot", At: begin.Add(time.Duration(i) * time.Second).Format(time.RFC3339Nano)})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Add(raw); err != nil {
			t.Fatal(err)
		}
	}
	h := &f.history
	if f.Len() > keptFrames || f.Len() < keptFrames/2 || f.Every != 8*time.Second && f.Every != 4*time.Second && f.Every != 16*time.Second {
		t.Errorf("%d frames, every %v", f.Len(), f.Every)
	}
	if first, last := h.frames[0].got, h.at(h.newest()).got; first.Sub(begin) > time.Minute || last != begin.Add((3*keptFrames-1)*time.Second) {
		t.Errorf("from %v to %v", first, last)
	}
	bytes := 0
	for _, x := range h.frames {
		bytes += len(x.raw)
	}
	if bytes != h.bytes {
		t.Errorf("%d bytes counted, %d kept", h.bytes, bytes)
	}
}

// FuzzFile: no file brings top down, and what is read can be shown.
func FuzzFile(f *testing.F) {
	f.Add([]byte(saved(f, 2)))
	f.Add([]byte(`{"kind":"Snapshot","at":"2026-11-29T11:42:07Z","pods":[{"name":"a","served":{"depths":[1]},"ranks":[{},{}]}],"tokenizers":[{"model":"\u001b","providers":[{"name":"native","parity":{"state":"failed"}}]}]} {"kind":"Snapshot","at":"2026-11-29T11:42:06Z"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		x := &File{Name: "x", Every: time.Second}
		if _, err := x.Read(bytes.NewReader(text)); err != nil || x.Len() == 0 {
			return
		}
		r := shown(t, x)
		r.keys("X < 2 4 enter esc 1 enter 3 enter ? <")
		if strings.ContainsAny(r.plain(), "\x1b\x07\r\x00\u202e") {
			t.Error("a command reaches the terminal")
		}
		if err := r.m.print(&out.Streams{Out: io.Discard}, false); err != nil {
			t.Error(err)
		}
		_ = fmt.Sprint(r.m.past())
	})
}
