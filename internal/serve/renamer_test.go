package serve

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// rename passes a response through in pieces cut at the given places.
func rename(text string, cuts ...int) string {
	r := renamer{served: "sim", asked: "llama/\"x\""}
	var out []byte
	for _, c := range cuts {
		c = min(c, len(text))
		out = append(out, r.next([]byte(text[:c]), false)...)
		text = text[c:]
	}
	return string(append(out, r.next([]byte(text), true)...))
}

func TestRenamer(t *testing.T) {
	const asked = `"llama/\"x\""`
	for name, c := range map[string]struct{ in, want string }{
		"object":          {`{"id":"1","model":"sim","choices":[]}`, `{"id":"1","model":` + asked + `,"choices":[]}`},
		"spaces":          {"{\"model\" :\n \"sim\"}", "{\"model\" :\n " + asked + "}"},
		"escaped value":   {`{"model":"s\u0069m"}`, `{"model":` + asked + `}`},
		"events":          {"data: {\"model\":\"sim\",\"x\":1}\n\ndata: {\"model\":\"sim\"}\n\ndata: [DONE]\n\n", "data: {\"model\":" + asked + ",\"x\":1}\n\ndata: {\"model\":" + asked + "}\n\ndata: [DONE]\n\n"},
		"nested":          {`{"response":{"model":"sim"}}`, `{"response":{"model":` + asked + `}}`},
		"another name":    {`{"model":"simple"}`, `{"model":"simple"}`},
		"no string":       {`{"model":17,"model":{"model":null}}`, `{"model":17,"model":{"model":null}}`},
		"generated text":  {`{"text":"\"model\":\"sim\""}`, `{"text":"\"model\":\"sim\""}`},
		"key in a string": {`{"a\"model":"sim"}`, `{"a\"model":"sim"}`},
		"value only":      {`["model","sim"]`, `["model","sim"]`},
		"unfinished":      {`{"model":"si`, `{"model":"si`},
		"empty":           {``, ``},
	} {
		t.Run("EP-26/"+name, func(t *testing.T) {
			if got := rename(c.in); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			for i := range len(c.in) {
				if got := rename(c.in, i); got != c.want {
					t.Errorf("cut at %d: %q, want %q", i, got, c.want)
				}
			}
			ones := make([]int, len(c.in))
			for i := range ones {
				ones[i] = 1
			}
			if got := rename(c.in, ones...); got != c.want {
				t.Errorf("byte by byte: %q, want %q", got, c.want)
			}
		})
	}
}

// An event is passed on as soon as it is here, and what is held back has a bound.
func TestRenamerHoldsLittle(t *testing.T) {
	r := renamer{served: "sim", asked: "llama"}
	event := []byte("data: {\"model\":\"other\",\"choices\":[]}\n\n")
	if got := r.next(event, false); !bytes.Equal(got, event) || len(r.held) > 0 {
		t.Errorf("%q is passed on, %q held", got, r.held)
	}
	r.next([]byte(`{"model":"`), false)
	for range 10 {
		if r.next(bytes.Repeat([]byte("x"), 1000), false); len(r.held) > maxMember {
			t.Fatalf("%d bytes are held", len(r.held))
		}
	}
}

// FuzzRenamer: cuts change nothing, and a JSON response differs in the values of
// its models only.
func FuzzRenamer(f *testing.F) {
	f.Add(`{"id":"1","model":"sim","choices":[{"text":"\"model\":\"sim\""}]}`, 3, 9)
	f.Add("data: {\"model\" : \"sim\"}\n\ndata: [DONE]\n\n", 10, 4)
	f.Add(`\"model":"sim""model":"sim"`, 1, 1)
	f.Fuzz(func(t *testing.T, text string, a, b int) {
		want := rename(text)
		if got := rename(text, max(0, a)%(len(text)+1), max(0, b)%(len(text)+1)); got != want {
			t.Fatalf("cut: %q, whole: %q", got, want)
		}
		var before, after any
		if json.Unmarshal([]byte(text), &before) != nil {
			return
		}
		if err := json.Unmarshal([]byte(want), &after); err != nil {
			t.Fatalf("%q became %q: %v", text, want, err)
		}
		x, _ := json.Marshal(named(before))
		y, _ := json.Marshal(after)
		if string(x) != string(y) {
			t.Fatalf("%s, want %s", y, x)
		}
	})
}

// named is the slow twin of renamer: on the tree instead of the bytes.
func named(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = named(v[i])
		}
	case map[string]any:
		for k := range v {
			if k == "model" && v[k] == "sim" {
				v[k] = "llama/\"x\""
			} else {
				v[k] = named(v[k])
			}
		}
	}
	return v
}

func TestResponseIsRenamed(t *testing.T) {
	r := newRig(t, rigOptions{})
	ask := func(response bodyMode, rest ...*extproc.ProcessingRequest) (string, []*extproc.ProcessingResponse) {
		s := r.script()
		s.step(reqHeaders(protocol(modeFullDuplex, response), false, completionsPath))
		s.step(reqBody(completion("m-alias", []uint32{1, 2, 3}), true))
		before := len(s.got)
		for _, m := range rest {
			s.step(m)
		}
		var all []byte
		for _, m := range s.got[before:] {
			all = append(all, m.GetResponseBody().GetResponse().GetBodyMutation().GetStreamedResponse().GetBody()...)
		}
		return string(all), s.got[before:]
	}
	json200 := respHeaders(false, ":status", "200", "content-type", "application/json", "content-length", "13")
	one, two := respBody([]byte(`{"mod`), false), respBody([]byte(`el":"m"}`), true)
	t.Run("EP-26/full duplex", func(t *testing.T) {
		got, all := ask(modeFullDuplex, json200, one, two)
		if got != `{"model":"m-alias"}` {
			t.Errorf("%q", got)
		}
		wantKinds(t, all, "resp-headers resp-body+ resp-body+eos")
		if h := all[0].GetResponseHeaders().GetResponse().GetHeaderMutation().GetRemoveHeaders(); len(h) != 1 || h[0] != lengthHeader {
			t.Errorf("removed %v: the engine's length is not that of the changed body", h)
		}
	})
	t.Run("EP-26/trailers", func(t *testing.T) {
		got, all := ask(modeFullDuplex, json200, respBody([]byte(`{"model":"m"}{"mo`), false), respTrailers())
		if got != `{"model":"m-alias"}{"mo` {
			t.Errorf("%q", got)
		}
		wantKinds(t, all, "resp-headers resp-body+ resp-body+ resp-trailers")
	})
	t.Run("EP-26/compressed", func(t *testing.T) {
		got, _ := ask(modeFullDuplex, respHeaders(false, ":status", "200", "content-encoding", "gzip"), respBody([]byte(`{"model":"m"}`), true))
		if got != `{"model":"m"}` {
			t.Errorf("%q", got)
		}
	})
	t.Run("EP-26/streamed", func(t *testing.T) { // shown, but not ours to change
		_, all := ask(modeStreamed, json200, one, two)
		for _, m := range all {
			if m.GetResponseBody().GetResponse() != nil || m.GetResponseHeaders().GetResponse() != nil {
				t.Errorf("%v", m)
			}
		}
	})
	t.Run("EP-26/no alias", func(t *testing.T) {
		s := r.script()
		s.step(reqHeaders(protocol(modeFullDuplex, modeFullDuplex), false, completionsPath))
		s.step(reqBody(completion("m", []uint32{1, 2, 3}), true))
		if m := s.step(json200)[0]; m.GetResponseHeaders().GetResponse() != nil || s.m.resp.names != nil {
			t.Error("a response that names what was asked for is changed")
		}
	})
	if strings.Contains(scrapePage(t, r.picker.met, false), `result="impossible"`) {
		t.Error("counted as impossible")
	}
}
