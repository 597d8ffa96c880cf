package explain

import (
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/view"
)

// TestWhoTold: who told the token ids, and below it who could not, and why.
func TestWhoTold(t *testing.T) {
	word := func(s string) *string { return &s }
	tried := []pick.ExplainedAttempt{{Provider: "native", Reason: "tokenizer-refuted"}, {Provider: "render", Reason: "tokenize-failed", Detail: word("HTTP status 500")}}
	failed := "        not by native: tokenizer-refuted\n        not by render: tokenize-failed (HTTP status 500)\n"
	for name, tc := range map[string]struct {
		told pick.ExplainedTokenizer
		want string
	}{
		"an engine": {pick.ExplainedTokenizer{Provider: word("tokenize"), Status: word("exact"), Tried: tried}, "        token ids by tokenize, exact\n" + failed},
		"nobody":    {pick.ExplainedTokenizer{Tried: tried}, "        nobody told the token ids\n" + failed},
		"up to an image": {pick.ExplainedTokenizer{Provider: word("native"), Status: word("exact"), Cut: true, Tried: tried[1:]},
			"        token ids by native, exact\n        matched up to the first image, sound or video: no renderer told its name\n        not by render: tokenize-failed (HTTP status 500)\n"},
		"a guess": {pick.ExplainedTokenizer{Provider: word("bytes")}, "        nobody told the token ids; pods are compared by the bytes sent to them before, which is approximate\n"},
	} {
		_, x := answer(t, "picked")
		x.Tokenizer = tc.told
		s, got := pipe()
		if err := Render(s.Out, s, x, Options{Now: now}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got.String(), "\n"+tc.want+"STATE ") {
			t.Errorf("%s: no %q in\n%.600s", name, tc.want, got)
		}
	}
}

// TestReadTime: what a request waited for its token ids stands beside who told them, or
// that nobody did; answers of before have no such number.
func TestReadTime(t *testing.T) {
	native, exact, us := "native", "exact", 5_340.0
	for want, told := range map[string]pick.ExplainedTokenizer{
		"token ids by native, exact, after 5.3 ms\n": {Provider: &native, Status: &exact},
		"nobody told the token ids, after 5.3 ms\n":  {Tried: []pick.ExplainedAttempt{{Provider: "tokenize", Reason: "tokenize-deadline"}}},
	} {
		_, x := answer(t, "picked")
		x.Tokenizer, x.ReadUs = told, &us
		s, got := pipe()
		if err := Render(s.Out, s, x, Options{Now: now}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got.String(), want) {
			t.Errorf("no %q in\n%.600s", want, got.String())
		}
	}
}

// TestRegexSplit: a splitter that is not hand-written is said without being asked.
func TestRegexSplit(t *testing.T) {
	native, exact := "native", "exact"
	for split, want := range map[string]bool{"": false, "cl100k": false, "regex": true} {
		_, x := answer(t, "picked")
		x.Tokenizer.Provider, x.Tokenizer.Status, x.Tokenizer.Split = &native, &exact, split
		s, got := pipe()
		if err := Render(s.Out, s, x, Options{Now: now}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(got.String(), "split by regexp2") != want {
			t.Errorf("%q:\n%.600s", split, got.String())
		}
	}
}

// TestParity: the state of native ids stands beside who told them, with what to look
// at first.
func TestParity(t *testing.T) {
	native, exact := "native", "exact"
	for _, tc := range []struct {
		parity *view.Parity
		want   string
	}{
		{nil, ""},
		{&view.Parity{State: "passed", Compared: 21, Engine: "pod-0"}, "parity passed 21 of 21 at pod-0\n"},
		{&view.Parity{State: "failed", Why: "parity-probe-differs", Compared: 21, Differed: 1, Engine: "pod-1", Detail: `"cjk" differs from id 4 on`},
			"parity failed(1 of 21) at pod-1: \"cjk\" differs from id 4 on\n"},
		{&view.Parity{State: "failed", Why: "parity-events-differ", Compared: 21}, "parity failed(parity-events-differ)\n"},
		{&view.Parity{State: "failed", Why: "parity-events-differ", Compared: 21, Engine: "pod-0", Detail: "pod-1 announced other token ids than a request was routed by, from id 87 on (block 5)", DiffersAt: new(87)},
			"parity failed(parity-events-differ) at pod-0: pod-1 announced other token ids than a request was routed by, from id 87 on (block 5)\n"},
		{&view.Parity{State: "not-run", Why: "parity-pending"}, "parity not-run(parity-pending)\n"},
	} {
		_, x := answer(t, "picked")
		x.Tokenizer.Provider, x.Tokenizer.Status, x.Tokenizer.Parity = &native, &exact, tc.parity
		s, got := pipe()
		if err := Render(s.Out, s, x, Options{Now: now}); err != nil {
			t.Fatal(err)
		}
		if text := got.String(); !strings.Contains(text, tc.want) || tc.parity == nil && strings.Contains(text, "parity") {
			t.Errorf("%+v: no %q in\n%.600s", tc.parity, tc.want, text)
		}
	}
}
