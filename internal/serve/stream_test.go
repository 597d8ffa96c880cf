package serve

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
)

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
