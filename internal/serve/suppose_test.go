package serve

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/pick"
)

func explanation(t *testing.T, w *httptest.ResponseRecorder) *pick.Explanation {
	t.Helper()
	var x pick.Explanation
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &x); err != nil {
		t.Fatal(err)
	}
	return &x
}

// TestSuppose: what is supposed stands beside the decision as it is, of a question
// and of a pick that was made, and changes neither.
func TestSuppose(t *testing.T) {
	r := newRig(t, rigOptions{})
	at := time.Now()
	r.picker.clock = func() time.Time { return at }
	r.cache("b", 0, ids(1, 160))
	body, ask := string(completion("m", ids(1, 200))), "/v1/explain?path="+completionsPath
	plain := explanation(t, r.admin("POST", ask, body, requestIDHeader, "one"))
	if *plain.Pick.Pod != "b" || plain.WhatIf != nil || plain.Flip == nil || len(*plain.Flip) == 0 {
		t.Fatalf("%+v", plain)
	}
	supposed := "&set=b.queue%3D12&weight=beta%3D0.5&without=c"
	for name, x := range map[string]*pick.Explanation{
		"a question": explanation(t, r.admin("POST", ask+supposed, body, requestIDHeader, "one")),
		"a pick": func() *pick.Explanation {
			if d := r.route([]byte(body), "content-type", "application/json", requestIDHeader, "one"); d == "" {
				t.Fatal("no pick")
			}
			return explanation(t, r.admin("GET", "/v1/explain/one?"+supposed[1:], ""))
		}(),
	} {
		w := x.WhatIf
		if *x.Pick.Pod != "b" || w == nil || *w.Pick.Pod == "b" || *w.Pick.Pod == "c" || len(w.Overrides) != 3 || len(w.Moved) == 0 {
			t.Errorf("%s: picked %s, supposing: %+v", name, *x.Pick.Pod, w)
			continue
		}
		was, is := *x, *plain
		was.WhatIf, was.ReadUs, is.ReadUs, was.DecideUs, is.DecideUs, was.Source, is.Source = nil, nil, nil, nil, nil, "", ""
		if a, b := fmt.Sprint(toJSON(t, was)), fmt.Sprint(toJSON(t, is)); a != b {
			t.Errorf("%s: with something supposed the decision itself is\n%s\nwithout\n%s", name, a, b)
		}
	}
	if r.picker.rules.Load().policy.Beta != pick.DefaultPolicy().Beta {
		t.Error("a supposed weight stays")
	}
	for query, want := range map[string]string{
		"set=b.nothing=1": "there are queue, cached", "set=x.queue=1": "no pod is called", "weight=kv": "KEY=VALUE",
		"weight=alpha=-1": "weights: alpha", "without=x": "no pod is called",
		strings.Repeat("without=b&", maxSuppositions) + "without=b": "at most 256",
	} {
		list, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if w := r.admin("POST", ask+"&"+list.Encode(), body); w.Code != 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%.40s: %d %s; want %q", query, w.Code, w.Body, want)
		}
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// FuzzSuppositions: any query is read or refused.
func FuzzSuppositions(f *testing.F) {
	for _, q := range []string{"set=a.queue=1&weight=kv=2&without=b", "set=&weight=&without=", "set=a.b.c.queue=1e9", "x=y"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		w, err := suppositions(q)
		if err == nil && w != nil && w.Empty() {
			t.Fatalf("%q supposes nothing", text)
		}
	})
}
