package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
	"github.com/eppctl/eppctl/internal/testdata"
)

// zmqPort listens and shakes hands as a socket of this kind.
func zmqPort(t *testing.T, kind zmq4.SocketType) (endpoint string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := zmq4.Open(c, null.Security(), kind, nil, true, nil); err == nil {
					io.Copy(io.Discard, c)
				}
			}()
		}
	}()
	return "tcp://" + ln.Addr().String()
}

func TestProbe(t *testing.T) {
	pub, router := zmqPort(t, zmq4.Pub), replayPort(t)
	answers := engineAnswers(t, "vllm-0.32.0", "llama").
		with("/metrics", 200, string(capture(t, "vllm-0.32.0", "llama", "metrics-loaded.prom"))).
		with("/tokenize", 200, `{"count":2,"tokens":[1,2]}`)
	address, client := serve(t, answers)
	spec := pod.Spec{Name: "p", Address: address, Ranks: 1, Events: []string{pub}, Replay: []string{router}}
	p := Prober{Client: client}
	got := p.Probe(t.Context(), spec)
	facts, findings := got.Facts, got.Findings
	for _, f := range facts {
		if !f.OK || f.Pod != "p" {
			t.Errorf("%s", f)
		}
	}
	want := []string{"http", "engine", "model", "metrics", "events", "replay", "tokenize"}
	if got := whats(facts); !slices.Equal(got, want) {
		t.Errorf("facts %q, want %q", got, want)
	}
	for _, say := range []string{"vllm 0.32.0", "tiny, adapters: 0, context: 2048 tokens", "requests running 8, waiting 4; KV cache in use 41.67%", "ZMTP 3.", `the prompt "probe" has 2 tokens`} {
		if !strings.Contains(fmt.Sprint(facts), say) {
			t.Errorf("no fact says %q: %v", say, facts)
		}
	}
	if s := got.Sample; s == nil || s.Running.V != 8 || got.Spec.Model != "tiny" || got.Spec.Metrics != "http://"+address+"/metrics" {
		t.Errorf("sample %+v, spec %+v", s, got.Spec)
	}
	// The captured engine had other ports.
	if codes := codesOf(findings); !slices.Equal(codes, []string{"events-differ", "replay-differ"}) {
		t.Errorf("findings %q", codesOf(findings))
	}
}

func TestProbeFailures(t *testing.T) {
	web := func(text string) recorded { return recorded{}.with("/metrics", 200, text) }
	address, client := serve(t, web("[]"))
	spec := pod.Spec{
		Name: "p", Address: address, Ranks: 1, Engine: pod.EngineVLLM, Model: "m",
		Events: []string{"tcp://" + address}, Replay: []string{"tcp://" + testdata.Deaf(t)},
	}
	p := Prober{Client: client}
	facts := p.Probe(t.Context(), spec).Facts
	bad := map[string]string{}
	for _, f := range facts {
		if !f.OK {
			bad[f.What] = f.Detail
		}
	}
	for what, say := range map[string]string{
		"model": "no model", "metrics": "JSON instead", "events": "rank 0", "replay": "refused", "tokenize": "HTTP 404",
	} {
		if !strings.Contains(bad[what], say) {
			t.Errorf("%s: %q, want a failure that says %q", what, bad[what], say)
		}
	}

	spec.Address = testdata.Deaf(t)
	p.Port = func(context.Context, string, string) (string, error) { return "open", nil }
	p.Client = &http.Client{}
	last := p.Probe(t.Context(), spec)
	facts, findings := last.Facts, last.Findings
	if facts[0].OK || !strings.Contains(facts[0].Detail, "refused") || len(findings) > 0 {
		t.Errorf("%v, %v", facts, findings)
	}
	if got := whats(facts); !slices.Equal(got, []string{"http", "engine", "model", "metrics", "events", "replay", "tokenize"}) {
		t.Errorf("facts %q", got)
	}
	for _, f := range facts {
		if known := f.What == "http" || f.What == "events" || f.What == "replay"; known == f.Skipped {
			t.Errorf("%s: what cannot be asked, and nothing else, is skipped", f)
		}
	}
}

// replayPort is that of an engine which has published nothing.
func replayPort(t *testing.T) (endpoint string) {
	t.Helper()
	r, err := zmtp.ListenReplay("127.0.0.1:0", zmtp.ReplayOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return "tcp://" + r.Addr()
}

// TestWrongPorts: each wrong thing that can listen at an event or replay port is
// named. The HTTP server is Go's, which waits for the end of a request line.
func TestWrongPorts(t *testing.T) {
	address, client := serve(t, recorded{})
	web, dead := "tcp://"+address, "tcp://"+testdata.Deaf(t)
	pub, router, replay := zmqPort(t, zmq4.Pub), zmqPort(t, zmq4.Router), replayPort(t)
	garbage := peer(t, func(nc net.Conn) { io.WriteString(nc, "220 mail.example.org ESMTP\r\n") })
	for _, c := range []struct {
		kind           zmq4.SocketType
		endpoint, code string
		hint           string
	}{
		{zmq4.Sub, pub, "", ""},
		{zmq4.Sub, web, "wrong-port", "an HTTP server"},
		{zmq4.Sub, router, "wrong-port", "a ROUTER socket"},
		{zmq4.Sub, replay, "wrong-port", "a ROUTER socket"},
		{zmq4.Sub, garbage, "wrong-port", "does not speak"},
		{zmq4.Sub, dead, "disconnected", "nothing listens"},
		{zmq4.Sub, "tcp://no-such-host.invalid:5557", "disconnected", "the name no-such-host.invalid "},
		{zmq4.Dealer, replay, "", ""},
		{zmq4.Dealer, web, "wrong-port", "an HTTP server"},
		{zmq4.Dealer, pub, "wrong-port", "a PUB socket"},
		{zmq4.Dealer, router, "replay-dead", "sends nothing"},
		{zmq4.Dealer, dead, "replay-dead", "nothing listens"},
	} {
		t.Run(string(c.kind)+" "+c.code+" "+c.hint, func(t *testing.T) {
			t.Parallel()
			r := (&Prober{Client: client}).probe(t.Context(), "p")
			r.port("events", 0, c.endpoint, c.kind)
			fact := r.facts[0]
			switch {
			case fact.OK != (c.code == "") || fact.Code != c.code || len(r.facts) != 1:
				t.Errorf("facts %v", r.facts)
			case c.code == "" && len(r.findings) > 0:
				t.Errorf("findings %v", r.findings)
			case c.code == "":
			case len(r.findings) != 1 || r.findings[0].Code != c.code || r.findings[0].Value != c.endpoint || !strings.Contains(r.findings[0].Hint, c.hint):
				t.Errorf("findings %v", r.findings)
			}
		})
	}
}

// TestUndialled: each way in which a dial fails has a remedy of its own.
func TestUndialled(t *testing.T) {
	dial := func(err error) error {
		return &linkError{FaultDial, &net.OpError{Op: "dial", Net: "tcp", Err: err}}
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{dial(&net.DNSError{Name: "engine-7", Err: "no such host", IsNotFound: true}), "the name engine-7 does not resolve"},
		{dial(&net.DNSError{Name: "engine-7", Err: "i/o timeout", IsTimeout: true}), "the name engine-7 could not be looked up"},
		{dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), "nothing listens there"},
		{dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), "no route"},
		{dial(os.ErrDeadlineExceeded), "a firewall"},
		{dial(errors.New("odd")), "no connection"},
	} {
		if got := undialled(c.err); !strings.Contains(got, c.want) {
			t.Errorf("%v: %q, want %q in it", c.err, got, c.want)
		}
	}
}

func whats(facts []Fact) (names []string) {
	for _, f := range facts {
		names = append(names, f.What)
	}
	return names
}
