package feed

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"

	"github.com/eppctl/eppctl/internal/core/pod"
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
	pub, router := zmqPort(t, zmq4.Pub), zmqPort(t, zmq4.Router)
	answers := engineAnswers(t, "vllm-0.32.0", "llama").
		with("/metrics", 200, string(capture(t, "vllm-0.32.0", "llama", "metrics-loaded.prom"))).
		with("/tokenize", 200, `{"count":2,"tokens":[1,2]}`)
	address, client := serve(t, answers)
	spec := pod.Spec{Name: "p", Address: address, Ranks: 1, Events: []string{pub}, Replay: []string{router}}
	p := Prober{Client: client}
	facts, findings := p.Probe(t.Context(), spec)
	for _, f := range facts {
		if !f.OK || f.Pod != "p" {
			t.Errorf("%s", f)
		}
	}
	want := []string{"http", "engine", "model", "metrics", "events", "replay", "tokenize"}
	if got := whats(facts); !slices.Equal(got, want) {
		t.Errorf("facts %q, want %q", got, want)
	}
	for _, say := range []string{"vllm 0.32.0", "tiny, adapters: 0, context: 2048 tokens", "running 8, waiting 4, KV 0.4167", "ZMTP 3.", "1 word is 2 tokens"} {
		if !strings.Contains(fmt.Sprint(facts), say) {
			t.Errorf("no fact says %q: %v", say, facts)
		}
	}
	// The captured engine had other ports.
	if got := codesOf(findings); !slices.Equal(got, []string{"events-differ", "replay-differ"}) {
		t.Errorf("findings %q", got)
	}
}

func TestProbeFailures(t *testing.T) {
	web := func(text string) recorded { return recorded{}.with("/metrics", 200, text) }
	address, client := serve(t, web("[]"))
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	spec := pod.Spec{
		Name: "p", Address: address, Ranks: 1, Engine: pod.EngineVLLM, Model: "m",
		Events: []string{"tcp://" + address}, Replay: []string{"tcp://" + closed.Addr().String()},
	}
	p := Prober{Client: client}
	facts, _ := p.Probe(t.Context(), spec)
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

	spec.Address = closed.Addr().String()
	p.Port = func(context.Context, string, string) (string, error) { return "open", nil }
	p.Client = &http.Client{}
	facts, findings := p.Probe(t.Context(), spec)
	if facts[0].OK || !strings.Contains(facts[0].Detail, "refused") || findings != nil {
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

func whats(facts []Fact) (names []string) {
	for _, f := range facts {
		names = append(names, f.What)
	}
	return names
}
