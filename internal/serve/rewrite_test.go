package serve

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

func TestRewriteChangesTheNameOnly(t *testing.T) {
	for name, c := range map[string]struct {
		body, want string // want "" = as it was
		insert     bool
		named      bool
	}{
		"first":            {body: `{"model":"a","prompt":"x"}`, want: `{"model":"m","prompt":"x"}`},
		"white space":      {body: "{ \"prompt\" : \"x\" ,\n\"model\"\t:  \"a\"  }", want: "{ \"prompt\" : \"x\" ,\n\"model\"\t:  \"m\"  }"},
		"in the prompt":    {body: `{"prompt":"\"model\":\"a\"","model":"a"}`, want: `{"prompt":"\"model\":\"a\"","model":"m"}`},
		"escapes":          {body: `{"model":"a\/\u0062\"","prompt":1.0}`, want: `{"model":"m","prompt":1.0}`},
		"twice":            {body: `{"model":"a","model":"b"}`, want: `{"model":"a","model":"m"}`},
		"escaped key":      {body: `{"mod\u0065l":"a"}`, want: `{"mod\u0065l":"m"}`},
		"nested":           {body: `{"metadata":{"model":"a"},"model":"b"}`, want: `{"metadata":{"model":"a"},"model":"m"}`},
		"byte mark":        {body: "\xef\xbb\xbf{\"model\":\"a\"}", want: "\xef\xbb\xbf{\"model\":\"m\"}"},
		"NaN behind it":    {body: `{"model":"a","temperature":NaN}`, want: `{"model":"m","temperature":NaN}`},
		"NaN before it":    {body: `{"temperature":NaN,"model":"a"}`, want: `{"temperature":NaN,"model":"m"}`},
		"NaN between two":  {body: `{"model":"a","x":[-Infinity],"model":"b"}`, want: `{"model":"a","x":[-Infinity],"model":"m"}`},
		"no NaN before it": {body: `{"temperature":NaNs,"model":"a"}`},
		"cut":              {body: `{"model":"a","prompt":"x`, want: `{"model":"m","prompt":"x`},
		"invalid UTF-8":    {body: "{\"prompt\":\"\xff\",\"model\":\"a\xfe\"}", want: "{\"prompt\":\"\xff\",\"model\":\"m\"}"},
		"named already":    {body: `{"model":"\u006d"}`, named: true},
		"none":             {body: `{"prompt":"x"}`},
		"none, insert":     {body: `{"prompt":"x"}`, insert: true, want: `{"model":"m","prompt":"x"}`},
		"empty, insert":    {body: " { } ", insert: true, want: ` {"model":"m" } `},
		"null":             {body: `{"model":null}`},
		"null, insert":     {body: `{"model":null}`, insert: true, want: `{"model":"m"}`},
		"no JSON, insert":  {body: `hello`, insert: true},
		"a list, insert":   {body: `[1]`, insert: true},
		"prompt of ids":    {body: `{"prompt":[1,2,3],"model":"a"}`, want: `{"prompt":[1,2,3],"model":"m"}`},
		"long, at the end": {body: `{"prompt":"` + strings.Repeat("x", 1<<20) + `","model":"a"}`, want: `{"prompt":"` + strings.Repeat("x", 1<<20) + `","model":"m"}`},
	} {
		t.Run("EP-26/"+name, func(t *testing.T) {
			before := []byte(c.body)
			w, named := newRewrite(before, "m", c.insert)
			if named != c.named {
				t.Errorf("named %v, want %v", named, c.named)
			}
			if (w != nil) != (c.want != "") {
				t.Fatalf("rewrite %+v, want %.100q", w, c.want)
			}
			if w == nil {
				return
			}
			after := w.apply(before)
			if string(after) != c.want || string(before) != c.body {
				t.Errorf("%.200q, want %.200q", after, c.want)
			}
			if len(after) != len(before)+w.grown() {
				t.Errorf("%d bytes of growth are told, %d came", w.grown(), len(after)-len(before))
			}
		})
	}
}

// FuzzRewrite: the result names the model, and everything else is as it was.
func FuzzRewrite(f *testing.F) {
	f.Add([]byte(`{"model":"a","prompt":"x"}`), "m")
	f.Add([]byte(`{"x":NaN,"model":"a","y":-Infinity}`), "m")
	f.Add([]byte(`{"prompt":[1],"model":null}`), "meta-llama/\"x\"\u2028")
	f.Add([]byte("\xef\xbb\xbf{\"model\":\"a\",\"model\":\"\xff\"}"), "\xff")
	f.Fuzz(func(t *testing.T, body []byte, served string) {
		w, _ := newRewrite(body, served, true)
		if w == nil {
			return
		}
		if w.from < 0 || w.from > w.to || w.to > len(body) {
			t.Fatalf("%+v", w)
		}
		after := w.apply(body)
		if !bytes.HasPrefix(after, body[:w.from]) || !bytes.HasSuffix(after, body[w.to:]) {
			t.Fatal("other bytes changed")
		}
		from, to, found := tokenizer.FindMember(after, "model")
		if !found {
			// A body that is no JSON can hide what was inserted into it.
			if json.Valid(body) && bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
				t.Fatalf("no model in %q", after)
			}
			return
		}
		if json.Valid(body) && !bytes.Equal(after[from:to], quoted(served)) {
			t.Fatalf("%q names %q", after, after[from:to])
		}
	})
}

// What each mode makes of an alias and of a gateway's rewrite.
func TestRewriteByMode(t *testing.T) {
	r := newRig(t, rigOptions{})
	const header = "x-gateway-model-name-rewrite"
	body := []byte(`{"model":"m-alias","prompt":[1,2,3]}`)
	want := `{"model":"m","prompt":[1,2,3]}`
	waits := protocol(modeStreamed, modeNone)
	waits.SendBodyWithoutWaitingForHeaderResponse = true
	for _, c := range []struct {
		name    string
		mode    *extproc.ProtocolConfiguration
		eos     bool
		changed bool
	}{
		{"full duplex", fullDuplex, true, true},
		{"buffered", protocol(modeBuffered, modeNone), true, true},
		{"partial, whole", protocol(modePartial, modeNone), true, true},
		{"partial, cut", protocol(modePartial, modeNone), false, false},
		{"streamed", protocol(modeStreamed, modeNone), true, false},
		{"streamed, waiting", waits, true, false},
		{"none", protocol(modeNone, modeNone), true, false},
	} {
		t.Run("EP-26/"+c.name, func(t *testing.T) {
			s := r.script()
			s.step(reqHeaders(c.mode, false, completionsPath, "content-length", "36", header, "m"))
			if c.mode.RequestBodyMode != modeNone {
				s.step(reqBody(body, c.eos))
			}
			var got, length string
			removed := false
			for _, m := range s.got {
				x := m.GetRequestBody().GetResponse().GetBodyMutation()
				got += string(x.GetBody()) + string(x.GetStreamedResponse().GetBody())
				for _, h := range mutationOf(m).GetSetHeaders() {
					if h.GetHeader().GetKey() == lengthHeader {
						length = string(h.GetHeader().GetRawValue())
					}
				}
				for _, h := range mutationOf(m).GetRemoveHeaders() {
					removed = removed || h == header
				}
			}
			if removed != c.changed {
				t.Errorf("the gateway's header is removed: %v, want %v", removed, c.changed)
			}
			if !c.changed {
				if got != "" || length != "" {
					t.Errorf("body %q, length %q", got, length)
				}
				return
			}
			if got != want || length != "30" {
				t.Errorf("body %q, length %q", got, length)
			}
		})
	}
	t.Run("EP-26/no length", func(t *testing.T) {
		got := r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody(body, true))
		if v, ok := headerOf(got[0], lengthHeader); ok {
			t.Errorf("content-length %s for a body of unknown length", v)
		}
		if string(bodyOf(got)) != want {
			t.Errorf("body %q", bodyOf(got))
		}
	})
	t.Run("EP-26/slow upload", func(t *testing.T) {
		s := r.script()
		s.step(reqHeaders(fullDuplex, false, completionsPath, "content-length", "36"))
		s.step(reqBody(body[:20], false))
		s.m.expire()
		s.step(reqBody(body[20:], true))
		if v, _ := headerOf(s.got[0], lengthHeader); string(bodyOf(s.got)) != want || v != "30" {
			t.Errorf("body %q, length %q", bodyOf(s.got), v)
		}
	})
	t.Run("EP-26/adapter", func(t *testing.T) {
		got := r.ask(reqHeaders(fullDuplex, false, completionsPath, header, "ad"), reqBody(body, true))
		if string(bodyOf(got)) != `{"model":"ad","prompt":[1,2,3]}` {
			t.Errorf("body %q", bodyOf(got))
		}
		got = r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody([]byte(`{"model":"ad","prompt":[1]}`), true))
		if string(bodyOf(got)) != `{"model":"ad","prompt":[1]}` {
			t.Errorf("body %q", bodyOf(got))
		}
	})
	t.Run("RS-11/counted", func(t *testing.T) {
		page := scrapePage(t, r.picker.met, false)
		for _, want := range []string{`eppctl_model_rewrites_total{result="done"} `, `eppctl_model_rewrites_total{result="impossible"} 4`} {
			if !strings.Contains(page, want) {
				t.Errorf("no %s", want)
			}
		}
	})
	t.Run("EP-23/GET", func(t *testing.T) {
		got := r.ask(reqHeaders(fullDuplex, true, "/v1/models", header, "m"))
		if len(mutationOf(got[0]).GetRemoveHeaders()) != 1 {
			t.Error("a rewrite with nothing to rewrite reaches the engine")
		}
	})
}
