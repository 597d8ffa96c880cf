package serve

import (
	"bytes"
	"strings"
	"testing"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
)

func TestBodiesOfAllSorts(t *testing.T) {
	r := newRig(t, rigOptions{})
	send := func(path, body string) string {
		return strings.Fields(kinds(r.ask(reqHeaders(fullDuplex, false, path), reqBody([]byte(body), true))))[0]
	}
	deep := `{"model":"m","prompt":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + "}"
	for _, c := range []struct{ name, path, body, want string }{
		{"EP-16a", completionsPath, "hello", "immediate 400"},
		{"EP-16a query", completionsPath + "?beta=true", "hello", "immediate 400"},
		{"EP-16b", "/v2/whatever", "hello", "headers"},
		{"EP-16c", completionsPath, `{"prompt":"x"}`, "immediate 400"},
		{"EP-16d", completionsPath, `{"model":"m","prompt":"x"}`, "headers"},
		{"EP-17 parts", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:,"}},{"type":"input_audio","input_audio":{}}]}]}`, "headers"},
		{"EP-17 tools", "/v1/chat/completions", `{"model":"m","messages":[],"tools":[{"type":"function","function":{"name":"f"}}]}`, "headers"},
		{"EP-17 responses", "/v1/responses", `{"model":"m","input":[{"role":"user","content":"a"}]}`, "headers"},
		{"EP-17 ids", completionsPath, `{"model":"m","prompt":[1,2,3]}`, "headers"},
		{"EP-17 batch", completionsPath, `{"model":"m","prompt":[[1,2],[3]]}`, "headers"},
		{"EP-17 texts", completionsPath, `{"model":"m","prompt":["a","b"]}`, "headers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := send(c.path, c.body)
			if c.want == "headers" && got != "headers" || c.want != "headers" && !strings.HasPrefix(c.want, got) {
				t.Fatalf("%s, want %s", got, c.want)
			}
		})
	}
	for name, body := range map[string]string{
		"duplicate keys": `{"model":"m","model":"m","prompt":"a","prompt":"b"}`,
		"nesting":        deep,
		"invalid UTF-8":  "{\"model\":\"m\",\"prompt\":\"\xff\xfe\"}",
		"NaN":            `{"model":"m","prompt":"a","temperature":NaN}`,
	} {
		t.Run("EP-16e/"+name, func(t *testing.T) {
			if got := send(completionsPath, body); got != "headers" && got != "immediate" {
				t.Fatal(got)
			}
		})
	}
	t.Run("EP-16c default", func(t *testing.T) {
		d := newRig(t, rigOptions{config: func(c *Config) { c.Models[0].Default = true }})
		wantKinds(t, d.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody([]byte(`{"prompt":"x"}`), true)), "headers body+eos")
	})
	t.Run("compressed", func(t *testing.T) {
		got := r.ask(reqHeaders(fullDuplex, false, completionsPath, "content-encoding", "gzip"), reqBody([]byte{0x1f, 0x8b, 8}, true))
		wantKinds(t, got, "headers body+eos")
		if why := metadataOf(got[0], reasonKey); why != string(reason.Compressed) {
			t.Fatalf("reason %q", why)
		}
	})
}

func TestBodyLimit(t *testing.T) {
	const limit = 1 << 20
	r := newRig(t, rigOptions{config: func(c *Config) { c.Limits.RequestBytes = limit }})
	piece := make([]byte, 200_000)
	t.Run("EP-18", func(t *testing.T) {
		s := r.script()
		s.step(reqHeaders(fullDuplex, false, completionsPath))
		for range 100 {
			s.step(reqBody(piece, false))
			if held := cap(s.m.ask.Body); held > 2*limit {
				t.Fatalf("%d bytes held", held)
			}
		}
		wantKinds(t, s.got, "immediate 413")
		if s.m.ask.Body != nil {
			t.Fatal("the body is still held")
		}
	})
	t.Run("EP-18 announced", func(t *testing.T) {
		s := r.script()
		wantKinds(t, s.step(reqHeaders(fullDuplex, false, completionsPath, "content-length", "1048577")), "immediate 413")
	})
	t.Run("EP-18 buffered", func(t *testing.T) {
		wantKinds(t, r.ask(reqHeaders(protocol(modeBuffered, modeNone), false, completionsPath), reqBody(make([]byte, limit+1), true)),
			"headers immediate 413")
	})
	t.Run("EU-05", func(t *testing.T) {
		c := r.talk()
		c.send(reqHeaders(protocol(modeBuffered, modeNone), false, completionsPath), reqBody(make([]byte, limit+messageRoom+1), true))
		wantKinds(t, []*extproc.ProcessingResponse{c.recv()}, "headers")
		if _, err := c.st.Recv(); status.Code(err) != codes.ResourceExhausted {
			t.Fatalf("error %v", err)
		}
		r.route(completion("m", ids(1, 64))) // the process lives
		if !strings.Contains(scrapePage(t, r.picker.met, false), `eppctl_ext_proc_streams_total{code="ResourceExhausted"} 1`) {
			t.Fatal("not counted")
		}
	})
	t.Run("EP-40 message", func(t *testing.T) {
		big := newRig(t, rigOptions{})
		body := completion("m", ids(1, 800_000))
		if len(body) < 4<<20 {
			t.Fatalf("only %d bytes", len(body))
		}
		got := big.ask(reqHeaders(protocol(modeBuffered, modeNone), false, completionsPath), reqBody(body, true))
		wantKinds(t, got, "headers body")
		destination(t, got[1])
	})
}

// Bodies that do not end are waited for only as long as all of them together fit: beyond
// that each further piece answers its request by load, with all that came. Streams that
// end, however they do, give back what they held.
func TestBodiesTogetherAreBounded(t *testing.T) {
	const limit, part, room = 1 << 16, 1 << 15, 1 << 20
	r := newRig(t, rigOptions{config: func(c *Config) { c.Limits.RequestBytes = limit }})
	held := &r.processor.bodies.held
	body := completion("m", ids(1, 20_000))[:part:part]
	open := func() *script {
		s := r.script()
		s.m.room = room
		s.step(reqHeaders(fullDuplex, false, completionsPath))
		s.step(reqBody(body, false))
		return s
	}
	var waiting []*script
	for range room / part {
		waiting = append(waiting, open())
	}
	for i, s := range waiting {
		if len(s.got) > 0 {
			t.Fatalf("stream %d of %d was answered: %s", i, len(waiting), kinds(s.got))
		}
	}
	more := open()
	wantKinds(t, more.got, "headers body+")
	if got := metadataOf(more.got[0], reasonKey); got != string(reason.BodyCut) {
		t.Errorf("reason %q", got)
	}
	more.step(reqBody(body, true))
	wantKinds(t, more.got, "headers body+ body+eos")
	if !bytes.Equal(bodyOf(more.got), append(bytes.Clone(body), body...)) {
		t.Error("the body came back changed")
	}
	waits := protocol(modeStreamed, modeNone)
	waits.SendBodyWithoutWaitingForHeaderResponse = true
	streamed := r.script()
	streamed.m.room = room
	streamed.step(reqHeaders(waits, false, completionsPath))
	wantKinds(t, streamed.step(reqBody(body, false)), "headers body")

	for i, s := range waiting {
		switch i % 3 {
		case 0: // it ends
			s.step(reqBody([]byte("]}"), true))
		case 1: // it is refused
			s.step(reqBody(make([]byte, limit), false))
		case 2: // its deadline is over
			s.m.expire()
		}
	}
	if room := roomForBodies(1 << 30); room != 2<<30 {
		t.Errorf("room for %d bytes where a body may have 1 GiB", room)
	}
	if n := held.Load(); n != 0 {
		t.Errorf("%d bytes are still held", n)
	}
}

// A stream that breaks while its body comes holds nothing any more.
func TestBrokenStreamsHoldNothing(t *testing.T) {
	r := newRig(t, rigOptions{})
	held := &r.processor.bodies.held
	c := r.talk()
	c.send(reqHeaders(fullDuplex, false, completionsPath), reqBody(make([]byte, 1000), false))
	waitFor(t, "the body", func() bool { return held.Load() >= 1000 })
	c.cancel()
	waitFor(t, "its end", func() bool { return held.Load() == 0 })
}

// TestUploads: a body of no known API is not held, however large.
func TestUploads(t *testing.T) {
	const limit = 1 << 16
	r := newRig(t, rigOptions{config: func(c *Config) { c.Limits.RequestBytes = limit }})
	t.Run("EP-16b upload", func(t *testing.T) {
		s := r.script()
		got := s.step(reqHeaders(fullDuplex, false, "/v1/audio/transcriptions", "content-type", "multipart/form-data", "content-length", "9999999"))
		wantKinds(t, got, "headers")
		if why := metadataOf(got[0], reasonKey); why != string(reason.UnknownPath) {
			t.Fatalf("reason %q", why)
		}
		for range 10 {
			wantKinds(t, s.step(reqBody(make([]byte, limit), false)), "body+ body+")
		}
		wantKinds(t, s.step(reqBody(nil, true)), "body+eos")
		wantKinds(t, r.ask(reqHeaders(protocol(modeBuffered, modeNone), false, "/upload", "content-length", "99999"), reqBody(make([]byte, 2*limit), true)), "headers body")
	})
}

func TestSlowUploadKnowsItsModel(t *testing.T) {
	pods := append(threePods(), pod.Spec{Name: "n", Address: "10.0.0.9:8000", Model: "n"})
	r := newRig(t, rigOptions{pods: pods})
	s := r.script()
	s.step(reqHeaders(fullDuplex, false, completionsPath))
	s.step(reqBody([]byte(`{"model":"n","prompt":"half of a te`), false))
	s.m.expire()
	if d := destination(t, s.got[0]); d != "10.0.0.9:8000" {
		t.Fatalf("%s serves another model", d)
	}
}
