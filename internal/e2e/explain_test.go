package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// What explain says about a request is, byte for byte, what serve decides about the
// same request next: one decision, one card. Times and ages alone go on in between.
func TestExplainIsTheDecision(t *testing.T) {
	s := start(t, setup{})
	shared := prompt(1, 1600)
	for i := range 6 {
		p := append(shared[:800:800], prompt(10+i%3, 400)...)
		s.must(s.call(t.Context(), "POST", "/v1/completions", completion(p, 3)))
	}
	for i := range 8 {
		s.settle()
		body := completion(append(shared[:800:800], prompt(10+i, 400)...), 2)
		id := uuid.NewString()
		asked := s.explain(body, id)
		a := s.must(s.call(t.Context(), "POST", "/v1/completions", body, "x-request-id", id))
		decided := s.admin("GET", "/v1/explain/"+id, nil)
		before, after := fields(t, asked), fields(t, decided)
		if len(before) < 60 {
			t.Fatalf("only %d fields: %v", len(before), before)
		}
		for k, v := range before {
			if w, ok := after[k]; !ok || v != w {
				t.Errorf("request %d: %s: explain says %q, serve decided %q", i, k, v, w)
			}
		}
		for k := range after {
			if _, ok := before[k]; !ok {
				t.Errorf("request %d: explain lacks %s", i, k)
			}
		}
		if e, d := timeless(asked), timeless(decided); !bytes.Equal(e, d) {
			t.Errorf("request %d: explain says\n%s\nserve decided\n%s", i, e, d)
		}
		if a.pod() != after["pick.pod"] {
			t.Errorf("request %d: served by %s, decided %s", i, a.pod(), after["pick.pod"])
		}
		then := fields(t, s.admin("GET", "/v1/explain/"+id+"?without="+a.pod(), nil))
		if pod := then["what_if.pick.pod"]; pod == "" || pod == a.pod() || then["pick.pod"] != a.pod() {
			t.Errorf("request %d: picked %s; without it %s", i, then["pick.pod"], pod)
		}
	}
}

// timeless is an explanation with what fields leaves out of it taken away.
func timeless(b []byte) []byte {
	return regexp.MustCompile(`"(at|source)":"[^"]*"|"(read|decide)_us":[^,}]*|"[a-z_]*age_ms":(\{[^}]*\}|[^,}]*)`).ReplaceAll(b, nil)
}

// settle waits until nothing moves any more: no request is under way, all events are
// in, and the gauges were read since.
func (s *stack) settle() {
	s.t.Helper()
	s.quiet()
	eventually(s.t, func() error {
		for _, e := range s.Fleet.Engines {
			if running, waiting := e.Load(); running+waiting > 0 {
				return fmt.Errorf("%s has requests", e.Name())
			}
		}
		return nil
	})
	idle := time.Now()
	eventually(s.t, func() error {
		asked := time.Now()
		st, err := s.State()
		for _, p := range st.Pods {
			if n := s.Fleet.ByName(p.Name).Published(); n > 0 && p.Ranks[0].LastSeq != n-1 {
				return fmt.Errorf("batch %d of %d from %s is in", p.Ranks[0].LastSeq, n, p.Name)
			}
			if read := asked.Add(-time.Duration(p.Telemetry.AgeMs+1) * time.Millisecond); read.Before(idle) {
				return fmt.Errorf("the gauges of %s were read %v before", p.Name, idle.Sub(read))
			}
		}
		return err
	})
}

// fields flattens an explanation into path and value, without what is a time of
// the day, an age or a measured duration: those differ between any two moments.
// So does the source, which says whether the pick was made.
func fields(t *testing.T, b []byte) map[string]string {
	t.Helper()
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%v: %.300s", err, b)
	}
	out := map[string]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				walk(strings.TrimPrefix(path+"."+k, "."), x)
			}
		case []any:
			for i, x := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), x)
			}
		default:
			out[path] = fmt.Sprint(v)
		}
	}
	walk("", v)
	for k := range out {
		if k == "at" || k == "read_us" || k == "decide_us" || k == "source" || strings.Contains(k, "age_ms") {
			delete(out, k)
		}
	}
	return out
}

// The command prints the same pick as a table.
func TestExplainCommand(t *testing.T) {
	s := start(t, setup{})
	body := completion(prompt(1, 320), 1)
	first := s.must(s.call(t.Context(), "POST", "/v1/completions", body))
	eventually(t, func() error { return s.depth(prompt(1, 320), first.pod(), 320) })
	file := filepath.Join(t.TempDir(), "request.json")
	if err := os.WriteFile(file, body, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(eppctl, "explain", "--addr", s.Listen.Admin, "--path", "/v1/completions", "-f", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, e := range s.Fleet.Engines {
		if !strings.Contains(string(out), e.Name()) {
			t.Errorf("the table lacks pod %s:\n%s", e.Name(), out)
		}
	}
}
