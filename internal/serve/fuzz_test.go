package serve

import (
	"bytes"
	"testing"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// script alphabet: each byte is one message, in any order a broken or hostile
// proxy could send them.
func scriptMessage(op byte, cfg *extproc.ProtocolConfiguration) *extproc.ProcessingRequest {
	body := completion("m", ids(1, 40))
	switch op % 16 {
	case 0, 1:
		return reqHeaders(cfg, op%2 == 1, completionsPath)
	case 2:
		return reqHeaders(cfg, false, "/unknown", "content-length", "99999999999", "x-request-id", "\x00")
	case 3:
		return withSubset(reqHeaders(cfg, false, completionsPath), "10.0.0.1", "bad", ":")
	case 4:
		return reqBody(body, true)
	case 5:
		return reqBody(body[:len(body)/2], false)
	case 6:
		return reqBody(nil, op&16 != 0)
	case 7:
		if op&16 != 0 { // the model's name is rewritten
			return reqBody(completion("m-alias", ids(1, 40)), op&32 != 0)
		}
		return reqBody([]byte("{"), true)
	case 8:
		return reqTrailers()
	case 9:
		return respHeaders(op&16 != 0, ":status", "200", "content-type", "text/event-stream")
	case 10:
		return withMetadata(respHeaders(false, ":status", "x"), lbNamespace, servedKey, structpb.NewStringValue("10.0.0.2:8000"))
	case 11:
		return respBody([]byte("data"), op&16 != 0)
	case 12:
		return respTrailers()
	case 13:
		return &extproc.ProcessingRequest{}
	case 14:
		return reqBody(make([]byte, 70_000), false)
	}
	return withMetadata(respHeaders(false), lbNamespace, servedKey, structpb.NewNumberValue(1))
}

// FuzzStream drives a stream's machine with random message sequences and checks
// what must hold whatever the proxy does.
func FuzzStream(f *testing.F) {
	r := newRig(f, rigOptions{config: func(c *Config) { c.Limits.RequestBytes = 1 << 20 }})
	for mode := byte(0); mode < 8; mode++ {
		f.Add(mode, mode, []byte{0, 5, 4, 9, 11, 11 | 16})
		f.Add(mode, mode, []byte{0, 5, 8, 9, 12})
		f.Add(mode, mode, []byte{0, 4, 4, 6 | 16})
		f.Add(mode, mode, []byte{1, 9 | 16})
		f.Add(mode, mode, []byte{9, 4, 0, 250, 4})
		f.Add(mode, mode, bytes.Repeat([]byte{14}, 20))
		f.Add(mode, mode, []byte{0, 7 | 16 | 32, 9, 11, 11 | 16})
		f.Add(mode, mode, []byte{0, 7 | 16, 250, 4})
		f.Add(mode, mode, []byte{3, 14, 14, 250, 14, 8})
	}
	f.Fuzz(func(t *testing.T, request, response byte, script []byte) {
		if len(script) > 64 {
			return
		}
		var cfg *extproc.ProtocolConfiguration
		if request%8 != 7 {
			cfg = protocol(bodyMode(request%7), bodyMode(response%6))
			cfg.SendBodyWithoutWaitingForHeaderResponse = request&128 != 0
		}
		s := r.script()
		var sent []byte
		whole := true
		for _, op := range script {
			if op >= 240 {
				s.m.expire()
				continue
			}
			m := scriptMessage(op, cfg)
			if b := m.GetRequestBody(); b != nil && s.m.started && !s.m.bodyDone && !s.m.refused {
				sent = append(sent, b.GetBody()...)
			}
			s.step(proto.Clone(m).(*extproc.ProcessingRequest))
		}
		whole = s.m.settled() && !s.m.refused && s.m.started && !s.m.plan.observe
		if s.m.run != nil {
			s.m.run.end()
		}
		checkOrder(t, s)
		if s.m.run != nil && s.m.run.answer().Rewrite != nil {
			sent = s.m.run.answer().Rewrite.apply(sent)
		}
		if back := bodyOf(s.got); s.m.plan.echoes() && whole && !bytes.Equal(back, sent) {
			t.Fatalf("%d bytes of %d came back", len(back), len(sent))
		}
		if n := r.inFlight(); n != 0 {
			t.Fatalf("%d requests leaked", n)
		}
	})
}

// checkOrder holds the answers to the protocol: nothing on the request's side
// precedes the headers, nothing follows a refusal, chunks are small, and one
// pick at most is made.
func checkOrder(t *testing.T, s *script) {
	t.Helper()
	headers, picks, immediate, ended := 0, 0, false, false
	for _, m := range s.got {
		if immediate {
			t.Fatalf("an answer follows a refusal: %s", kinds(s.got))
		}
		if m.GetDynamicMetadata() != nil {
			picks++
		}
		switch {
		case m.GetRequestHeaders() != nil:
			headers++
		case m.GetRequestBody() != nil:
			x := m.GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse()
			if headers == 0 || ended || len(x.GetBody()) > maxChunk {
				t.Fatalf("body out of order or too large: %s", kinds(s.got))
			}
			ended = x.GetEndOfStream()
		case m.GetImmediateResponse() != nil:
			immediate = true
		}
	}
	if headers > 1 || picks > 1 {
		t.Fatalf("%d header answers, %d picks: %s", headers, picks, kinds(s.got))
	}
}

// FuzzHead reads hostile header maps and hints.
func FuzzHead(f *testing.F) {
	f.Add("x-gateway-inference-objective", "-1", "[fd00::1]:80, 10.0.0.1")
	f.Add("Prefer", "if-available;q=1,", "::1:8000")
	f.Add("content-length", "-9", ",,,[")
	f.Add("x-request-id", "\xff", "1.2.3.4:99999")
	f.Fuzz(func(t *testing.T, key, value, hint string) {
		h := parseHead(httpHeaders(false, key, value, ":path", value).Headers)
		if len(h.RequestID) > maxRequestID || h.Length < -1 {
			t.Fatalf("%+v", h)
		}
		m := withSubset(&extproc.ProcessingRequest{}, hint)
		if s := subsetOf(m.GetMetadataContext()); s == nil || len(s.Addrs)+len(s.IPs) > maxSubset {
			t.Fatalf("subset %+v", s)
		}
	})
}
