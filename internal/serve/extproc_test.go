package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// script drives one stream's machine and keeps what it answered.
type script struct {
	m   stream
	got []*extproc.ProcessingResponse
}

func (r *rig) script() *script {
	s := &script{}
	s.m = stream{
		limit: r.picker.requestLimit(), forced: r.processor.forced, newID: newRequestID,
		send: func(m *extproc.ProcessingResponse) { s.got = append(s.got, m) },
		pick: func(a *ask) (running, *refusal) {
			f, no := r.picker.Pick(context.Background(), a)
			if no != nil {
				return nil, no
			}
			return f, nil
		},
	}
	return s
}

// step returns the answers to one message.
func (s *script) step(m *extproc.ProcessingRequest) []*extproc.ProcessingResponse {
	before := len(s.got)
	s.m.step(m)
	return s.got[before:]
}

func TestFullDuplex(t *testing.T) {
	r := newRig(t, rigOptions{})
	body := completion("m", ids(1, 600))

	t.Run("EP-01", func(t *testing.T) {
		s := r.script()
		wantKinds(t, s.step(reqHeaders(fullDuplex, false, completionsPath)), "")
		wantKinds(t, s.step(reqBody(body[:100], false)), "")
		wantKinds(t, s.step(reqBody(body[100:], false)), "")
		got := s.step(reqBody(nil, true))
		wantKinds(t, got, "headers body+eos")
		if !bytes.Equal(bodyOf(got), body) {
			t.Fatal("the body came back changed")
		}
	})
	t.Run("EP-02", func(t *testing.T) {
		d := r.route(body)
		if _, err := netip.ParseAddrPort(d); err != nil {
			t.Fatalf("destination %q is no ip:port: %v", d, err)
		}
	})
	t.Run("EP-03", func(t *testing.T) {
		got := r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody(body, true))
		set := mutationOf(got[0]).GetSetHeaders()
		if len(set) < 2 { // destination and the generated request id
			t.Fatalf("%d headers set", len(set))
		}
		for _, h := range set {
			// Nothing beside key, raw value and the action: the deprecated append
			// field is read differently by different proxies.
			if !proto.Equal(h, setHeader(h.GetHeader().GetKey(), string(h.GetHeader().GetRawValue()))) || h.GetAppendAction() != corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD ||
				h.GetHeader().GetValue() != "" || len(h.GetHeader().GetRawValue()) == 0 {
				t.Errorf("header %v", h)
			}
		}
	})
	t.Run("EP-08", func(t *testing.T) {
		s := r.script()
		s.step(reqHeaders(fullDuplex, false, completionsPath))
		s.step(reqBody(body, true))
		before := r.inFlight()
		wantKinds(t, s.step(reqBody(body, true)), "")
		wantKinds(t, s.step(reqBody(nil, true)), "")
		if r.inFlight() != before {
			t.Fatal("a second pick was placed")
		}
	})
	t.Run("EP-09", func(t *testing.T) {
		s := r.script()
		s.step(reqHeaders(fullDuplex, false, completionsPath))
		wantKinds(t, s.step(reqBody(body, false)), "")
		got := s.step(reqTrailers())
		wantKinds(t, got, "headers body+ trailers")
		if !bytes.Equal(bodyOf(got), body) {
			t.Fatal("the body came back changed")
		}
		// Trailers without a body are held back by Envoy: the deadline answers,
		// and then they come.
		s = r.script()
		s.step(reqHeaders(fullDuplex, false, completionsPath))
		s.m.expire()
		wantKinds(t, s.got, "headers")
		wantKinds(t, s.step(reqTrailers()), "trailers")
	})
	t.Run("EP-30 slow upload", func(t *testing.T) {
		s := r.script()
		s.step(reqHeaders(fullDuplex, false, completionsPath))
		s.step(reqBody(body[:10], false))
		s.m.expire()
		wantKinds(t, s.got, "headers body+")
		if got := metadataOf(s.got[0], reasonKey); got != string(reason.Deadline) {
			t.Fatalf("reason %q", got)
		}
		s.step(reqBody(body[10:], true))
		wantKinds(t, s.got, "headers body+ body+eos")
		if !bytes.Equal(bodyOf(s.got), body) {
			t.Fatal("the body came back changed")
		}
	})
}

func TestDestinationHeaderOfClient(t *testing.T) {
	r := newRig(t, rigOptions{})
	for _, key := range []string{destinationKey, "X-Gateway-Destination-Endpoint"} {
		t.Run("EP-04/"+key, func(t *testing.T) {
			got := r.ask(reqHeaders(fullDuplex, false, completionsPath, key, "6.6.6.6:1", servedKey, "x", subsetKey, "y"),
				reqBody(completion("m", ids(1, 64)), true))
			if d := destination(t, got[0]); strings.HasPrefix(d, "6.6.6.6") {
				t.Fatalf("spoofed: %s", d)
			}
			removed := strings.Join(mutationOf(got[0]).GetRemoveHeaders(), " ")
			if removed != servedKey+" "+subsetKey {
				t.Fatalf("removed %q", removed)
			}
		})
	}
}

func TestBodiesComeBack(t *testing.T) {
	r := newRig(t, rigOptions{})
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, 61_999, 62_000, 62_001, 64 << 10, 1 << 20, 20 << 20} {
		t.Run(fmt.Sprintf("EP-05 EP-06/%d", size), func(t *testing.T) {
			body := make([]byte, size)
			for i := range body {
				body[i] = byte(rnd.Uint32())
			}
			got := r.ask(reqHeaders(fullDuplex, false, "/some/upload", "content-type", "application/octet-stream"), reqBody(body, true))
			destination(t, got[0])
			if !bytes.Equal(bodyOf(got), body) {
				t.Fatal("the body came back changed")
			}
			pieces := got[1:]
			if want := max(1, (size+61_999)/62_000); len(pieces) != want {
				t.Fatalf("%d pieces, want %d", len(pieces), want)
			}
			for i, m := range pieces {
				s := m.GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse()
				if len(s.GetBody()) > 62_000 || s.GetEndOfStream() != (i == len(pieces)-1) {
					t.Fatalf("piece %d: %d bytes, eos %v", i, len(s.GetBody()), s.GetEndOfStream())
				}
			}
		})
	}
}

func TestChunks(t *testing.T) {
	for _, c := range []struct{ size, want int }{{61_999, 1}, {62_000, 1}, {62_001, 2}} {
		t.Run(fmt.Sprintf("EU-01/%d", c.size), func(t *testing.T) {
			n := 0
			chunks(make([]byte, c.size), true, func([]byte, bool) { n++ })
			if n != c.want {
				t.Fatalf("%d chunks, want %d", n, c.want)
			}
		})
	}
}

func TestCutBodyPicksTheSame(t *testing.T) {
	t.Run("EP-07", func(t *testing.T) {
		r := newRig(t, rigOptions{})
		prompt := ids(3, 40)
		r.cache("b", 0, prompt)
		body := completion("m", prompt)
		for cut := range len(body) + 1 {
			got := r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody(body[:cut:cut], false), reqBody(body[cut:], true))
			if d := destination(t, got[0]); d != r.pod("b").Target {
				t.Fatalf("cut at %d: %s", cut, d)
			}
			if !bytes.Equal(bodyOf(got), body) {
				t.Fatalf("cut at %d: the body came back changed", cut)
			}
		}
	})
}

func TestHeaderOnly(t *testing.T) {
	t.Run("EP-10", func(t *testing.T) {
		r := newRig(t, rigOptions{})
		for _, mode := range []bodyMode{modeNone, modeStreamed, modeBuffered, modePartial, modeFullDuplex} {
			m := withSubset(reqHeaders(protocol(mode, modeNone), true, "/v1/models", ":method", "GET"), "10.0.0.2:8000")
			got := r.ask(m)
			wantKinds(t, got, "headers")
			if d := destination(t, got[0]); d != "10.0.0.2:8000" {
				t.Fatalf("%v: %s", mode, d)
			}
		}
		empty := newRig(t, rigOptions{pods: []pod.Spec{}})
		wantKinds(t, empty.ask(reqHeaders(fullDuplex, true, "/v1/models")), "immediate 503")
	})
}

func TestOtherModes(t *testing.T) {
	r := newRig(t, rigOptions{})
	prompt := ids(5, 256)
	r.cache("c", 0, prompt)
	body := completion("m", prompt)
	cached := r.pod("c").Target

	t.Run("EP-11", func(t *testing.T) {
		got := r.ask(reqHeaders(protocol(modeNone, modeNone), false, completionsPath))
		wantKinds(t, got, "headers")
		destination(t, got[0])
	})
	t.Run("EP-12", func(t *testing.T) {
		for _, mode := range []bodyMode{modeBuffered, modePartial} {
			s := r.script()
			got := s.step(reqHeaders(protocol(mode, modeNone), false, completionsPath))
			wantKinds(t, got, "headers")
			if got[0].GetRequestHeaders().GetResponse() != nil || got[0].GetDynamicMetadata() != nil {
				t.Fatalf("%v: header answer is not empty: %v", mode, got[0])
			}
			got = s.step(reqBody(body, true))
			wantKinds(t, got, "body")
			if d := destination(t, got[0]); d != cached {
				t.Fatalf("%v: %s, want %s", mode, d, cached)
			}
			if got[0].GetRequestBody().GetResponse().GetBodyMutation() != nil {
				t.Fatalf("%v: the body is mutated", mode)
			}
		}
		// BUFFERED_PARTIAL, cut: routed, and the reason says so.
		got := r.ask(reqHeaders(protocol(modePartial, modeNone), false, completionsPath), reqBody(body[:len(body)/2], false))
		wantKinds(t, got, "headers body")
		destination(t, got[1])
		if why := metadataOf(got[1], reasonKey); why != string(reason.BodyCut) {
			t.Fatalf("reason %q", why)
		}
		// BUFFERED with trailers: the body has no end of stream but is whole.
		got = r.ask(reqHeaders(protocol(modeBuffered, modeNone), false, completionsPath), reqBody(body, false), reqTrailers())
		wantKinds(t, got, "headers body trailers")
		if d := destination(t, got[1]); d != cached {
			t.Fatalf("with trailers: %s, want %s", d, cached)
		}
	})
	t.Run("EP-13", func(t *testing.T) {
		s := r.script()
		got := s.step(reqHeaders(protocol(modeStreamed, modeNone), false, completionsPath))
		wantKinds(t, got, "headers")
		destination(t, got[0])
		for _, eos := range []bool{false, true} {
			wantKinds(t, s.step(reqBody(body, eos)), "body")
		}

		c := protocol(modeStreamed, modeNone)
		c.SendBodyWithoutWaitingForHeaderResponse = true
		s = r.script()
		wantKinds(t, s.step(reqHeaders(c, false, completionsPath)), "")
		wantKinds(t, s.step(reqBody(body[:7], false)), "")
		wantKinds(t, s.step(reqBody(body[7:9], false)), "")
		got = s.step(reqBody(body[9:], true))
		wantKinds(t, got, "headers body body body")
		if d := destination(t, got[0]); d != cached {
			t.Fatalf("%s, want %s", d, cached)
		}

		// Envoy stops reading at 1 MiB.
		s = r.script()
		s.step(reqHeaders(c, false, completionsPath))
		wantKinds(t, s.step(reqBody(make([]byte, streamedHold-1), false)), "")
		wantKinds(t, s.step(reqBody([]byte{'x'}, false)), "headers body body")
		wantKinds(t, s.step(reqBody([]byte{'x'}, true)), "body")
	})
	t.Run("EP-14", func(t *testing.T) {
		got := r.ask(reqHeaders(nil, false, completionsPath), reqBody(body, true))
		wantKinds(t, got, "headers body+eos")
		forced := newRig(t, rigOptions{options: Options{RequestBodyMode: "buffered"}})
		wantKinds(t, forced.ask(reqHeaders(nil, false, completionsPath), reqBody(body, true)), "headers body")
		if _, err := (Options{RequestBodyMode: "bufered"}).check(); err == nil {
			t.Fatal("an unknown mode is accepted")
		}
	})
	t.Run("EP-15", func(t *testing.T) {
		m := reqHeaders(nil, false, completionsPath, requestIDHeader, "seen")
		m.ObservabilityMode = true
		wantKinds(t, r.ask(m, reqBody(body, true), respHeaders(false, ":status", "200")), "")
		if x, _, _ := r.picker.ring.find("seen"); x == nil {
			t.Fatal("the decision is not recorded")
		}
	})
}

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

func TestSubset(t *testing.T) {
	r := newRig(t, rigOptions{})
	str, num := structpb.NewStringValue, structpb.NewNumberValue
	list := func(v ...*structpb.Value) *structpb.Value {
		return structpb.NewListValue(&structpb.ListValue{Values: v})
	}
	for _, c := range []struct {
		name string
		hint *structpb.Value
		want string // "" = refused
	}{
		{"list", list(str("10.0.0.2:8000")), "10.0.0.2:8000"},
		{"string", str("10.0.0.2:8000"), "10.0.0.2:8000"},
		{"comma string", str("9.9.9.9:1,10.0.0.2:8000"), "10.0.0.2:8000"},
		{"mixed", list(str("9.9.9.9:1,9.9.9.8:1"), str("10.0.0.2:8000")), "10.0.0.2:8000"},
		{"spaces", str(" 9.9.9.9:1 , 10.0.0.2:8000 "), "10.0.0.2:8000"},
		{"EU-04 ip match", str("10.0.0.2"), "10.0.0.2:8000"},
		{"EU-04 ip other", str("10.0.0.9"), ""},
		{"EU-04 ip:port match", str("10.0.0.2:8000"), "10.0.0.2:8000"},
		{"EU-04 ip:port other", str("10.0.0.2:8001"), ""},
		{"ipv6 bracketed", str("[fd00::3]:8000"), "[fd00::3]:8000"},
		{"ipv6 bare", str("fd00::3"), "[fd00::3]:8000"},
		{"ipv6 long", str("[fd00:0:0:0::3]:8000"), "[fd00::3]:8000"},
		{"ipv6 brackets alone", str("[fd00::3]"), "[fd00::3]:8000"},
		{"mapped", str("::ffff:10.0.0.2"), "10.0.0.2:8000"},
		{"empty list", list(), ""},
		{"empty string", str(""), ""},
		{"number", num(7), ""},
		{"null", structpb.NewNullValue(), ""},
	} {
		for _, eos := range []bool{true, false} {
			t.Run(fmt.Sprintf("EP-19/%s/eos=%v", c.name, eos), func(t *testing.T) {
				list := []*extproc.ProcessingRequest{withMetadata(reqHeaders(fullDuplex, eos, completionsPath), subsetNamespace, subsetKey, c.hint)}
				if !eos {
					list = append(list, reqBody(completion("m", ids(1, 64)), true))
				}
				got := r.ask(list...)
				if c.want == "" {
					wantKinds(t, got, "immediate 503")
					if d := got[0].GetImmediateResponse().GetDetails(); d != "eppctl_subset_empty" {
						t.Fatalf("details %q", d)
					}
					return
				}
				if d := destination(t, got[0]); d != c.want {
					t.Fatalf("%s, want %s", d, c.want)
				}
			})
		}
	}
	t.Run("EP-19/key absent", func(t *testing.T) {
		got := r.ask(withMetadata(reqHeaders(fullDuplex, true, completionsPath), subsetNamespace, "other", str("x")))
		destination(t, got[0])
	})
	t.Run("EP-20", func(t *testing.T) {
		f := newRig(t, rigOptions{options: Options{Fallbacks: 2}})
		got := f.ask(withSubset(reqHeaders(fullDuplex, true, completionsPath), "10.0.0.1", "fd00::3"))
		entries := strings.Split(destination(t, got[0]), ",")
		if len(entries) != 2 || entries[0] == entries[1] {
			t.Fatalf("list %v", entries)
		}
		for _, e := range entries {
			if e != "10.0.0.1:8000" && e != "[fd00::3]:8000" {
				t.Fatalf("%s is outside the subset", e)
			}
		}
		if all := destination(t, f.ask(reqHeaders(fullDuplex, true, completionsPath))[0]); strings.Count(all, ",") != 2 {
			t.Fatalf("list %q, want three entries", all)
		}
	})
	t.Run("RS-12", func(t *testing.T) {
		load := newRig(t, rigOptions{})
		b := load.pod("b")
		load.scrape(b, 20, 10)
		got := load.ask(withSubset(reqHeaders(fullDuplex, true, completionsPath), "10.0.0.2:8000"))
		if d := destination(t, got[0]); d != b.Target {
			t.Fatalf("%s, want the loaded %s", d, b.Target)
		}
	})
}

func TestNoEndpoint(t *testing.T) {
	r := newRig(t, rigOptions{pods: []pod.Spec{}})
	for _, eos := range []bool{true, false} {
		t.Run(fmt.Sprintf("EP-21 RS-05/eos=%v", eos), func(t *testing.T) {
			list := []*extproc.ProcessingRequest{reqHeaders(fullDuplex, eos, completionsPath)}
			if !eos {
				list = append(list, reqBody(completion("m", ids(1, 64)), true))
			}
			im := r.ask(list...)[0].GetImmediateResponse()
			if im.GetStatus().GetCode() != 503 || im.GetDetails() != "eppctl_no_endpoints" {
				t.Fatalf("%v", im)
			}
			checkError(t, im, "overloaded_error", "service_unavailable", nil)
			if got := immediateHeader(im, dropReason); got != "rejected-no-endpoints" {
				t.Fatalf("drop reason %q", got)
			}
		})
	}
}

func immediateHeader(im *extproc.ImmediateResponse, key string) string {
	for _, h := range im.GetHeaders().GetSetHeaders() {
		if h.GetHeader().GetKey() == key {
			return string(h.GetHeader().GetRawValue())
		}
	}
	return ""
}

// checkError compares the OpenAI error object, field by field and no more.
func checkError(t *testing.T, im *extproc.ImmediateResponse, kind, code string, param any) {
	t.Helper()
	var body map[string]map[string]any
	if err := json.Unmarshal(im.GetBody(), &body); err != nil {
		t.Fatalf("%v in %s", err, im.GetBody())
	}
	e := body["error"]
	if len(body) != 1 || len(e) != 4 || e["type"] != kind || e["code"] != code || e["param"] != param || e["message"] == "" {
		t.Fatalf("error object %s", im.GetBody())
	}
	if got := immediateHeader(im, "content-type"); got != "application/json" {
		t.Fatalf("content-type %q", got)
	}
	if strings.ContainsAny(im.GetDetails(), " \t") || im.GetDetails() == "" {
		t.Fatalf("details %q", im.GetDetails())
	}
	if immediateHeader(im, requestIDHeader) == "" {
		t.Fatal("no request id")
	}
}

func TestErrorsExactly(t *testing.T) {
	model := any("model")
	for _, c := range []struct {
		r          *refusal
		status     int
		kind, code string
		param      any
		details    string
	}{
		{modelNotFound("x"), 404, "invalid_request_error", "model_not_found", model, "eppctl_model_not_found"},
		{notCached(), 412, "invalid_request_error", "prefix_not_cached", nil, "eppctl_prefix_not_cached"},
		{tooLarge(5), 413, "invalid_request_error", "request_too_large", nil, "eppctl_request_too_large"},
		{saturated(), 429, "rate_limit_error", "saturated", nil, "eppctl_saturated"},
		{internalError(), 500, "api_error", "internal_error", nil, "eppctl_internal"},
		{noEndpoints("There are none."), 503, "overloaded_error", "service_unavailable", nil, "eppctl_no_endpoints"},
		{subsetEmpty(), 503, "overloaded_error", "service_unavailable", nil, "eppctl_subset_empty"},
	} {
		t.Run("EU-10/"+c.details, func(t *testing.T) {
			im := c.r.response("id").GetImmediateResponse()
			if int(im.GetStatus().GetCode()) != c.status || im.GetDetails() != c.details {
				t.Fatalf("%v", im)
			}
			checkError(t, im, c.kind, c.code, c.param)
		})
	}
	r := newRig(t, rigOptions{config: func(c *Config) { c.StrictModels = true }})
	for _, c := range []struct {
		name, body string
		status     int
		code       string
		param      any
	}{
		{"invalid_json", "{", 400, "invalid_json", nil},
		{"RS-07 plain text", "hello there", 400, "invalid_json", nil},
		{"RS-06 missing_model", `{"prompt":"x"}`, 400, "missing_model", model},
		{"model_not_found", `{"model":"zz","prompt":"x"}`, 404, "model_not_found", model},
	} {
		t.Run("EU-10/"+c.name, func(t *testing.T) {
			im := r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody([]byte(c.body), true))[0].GetImmediateResponse()
			if int(im.GetStatus().GetCode()) != c.status || im.GetDetails() != "eppctl_"+c.code {
				t.Fatalf("%v", im)
			}
			checkError(t, im, "invalid_request_error", c.code, c.param)
			if strings.Contains(string(im.GetBody()), "hello") {
				t.Fatal("the error quotes the prompt")
			}
		})
	}
}

func TestSaturated(t *testing.T) {
	r, depth := newRig(t, rigOptions{}), float64(pick.DefaultPolicy().Breaker.Depth)
	for _, p := range r.fleet.Pods.Snapshot().Pods {
		r.scrape(p, 10, depth+8)
	}
	r.scrape(r.pod("b"), 10, depth+3)
	body := completion("m", ids(1, 64))
	t.Run("EP-22a", func(t *testing.T) {
		im := r.ask(reqHeaders(fullDuplex, false, completionsPath, "x-gateway-inference-objective", "-1"), reqBody(body, true))[0].GetImmediateResponse()
		if im.GetStatus().GetCode() != 429 || immediateHeader(im, "retry-after") == "" || immediateHeader(im, dropReason) != "rejected-saturated" {
			t.Fatalf("%v", im)
		}
	})
	t.Run("EP-22b RS-04", func(t *testing.T) {
		if d := r.route(body); d != r.pod("b").Target {
			t.Fatalf("%s, want the least saturated", d)
		}
	})
}

func TestControlHeaders(t *testing.T) {
	r := newRig(t, rigOptions{config: func(c *Config) { c.StrictModels = true }})
	body := completion("unknown", ids(1, 64))
	for _, c := range []struct {
		name    string
		headers []string
	}{
		{"old", []string{"x-gateway-model-name-rewrite", "m"}},
		{"new", []string{"x-llm-d-model-name-rewrite", "m"}},
		{"both", []string{"x-gateway-model-name-rewrite", "nobody", "x-llm-d-model-name-rewrite", "m"}},
	} {
		t.Run("EP-23/"+c.name, func(t *testing.T) {
			got := r.ask(reqHeaders(fullDuplex, false, completionsPath, c.headers...), reqBody(body, true))
			wantKinds(t, got, "headers body+eos") // the rewritten model is known, the body's is not
			removed := mutationOf(got[0]).GetRemoveHeaders()
			for i := 0; i < len(c.headers); i += 2 {
				if !strings.Contains(strings.Join(removed, " "), c.headers[i]) {
					t.Fatalf("%s is not removed: %v", c.headers[i], removed)
				}
			}
		})
	}
	h := parseHead(httpHeaders(false,
		"x-gateway-inference-objective", "low", "x-llm-d-inference-objective", "-2", "x-gateway-inference-fairness-id", "t1",
		"x-slo-ttft-ms", "5", "x-llm-d-slo-class", "a", "x-prefiller-host-port", "h:1", "x-custom", "kept").Headers)
	if h.Objective != "-2" || h.Fairness != "t1" || len(h.Strip) != 6 {
		t.Fatalf("%+v", h)
	}
	t.Run("EU-02", func(t *testing.T) {
		got := r.ask(reqHeaders(fullDuplex, false, completionsPath, "accept", "a", "accept", "b", "content-length", "7", "x-llm-d-inference-fairness-id", "t"), reqBody(completion("m", ids(1, 64)), true))
		m := mutationOf(got[0])
		for _, x := range m.GetSetHeaders() {
			if k := x.GetHeader().GetKey(); k == "accept" || k == "content-length" {
				t.Fatalf("%s is touched", k)
			}
		}
		if len(m.GetRemoveHeaders()) != 1 {
			t.Fatalf("removed %v", m.GetRemoveHeaders())
		}
	})
}

func TestRequestID(t *testing.T) {
	r := newRig(t, rigOptions{})
	body := completion("m", ids(1, 64))
	t.Run("EP-24", func(t *testing.T) {
		got := r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody(body, true))
		id, ok := headerOf(got[0], requestIDHeader)
		if !ok || id == "" {
			t.Fatal("no id is generated")
		}
		if x, _, _ := r.picker.ring.find(id); x == nil || x.RequestID != id {
			t.Fatal("the explain record has another id")
		}
		got = r.ask(reqHeaders(fullDuplex, false, completionsPath, requestIDHeader, "mine"), reqBody(body, true))
		if _, ok := headerOf(got[0], requestIDHeader); ok {
			t.Fatal("a client's id is overwritten")
		}
		if x, _, _ := r.picker.ring.find("mine"); x == nil {
			t.Fatal("the explain record does not know the client's id")
		}
		if page := scrapePage(t, r.picker.met, true); !strings.Contains(page, `request_id="mine"`) {
			t.Fatal("no exemplar names the request")
		}
	})
	t.Run("EP-24 unusable", func(t *testing.T) {
		got := r.ask(reqHeaders(fullDuplex, false, completionsPath, requestIDHeader, strings.Repeat("x", maxRequestID+1)), reqBody(body, true))
		if _, ok := headerOf(got[0], requestIDHeader); !ok {
			t.Fatal("an endless id is kept")
		}
	})
}

func TestEqualScoresAgree(t *testing.T) {
	t.Run("EP-27", func(t *testing.T) {
		pods := threePods()
		one, two := newRig(t, rigOptions{pods: pods}), newRig(t, rigOptions{pods: pods})
		less := newRig(t, rigOptions{pods: pods[:2]})
		moved, spread := 0, map[string]int{}
		for i := range 60 {
			id := fmt.Sprintf("request-%d", i)
			ask := func(r *rig) string {
				c := r.talk()
				c.send(reqHeaders(fullDuplex, true, "/v1/models", requestIDHeader, id))
				got := c.rest() // the stream ends, and with it the request
				waitFor(t, "idle", func() bool { return r.inFlight() == 0 })
				return destination(t, got[0])
			}
			a, b, c := ask(one), ask(two), ask(less)
			if a != b {
				t.Fatalf("%s: %s and %s", id, a, b)
			}
			spread[a]++
			if a != c {
				if moved++; a != "[fd00::3]:8000" {
					t.Fatalf("%s moved from %s, which is still there", id, a)
				}
			}
		}
		if len(spread) != 3 || moved == 0 {
			t.Fatalf("spread %v, moved %d", spread, moved)
		}
	})
}

func TestTargetPorts(t *testing.T) {
	t.Run("EP-28", func(t *testing.T) {
		var pods []pod.Spec
		for port := 8000; port < 8008; port++ {
			pods = append(pods, pod.Spec{Name: fmt.Sprint(port), Address: fmt.Sprintf("10.0.0.1:%d", port), Model: "m"})
		}
		r := newRig(t, rigOptions{pods: pods})
		seen := map[string]bool{}
		for i := range 8 { // streams stay open, so that load spreads them
			c := r.talk()
			c.send(reqHeaders(fullDuplex, false, completionsPath), reqBody(completion("m", ids(i, 900)), true))
			seen[destination(t, c.recv())] = true
		}
		if len(seen) != 8 {
			t.Fatalf("%d endpoints of 8 used", len(seen))
		}
	})
}

func TestIPv6(t *testing.T) {
	t.Run("EP-29", func(t *testing.T) {
		r := newRig(t, rigOptions{pods: threePods()[2:], options: Options{EmitScores: true}})
		body := completion("m", ids(1, 64))
		for _, mode := range []bodyMode{modeNone, modeStreamed, modeBuffered, modePartial, modeFullDuplex} {
			for _, got := range r.ask(reqHeaders(protocol(mode, modeNone), false, completionsPath), reqBody(body, true)) {
				if mutationOf(got) != nil && len(mutationOf(got).GetSetHeaders()) > 0 {
					if d := destination(t, got); d != "[fd00::3]:8000" {
						t.Fatalf("%v: %s", mode, d)
					}
					scores := got.GetDynamicMetadata().GetFields()[lbNamespace].GetStructValue().GetFields()[scoresKey].GetStructValue().GetFields()
					if _, ok := scores["[fd00::3]:8000"]; !ok || len(scores) != 1 {
						t.Fatalf("scores %v", scores)
					}
				}
			}
		}
		if d := destination(t, r.ask(reqHeaders(fullDuplex, true, "/v1/models"))[0]); d != "[fd00::3]:8000" {
			t.Fatal(d)
		}
	})
}

// stuck is a tokenizer that never answers.
type stuck struct{ asked chan struct{} }

func (stuck) Name() string { return "stuck" }
func (s stuck) Tokenize(ctx context.Context, _ tokenizer.Text) (tokenizer.Result, error) {
	s.asked <- struct{}{}
	<-ctx.Done()
	return tokenizer.Result{}, ctx.Err()
}

func TestPickDeadline(t *testing.T) {
	t.Run("EP-30", func(t *testing.T) {
		r := newRig(t, rigOptions{
			provider: stuck{make(chan struct{}, 10)},
			config:   func(c *Config) { c.Limits.PickDeadline = 20 * time.Millisecond },
		})
		body := []byte(`{"model":"m","prompt":"some text"}`)
		got := r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody(body, true))
		wantKinds(t, got, "headers body+eos")
		if why := metadataOf(got[0], reasonKey); why != string(reason.TokenizeSlow) {
			t.Fatalf("reason %q", why)
		}
		if page := scrapePage(t, r.picker.met, false); !strings.Contains(page, `eppctl_unmatched_total{reason="tokenize-deadline"} 1`) {
			t.Fatal("not counted")
		}
	})
	t.Run("EP-30 no end of the body", func(t *testing.T) {
		r := newRig(t, rigOptions{config: func(c *Config) { c.Limits.PickDeadline = 20 * time.Millisecond }})
		c := r.talk()
		c.send(reqHeaders(fullDuplex, false, completionsPath), reqBody([]byte("{"), false))
		got := c.recv()
		destination(t, got)
		if why := metadataOf(got, reasonKey); why != string(reason.Deadline) {
			t.Fatalf("reason %q", why)
		}
	})
}

// faulty panics, as a bug of ours would.
type faulty struct{}

func (faulty) Name() string { return "faulty" }
func (faulty) Tokenize(context.Context, tokenizer.Text) (tokenizer.Result, error) {
	panic("a bug")
}

func TestPanicIsOneRequests(t *testing.T) {
	t.Run("EU-10/internal", func(t *testing.T) {
		r := newRig(t, rigOptions{provider: faulty{}})
		for range 2 * cap(r.picker.slots.all) {
			got := r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody([]byte(`{"model":"m","prompt":"x"}`), true))
			wantKinds(t, got, "immediate 500")
			checkError(t, got[0].GetImmediateResponse(), "api_error", "internal_error", nil)
		}
		r.route(completion("m", ids(1, 64))) // others go on
	})
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

// TestRouting holds the scenarios of the field's own integration tests.
func TestRouting(t *testing.T) {
	set := func(r *rig, name string, queue, kv float64, loras ...string) {
		r.fleet.Telemetry.Put(r.pod(name).ID, &telemetry.Sample{
			Engine: pod.EngineVLLM, At: time.Now().UnixNano(),
			Waiting: telemetry.Value{V: queue, Known: true}, Running: telemetry.Value{V: 1, Known: true},
			KVUsage: telemetry.Value{V: kv, Known: true},
			LoRA:    telemetry.LoRA{Known: true, Max: 2, Running: loras},
		})
	}
	t.Run("RS-01", func(t *testing.T) {
		r := newRig(t, rigOptions{})
		set(r, "a", 3, .2)
		set(r, "b", 0, .1)
		set(r, "c", 10, .2)
		if d := r.route(completion("m", ids(1, 300))); d != r.pod("b").Target {
			t.Fatal(d)
		}
		if page := scrapePage(t, r.picker.met, false); !strings.Contains(page, `eppctl_requests_total{code="200",model="m",reason=""} 1`) {
			t.Fatal("the request is not counted")
		}
	})
	t.Run("RS-02", func(t *testing.T) {
		r := newRig(t, rigOptions{})
		set(r, "a", 0, .2, "x")
		set(r, "b", 0, .2, "ad")
		set(r, "c", 0, .2, "y")
		if d := r.route(completion("ad", ids(1, 300))); d != r.pod("b").Target {
			t.Fatal(d)
		}
	})
	t.Run("RS-03", func(t *testing.T) {
		r := newRig(t, rigOptions{})
		set(r, "a", 2, .2, "x", "y")
		set(r, "b", 2, .2, "x", "y")
		set(r, "c", 2, .7, "ad", "y")
		if d := r.route(completion("ad", ids(1, 300))); d != r.pod("c").Target {
			t.Fatal(d)
		}
	})
	t.Run("RS-10", func(t *testing.T) {
		r := newRig(t, rigOptions{})
		r.route(completion("nobody-knows", ids(1, 300)), "x-llm-d-inference-objective", "3")
	})
	t.Run("RS-17", func(t *testing.T) {
		for _, on := range []bool{false, true} {
			r := newRig(t, rigOptions{options: Options{EmitScores: on}})
			got := r.ask(reqHeaders(fullDuplex, true, "/v1/models"))[0]
			_, has := got.GetDynamicMetadata().GetFields()[lbNamespace].GetStructValue().GetFields()[scoresKey]
			if has != on {
				t.Fatalf("scores present %v, asked for %v", has, on)
			}
		}
	})
}

func TestRanks(t *testing.T) {
	r := newRig(t, rigOptions{pods: []pod.Spec{{Name: "dp", Address: "10.0.0.1:8000", Model: "m", Engine: pod.EngineVLLM, Ranks: 2}}})
	prompt := ids(4, 128)
	r.cache("dp", 1, prompt)
	got := r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody(completion("m", prompt), true))
	if rank, _ := headerOf(got[0], rankHeader); rank != "1" {
		t.Fatalf("rank %q, want 1", rank)
	}
	got = r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody(completion("m", ids(9, 128)), true))
	if rank, _ := headerOf(got[0], rankHeader); rank != "0" && rank != "1" {
		t.Fatalf("rank %q, want one of both", rank)
	}
	r = newRig(t, rigOptions{pods: []pod.Spec{{Name: "dp", Address: "10.0.0.1:8000", Model: "m", Engine: pod.EngineTRTLLM, Ranks: 2}}})
	r.cache("dp", 1, prompt)
	got = r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody(completion("m", prompt), true))
	if rank, ok := headerOf(got[0], rankHeader); ok {
		t.Fatalf("rank %q for an engine that does not listen", rank)
	}
}

func TestIfAvailable(t *testing.T) {
	r := newRig(t, rigOptions{})
	prompt := ids(6, 128)
	ask := func() string {
		return kind(r.ask(reqHeaders(fullDuplex, false, completionsPath, "prefer", "respond-async, if-available"), reqBody(completion("m", prompt), true))[0])
	}
	if k := ask(); k != "immediate 412" {
		t.Fatalf("not cached: %s", k)
	}
	r.cache("a", 0, prompt)
	if k := ask(); k != "headers" {
		t.Fatalf("cached: %s", k)
	}
}
