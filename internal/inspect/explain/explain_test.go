package explain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/testdata"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // terminals get local times
	m.Run()
}

// answer reads a fixture and insists that it has the wire's fields and no other.
func answer(t *testing.T, name string) ([]byte, *pick.Explanation) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var x pick.Explanation
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&x); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return b, &x
}

// decided is a card that the decision itself wrote, with all that may stand on one.
const decided = "../../../core/pick/testdata/cards/whatif"

func pipe() (*out.Streams, *bytes.Buffer) {
	var b bytes.Buffer
	return &out.Streams{In: strings.NewReader(""), Out: &b, Err: &bytes.Buffer{}}, &b
}

// now is 75 s after the time of the fixtures.
var now = time.Date(2026, 11, 29, 11, 43, 22, 318e6, time.UTC)

// TestRender compares whole screens. EX-05, EX-07, UX-06, UX-07, UX-08, UX-15.
func TestRender(t *testing.T) {
	for _, tc := range []struct {
		golden, fixture string
		opt             Options
		width           int
		color           bool
	}{
		{golden: "picked", fixture: "picked"},
		{golden: "picked-wide-all", fixture: "picked", opt: Options{All: true, Wide: true}},
		{golden: "picked-tty60", fixture: "picked", width: 60},
		{golden: "picked-color", fixture: "picked", width: 120, color: true},
		{golden: "none", fixture: "none"},
		{golden: "tie", fixture: "tie"},
		{golden: "recorded", fixture: "recorded"},
		{golden: "recorded-wide", fixture: "recorded", opt: Options{Wide: true}},
		{golden: "whatif", fixture: decided, width: 80, opt: Options{Try: []Try{{For: "flip", Command: "eppctl explain ... --set pod-0.queue=4"}}}},
		{golden: "whatif-wide", fixture: decided, opt: Options{Wide: true}},
		{golden: "picked-wide-tty80", fixture: "picked", width: 80, opt: Options{Wide: true}},
		{golden: "tie-tty48", fixture: "tie", width: 48},
		{golden: "tie-wide", fixture: "tie", opt: Options{Wide: true}},
	} {
		t.Run(tc.golden, func(t *testing.T) {
			_, x := answer(t, tc.fixture)
			s, got := pipe()
			s.OutTTY, s.Width, s.Color = tc.width > 0, tc.width, tc.color
			tc.opt.Now = now
			if err := Render(s.Out, s, x, tc.opt); err != nil {
				t.Fatal(err)
			}
			testdata.Golden(t, filepath.Join("testdata", tc.golden+".golden"), got.Bytes())
			for line := range strings.Lines(got.String()) {
				line = strings.TrimRight(line, "\n")
				if !tc.color && tc.width > 0 && out.Cells(line) > tc.width {
					t.Errorf("%d cells in %q", out.Cells(line), line)
				}
				if !tc.color && strings.ContainsAny(line, "\x1b\r") {
					t.Errorf("control characters in %q", line)
				}
				if strings.TrimRight(line, " ") != line {
					t.Errorf("blanks at the end of %q", line)
				}
			}
		})
	}
}

// TestOneScreen: a decision among a handful of pods, with what would flip it and what
// to try, fits a terminal of 80 by 24.
func TestOneScreen(t *testing.T) {
	_, x := answer(t, decided)
	x.WhatIf = nil
	s, got := pipe()
	s.OutTTY, s.Width = true, 80
	if err := Render(s.Out, s, x, Options{Now: now, Try: tries(x, "eppctl explain ...", "")}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(got.String(), "\n"), "\n")
	if len(lines) > 24 || !strings.Contains(got.String(), "\nFLIP    ") || !strings.Contains(got.String(), "\nTRY     ") {
		t.Errorf("%d lines:\n%s", len(lines), got)
	}
	for _, line := range lines {
		if out.Cells(line) > 80 {
			t.Errorf("%d cells in %q", out.Cells(line), line)
		}
	}
}

// TestNotesStandBelow: how many changes are not listed, why a command is offered and the
// id of a pick that was made are told on a narrow terminal too.
func TestNotesStandBelow(t *testing.T) {
	_, x := answer(t, decided)
	x.Source, x.RequestID = recorded, "635d45a6-f46d-4008-a110-a1cc9eb90629"
	for _, width := range []int{60, 80, 100, 200} {
		s, got := pipe()
		s.OutTTY, s.Width = true, width
		try := []Try{{For: "history-lost", Command: "eppctl tap --replay -e --stats --pod vllm-a-3 --config /etc/eppctl/config.yaml"}}
		if err := Render(s.Out, s, x, Options{Now: now, Try: try}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"id 635d45a6-f46d-4008-a110-a1cc9eb90629", "each alone, all else held; 6 more (-o wide)", "--config /etc/eppctl/config.yaml", "(history-lost)"} {
			if !strings.Contains(got.String(), want) {
				t.Errorf("%d columns: no %q in\n%s", width, want, got)
			}
		}
	}
}

// TestNoHalfNumbers: what a terminal has no room for is left out where a part of it
// would be another number, another id or half an order.
func TestNoHalfNumbers(t *testing.T) {
	_, x := answer(t, "tie")
	took := 171.0
	x.DecideUs, x.Source = &took, recorded
	for width := 24; width < 140; width++ {
		s, got := pipe()
		s.OutTTY, s.Width = true, width
		if err := Render(s.Out, s, x, Options{Now: now}); err != nil {
			t.Fatal(err)
		}
		for _, whole := range []string{"decided in 171 us", "id " + x.RequestID} {
			begin, _, _ := strings.Cut(whole, " ")
			if at := strings.Index(got.String(), "   "+begin+" "); at >= 0 && !strings.Contains(got.String(), whole) {
				t.Errorf("width %d: %.40q of %q", width, got.String()[at:], whole)
			}
		}
		_, order, _ := strings.Cut(got.String(), "\nTIE ")
		if order, _, _ = strings.Cut(order, "\nTRY "); strings.Contains(order, "…") {
			t.Errorf("width %d: %q", width, order)
		}
	}
}

// TestBlocksOfSeveralSizes: where pods count in blocks of other sizes, MATCH says of
// which, and FLIP counts in the pod's own.
func TestBlocksOfSeveralSizes(t *testing.T) {
	_, x := answer(t, decided)
	render := func() string {
		s, got := pipe()
		if err := Render(s.Out, s, x, Options{Now: now, Wide: true}); err != nil {
			t.Fatal(err)
		}
		return got.String()
	}
	if text := render(); strings.Contains(text, "SIZE") || !strings.Contains(text, "cached of pod-0 3392 -> 3104 tokens (212 -> 194 blocks)") {
		t.Errorf("one size:\n%s", text)
	}
	own := 32
	podOf(x.Pods, "pod-0").Match.Size = &own
	podOf(x.Pods, "pod-1").Match.Size = nil
	if text := render(); !strings.Contains(text, "cached of pod-0 3392 -> 3104 tokens (106 -> 97 blocks)") || strings.Contains(text, "2112 tokens (") {
		t.Errorf("the pod's own size, or none:\n%s", text)
	}
	other := 16
	podOf(x.Pods, "pod-1").Match.Size = &other
	if text := render(); !strings.Contains(text, "  TOTAL  SIZE  ") {
		t.Errorf("two sizes:\n%s", text)
	}
}

// TestPortion: a full bar is a full match, an empty one none.
func TestPortion(t *testing.T) {
	for _, tc := range []struct {
		share float64
		n     int
		want  int
	}{
		{0, 20, 0}, {0.001, 20, 1}, {0.5, 20, 10}, {0.98, 20, 19}, {0.999, 100, 99}, {1, 20, 20}, {1.2, 100, 100}, {-1, 20, 0},
	} {
		if got := portion(tc.share, tc.n); got != tc.want {
			t.Errorf("portion(%v, %d) = %d, want %d", tc.share, tc.n, got, tc.want)
		}
	}
}

// TestNothingVanishes: every term of every score is on the screen, however narrow.
func TestNothingVanishes(t *testing.T) {
	_, x := answer(t, "picked")
	for _, width := range []int{40, 60, 80, 99, 200} {
		s, got := pipe()
		s.OutTTY, s.Width = true, width
		if err := Render(s.Out, s, x, Options{Now: now}); err != nil {
			t.Fatal(err)
		}
		for _, head := range []string{" TOTAL", " KV", " QUEUE", " BREAKER", " POOL", " CONC", " UTIL", " LORA", " HW", " TIER", " AGE", " STATE"} {
			_, nothing, _ := strings.Cut(got.String(), "0 on every pod:")
			if !strings.Contains(got.String(), head) && !strings.Contains(nothing, strings.ToLower(head)) {
				t.Errorf("width %d: neither a column%s nor a word that it is 0:\n%s", width, head, got)
			}
		}
	}
}

func TestAge(t *testing.T) {
	for ms, want := range map[float64]string{0: "0.00s", 310: "0.31s", 99_990: "99.99s", 100_000: "1m40s", 2_181_690: "36m21s", 3_600_000: "1h00m", 200e6: "55h33m"} {
		if got := age(&ms); got != want {
			t.Errorf("age(%v) = %q, want %q", ms, got, want)
		}
	}
	if got := age(nil); got != "never" {
		t.Errorf("of nothing: %q", got)
	}
}

func TestAgo(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 1200 * time.Millisecond: "1 s", 75 * time.Second: "1 min 15 s", 3*time.Hour + 61*time.Second: "3 h 1 min",
	} {
		if got := ago(d); got != want {
			t.Errorf("ago(%v) = %q, want %q", d, got, want)
		}
	}
}

// asker is a server that answers from a fixture and keeps what it was asked.
type asker struct {
	body    []byte
	request inspect.Request
	id      string
}

func (a *asker) Explain(_ context.Context, r inspect.Request) ([]byte, error) {
	a.request = r
	return a.body, nil
}

func (a *asker) RecentIf(_ context.Context, id string, s inspect.Suppose) ([]byte, error) {
	a.id, a.request.Suppose = id, s
	return a.body, nil
}

func TestRun(t *testing.T) {
	body, _ := answer(t, "picked")
	t.Run("EX-03 JSON is the server's, byte for byte, and what to try", func(t *testing.T) {
		s, got := pipe()
		c := Command{Input: Input{Prompt: "x"}, Format: "json"}
		end := bytes.LastIndexByte(body, '}')
		if err := c.Run(t.Context(), &asker{body: body}, s); err != nil || !bytes.HasPrefix(got.Bytes(), append(body[:end:end], `,"try":[{`...)) {
			t.Errorf("err = %v, output %d bytes of %d", err, got.Len(), len(body))
		}
	})
	t.Run("YAML", func(t *testing.T) {
		s, got := pipe()
		c := Command{Input: Input{Prompt: "x"}, Format: "yaml"}
		if err := c.Run(t.Context(), &asker{body: body}, s); err != nil || !strings.Contains(got.String(), "request_id: 7d0e-19ab") {
			t.Errorf("err = %v, output:\n%.300s", err, got)
		}
	})
	t.Run("a past pick", func(t *testing.T) {
		s, _ := pipe()
		a := &asker{body: body}
		c := Command{RequestID: "7d0e-19ab", Format: "table"}
		if err := c.Run(t.Context(), a, s); err != nil || a.id != "7d0e-19ab" {
			t.Errorf("asked for %q, err = %v", a.id, err)
		}
	})
	t.Run("UX-15 no eligible pod", func(t *testing.T) {
		none, _ := answer(t, "none")
		s, got := pipe()
		c := Command{Input: Input{Prompt: "x"}, Format: "table"}
		var e *inspect.Error
		if err := c.Run(t.Context(), &asker{body: none}, s); !errors.As(err, &e) || e.Kind != inspect.Negative || e.Code != "E_NO_ELIGIBLE_POD" {
			t.Errorf("err = %v", err)
		}
		if !strings.HasPrefix(got.String(), "PICK    none") {
			t.Errorf("output:\n%s", got)
		}
	})
	for _, text := range []string{"", "null", "[]", `{"kind":"Version"}`, "<html>"} {
		s, _ := pipe()
		c := Command{Input: Input{Prompt: "x"}}
		var e *inspect.Error
		if err := c.Run(t.Context(), &asker{body: []byte(text)}, s); !errors.As(err, &e) || e.Kind != inspect.Failed {
			t.Errorf("answer %q: err = %v", text, err)
		}
	}
}

func TestRequest(t *testing.T) {
	chat := `{"messages" : [], "n": 9007199254740993}`
	file := filepath.Join(t.TempDir(), "chat.json")
	if err := os.WriteFile(file, []byte(chat), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		in         Input
		path, body string
		header     http.Header
	}{
		"prompt":        {in: Input{Prompt: "hi", Model: "m"}, path: "/v1/completions", body: `{"model":"m","prompt":"hi"}`},
		"tokens":        {in: Input{Tokens: "[1, 2,4294967295]"}, path: "/v1/completions", body: `{"prompt":[1,2,4294967295]}`},
		"file":          {in: Input{File: file}, path: "/v1/chat/completions", body: chat},
		"stdin":         {in: Input{File: "-"}, path: "/v1/completions", body: "from stdin"},
		"model in file": {in: Input{File: file, Model: "q"}, path: "/v1/chat/completions", body: `{"messages":[],"model":"q","n":9007199254740993}`},
		"path":          {in: Input{Prompt: "x", Path: "/other"}, path: "/other", body: `{"prompt":"x"}`},
		"header": {
			in: Input{Prompt: "x", Headers: []string{"x-tenant=a=b"}, Subset: "10.0.0.1:8000"}, path: "/v1/completions", body: `{"prompt":"x"}`,
			header: http.Header{"X-Tenant": {"a=b"}, "X-Gateway-Destination-Endpoint-Subset": {"10.0.0.1:8000"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := tc.in.Request(strings.NewReader("from stdin"))
			if err != nil || r.Path != tc.path || string(r.Body) != tc.body {
				t.Errorf("path %q, body %q, err %v", r.Path, r.Body, err)
			}
			for k := range tc.header {
				if r.Header.Get(k) != tc.header.Get(k) {
					t.Errorf("header %s = %q", k, r.Header.Get(k))
				}
			}
		})
	}
	for name, in := range map[string]Input{
		"nothing":       {},
		"two":           {Prompt: "x", Tokens: "1"},
		"negative id":   {Tokens: "-1"},
		"no id":         {Tokens: " , "},
		"large id":      {Tokens: "4294967296"},
		"no such file":  {File: filepath.Join(t.TempDir(), "none")},
		"model of text": {File: "-", Model: "m"},
		"header":        {Prompt: "x", Headers: []string{"novalue"}},
	} {
		t.Run("refused: "+name, func(t *testing.T) {
			var e *inspect.Error
			if _, err := in.Request(strings.NewReader("text")); !errors.As(err, &e) || e.Kind != inspect.Usage {
				t.Errorf("err = %v", err)
			}
		})
	}
}
