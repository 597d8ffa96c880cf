package explain

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/testdata"
)

// other is what a second replica answers: the same, after some changes.
func other(t *testing.T, change func(*pick.Explanation)) []byte {
	t.Helper()
	_, x := answer(t, decided)
	if change != nil {
		change(x)
	}
	b, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func against(t *testing.T, format string, b []byte) (text string, err error) {
	t.Helper()
	a, _ := answer(t, decided)
	one, two := &asker{body: a}, &asker{body: b}
	s, got := pipe()
	c := Command{Input: Input{Prompt: "x"}, Format: format}
	err = c.RunAgainst(t.Context(), [2]string{"127.0.0.1:9004", "10.0.0.2:9004"}, [2]Asker{one, two}, s)
	if id := one.request.Header.Get("x-request-id"); id == "" || id != two.request.Header.Get("x-request-id") {
		t.Errorf("asked with request ids %q and %q", id, two.request.Header.Get("x-request-id"))
	}
	return got.String(), err
}

// TestAgainst: EX-15, and what makes a difference.
func TestAgainst(t *testing.T) {
	later := func(x *pick.Explanation) { // what another replica has by nature
		x.At, x.Epoch, x.Flip, x.WhatIf = "2026-11-29T11:42:08Z", 99, nil, nil
		for i := range x.Pods {
			*x.Pods[i].Age.Metrics += 200
		}
	}
	text, err := against(t, "table", other(t, later))
	if err != nil || !strings.Contains(text, "DIFFER  in no input, age or term") {
		t.Errorf("%v:\n%s", err, text)
	}
	differ := func(x *pick.Explanation) {
		later(x)
		p := podOf(x.Pods, "pod-0")
		p.Match.GPU, p.Match.Depth, p.Match.Tokens = 100, 112, 1792
		p.Terms[0].Seconds, p.Terms[0].Inputs["cached_tokens"] = 0.112, 1792.0
		total := 0.05
		p.Total = &total
		*p.Age.Events += 14_000
		p.IndexState = "gap"
		x.Weights.Beta = 0.1
		name, addr, margin := "pod-1", "10.0.0.2:8000", 0.05
		x.Pick.Pod, x.Pick.Addr, x.Pick.RunnerUp, x.Pick.Margin = &name, &addr, x.Pick.Pod, &margin
		x.Pods = x.Pods[:2]
	}
	text, err = against(t, "table", other(t, differ))
	var e *inspect.Error
	if !errors.As(err, &e) || e.Kind != inspect.Negative || e.Code != "E_REPLICAS_DIFFER" {
		t.Errorf("err = %v", err)
	}
	testdata.Golden(t, filepath.Join("testdata", "against.golden"), []byte(text))

	text, _ = against(t, "json", other(t, differ))
	var d Replicas
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil || d.SamePick || *d.B.Pick.Pod != "pod-1" || len(d.Differences) < 8 {
		t.Errorf("%v: %+v", err, d)
	}
	if text, _ = against(t, "yaml", other(t, differ)); !strings.Contains(text, "kind: Replicas") {
		t.Errorf("%s", text)
	}
	if _, err := against(t, "table", []byte("<html>")); !errors.As(err, &e) || e.Kind != inspect.Failed {
		t.Errorf("no Explanation: %v", err)
	}
}

// TestAgainstIsClean: names from the wire reach no terminal as they are.
func TestAgainstIsClean(t *testing.T) {
	text, _ := against(t, "table", other(t, func(x *pick.Explanation) {
		x.Pods[0].Name, x.Pods[0].IndexState = "a\x1b[2J", "b\rc"
		x.Pick.Pod = &x.Pods[0].Name
	}))
	if bytes.ContainsAny([]byte(text), "\x1b\r") || !strings.Contains(text, `a\x1b[2J`) {
		t.Errorf("%q", text)
	}
}

// A pod's name in two replicas may stand for two addresses: then the names alone would
// say that nothing differs.
func TestAgainstAnotherAddress(t *testing.T) {
	_, err := against(t, "table", other(t, func(x *pick.Explanation) {
		addr := "10.9.9.9:8000"
		x.Pick.Addr = &addr
	}))
	var e *inspect.Error
	if !errors.As(err, &e) || !strings.Contains(e.What, " picks pod-0 at 10.0.0.1:8000, ") || !strings.HasSuffix(e.What, " picks pod-0 at 10.9.9.9:8000") {
		t.Errorf("%v", err)
	}
}

// TestAgainstNobody: the flag to mend is the one whose address does not answer.
func TestAgainstNobody(t *testing.T) {
	a, _ := answer(t, decided)
	dead, err := inspect.NewClient("unix:"+filepath.Join(t.TempDir(), "none"), inspect.Timeouts{})
	if err != nil {
		t.Fatal(err)
	}
	for flag, servers := range map[string][2]Asker{"--against": {&asker{body: a}, dead}, "--addr": {dead, &asker{body: a}}} {
		s, _ := pipe()
		err := (&Command{Input: Input{Prompt: "x"}, Format: "table"}).RunAgainst(t.Context(), [2]string{"a", "b"}, servers, s)
		var e *inspect.Error
		if !errors.As(err, &e) || e.Kind != inspect.Unreachable || e.Hint != "try: "+flag+" HOST:PORT, or "+flag+" unix:/PATH" {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// Whatever is listed as a difference looks like one.
func TestDifferencesCanBeSeen(t *testing.T) {
	text, _ := against(t, "wide", other(t, func(x *pick.Explanation) {
		p := podOf(x.Pods, "pod-0")
		for i := range p.Terms {
			p.Terms[i].Seconds += 1e-7 * float64(i+1)
		}
		total := *p.Total + 1e-6
		p.Total = &total
		p.Terms[0].Inputs["prefill_s"] = 0.0123456789
		x.Weights.Beta += 1e-9
	}))
	_, list, _ := strings.Cut(text, "DIFFER")
	lines := strings.Split(strings.TrimSpace(list), "\n")[1:]
	if len(lines) < 10 {
		t.Fatalf("%s", text)
	}
	for _, l := range lines {
		if f := strings.Fields(l); f[2] == f[3] {
			t.Errorf("no difference to be seen in %q", l)
		}
	}
}
