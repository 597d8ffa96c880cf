package explain

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/testdata"
)

// saved runs explain with --save and returns the file.
func saved(t *testing.T, body []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "before.json")
	s, _ := pipe()
	c := Command{Input: Input{Prompt: "x"}, Format: "table", Save: file}
	_ = c.Run(t.Context(), &asker{body: body}, s) // no pod is no error here
	return file
}

// TestSaved: a saved answer shows what was shown, says that it is none of now, and is
// the same document.
func TestSaved(t *testing.T) {
	body, x := answer(t, "picked")
	file := saved(t, body)
	if !IsSaved(file) || IsSaved(file+".no") {
		t.Error("a saved answer is not told from what is none")
	}
	if i, err := os.Stat(file); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", i.Mode(), err)
	}
	text := func(format string, c Command) string {
		s, got := pipe()
		c.Format = format
		if err := c.RunSaved(file, s); err != nil {
			t.Fatal(err)
		}
		return got.String()
	}
	s, live := pipe()
	c := Command{Input: Input{Prompt: "x"}, Format: "json"}
	if err := c.Run(t.Context(), &asker{body: body}, s); err != nil || text("json", Command{}) != live.String() {
		t.Errorf("%v: not the document that was shown", err)
	}
	live.Reset()
	c.Format = "table"
	if err := c.Run(t.Context(), &asker{body: body}, s); err != nil {
		t.Fatal(err)
	}
	then := text("table", Command{})
	if !strings.Contains(then, "STATE   live ") || !strings.Contains(then, " ago, from "+file) {
		t.Errorf("it does not say that it was saved:\n%s", then)
	}
	rest := func(s string) string {
		before, after, _ := strings.Cut(s, "\nSTATE ")
		_, after, _ = strings.Cut(after, "\n")
		return before + after
	}
	if rest(then) != rest(live.String()) || !strings.Contains(then, *x.Pick.Pod) {
		t.Errorf("saved:\n%s\nlive:\n%s", then, live)
	}

	none, _ := answer(t, "none")
	var e *inspect.Error
	s, _ = pipe()
	if err := (&Command{Format: "table"}).RunSaved(saved(t, none), s); !errors.As(err, &e) || e.Code != "E_NO_ELIGIBLE_POD" {
		t.Errorf("err = %v", err)
	}
}

// TestSavedRefuses what is no saved answer.
func TestSavedRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": "", "other": `{"kind":"Snapshot"}`, "cut": `{"kind":"Explanation"`, "list": `{"kind":"Explanation","try":{}}`} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, got := pipe()
		var e *inspect.Error
		if err := (&Command{Format: "table"}).RunSaved(file, s); !errors.As(err, &e) || e.Kind != inspect.Usage || got.Len() > 0 {
			t.Errorf("%s: %v, %q", name, err, got)
		}
	}
	if err := (&Command{}).RunDiff(t.Context(), filepath.Join(dir, "no"), &asker{}, nil); err == nil {
		t.Error("no file is no error")
	}
}

// TestDiff: EX-14, only what has changed since, with the id of then to break ties.
func TestDiff(t *testing.T) {
	body, _ := answer(t, decided)
	file := saved(t, body)
	diff := func(change func(*pick.Explanation), format string) (string, error) {
		_, x := answer(t, decided)
		change(x)
		b, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		s, got := pipe()
		a := &asker{body: b}
		err = (&Command{Input: Input{Prompt: "x"}, Format: format}).RunDiff(t.Context(), file, a, s)
		if id := a.request.Header.Get("x-request-id"); id != x.RequestID {
			t.Errorf("asked with request id %q, want %q", id, x.RequestID)
		}
		return got.String(), err
	}
	text, err := diff(func(x *pick.Explanation) { x.Epoch, x.At = 99, "2026-11-29T11:42:08Z" }, "table")
	if err != nil || !strings.Contains(text, "DIFFER  in no input, age or term") {
		t.Errorf("%v:\n%s", err, text)
	}
	waits := func(x *pick.Explanation) {
		total := 0.05
		for i := range x.Pods {
			since := 60_000.0
			x.Pods[i].Age.IndexState = &since
			x.Pods[i].Circuit.Answered += 12
		}
		x.Pods[0].Terms[1].Seconds, x.Pods[0].Total = -0.116, &total
		name, addr := "pod-1", "10.0.0.2:8000"
		x.Pick.Pod, x.Pick.Addr = &name, &addr
	}
	text, err = diff(waits, "table")
	var e *inspect.Error
	if !errors.As(err, &e) || e.Kind != inspect.Negative || e.Code != "E_PICK_CHANGED" {
		t.Errorf("err = %v", err)
	}
	var rows []string
	for line := range strings.Lines(text[strings.Index(text, "\nDIFFER"):]) {
		if f := strings.Fields(line); len(f) == 4 && f[0] != "POD" {
			rows = append(rows, f[0]+" "+f[1])
		}
	}
	if strings.Join(rows, ", ") != "pod-0 queue, pod-0 total" {
		t.Errorf("rows %q of\n%s", rows, text)
	}
	text, _ = diff(waits, "json")
	testdata.Valid(t, "replicas.json", []byte(text))
}

// TestDiffOfAnotherRequest: what differs may be of the request, which is said.
func TestDiffOfAnotherRequest(t *testing.T) {
	file := saved(t, func() []byte { b, _ := answer(t, decided); return b }())
	name := "adapter"
	for want, change := range map[string]func(*pick.Explanation){
		"":                              func(x *pick.Explanation) { x.At = "2026-11-29T11:42:08Z" },
		"tokens there, 7 here":          func(x *pick.Explanation) { x.Tokens = 7 },
		`there, "other" here`:           func(x *pick.Explanation) { x.Model = "other" },
		`adapter "" there, "adapter" h`: func(x *pick.Explanation) { x.LoRA = &name },
	} {
		_, x := answer(t, decided)
		change(x)
		b, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		s, _ := pipe()
		var errs bytes.Buffer
		s.Err = &errs
		if err := (&Command{Input: Input{Prompt: "x"}, Format: "table"}).RunDiff(t.Context(), file, &asker{body: b}, s); err != nil {
			t.Error(err)
		}
		if text := errs.String(); !strings.Contains(text, want) || strings.Contains(text, "warn: not the same request as in "+file) != (want != "") {
			t.Errorf("want %q: %q", want, text)
		}
	}
	prompts := [2]*pick.Explanation{{Prompt: &pick.ExplainedPrompt{IDs: []uint32{1, 2}}}, {Prompt: &pick.ExplainedPrompt{IDs: []uint32{1, 3}}}}
	if got := otherRequest(prompts[0], prompts[1]); got != "other token ids" {
		t.Errorf("%q", got)
	}
}
