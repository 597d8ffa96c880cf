package serve

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// routed opens a stream and brings it past its pick.
func (r *rig) routed(c *extproc.ProtocolConfiguration, first int, kv ...string) (*talk, string) {
	r.t.Helper()
	x := r.talk()
	x.send(reqHeaders(c, false, completionsPath, kv...), reqBody(completion("m", ids(first, 400)), true))
	got := x.recv()
	if kind(got) == "headers" && mutationOf(got) == nil { // buffered
		got = x.recv()
	} else {
		wantKinds(r.t, []*extproc.ProcessingResponse{x.recv()}, "body+eos")
	}
	return x, destination(r.t, got)
}

func sse() *extproc.ProcessingRequest {
	return respHeaders(false, ":status", "200", "content-type", "text/event-stream; charset=utf-8")
}

// The time to the first byte is taken once of each streamed answer, and of no other:
// a whole answer's first byte comes after its last token.
func TestFirstByteIsMeasured(t *testing.T) {
	r := newRig(t, rigOptions{})
	both := protocol(modeFullDuplex, modeFullDuplex)
	for _, x := range []struct {
		answer *extproc.ProcessingRequest
		want   string
	}{{respHeaders(false, ":status", "200", "content-type", "application/json"), "_count 0"}, {sse(), "_count 1"}} {
		c, _ := r.routed(both, 1)
		c.send(x.answer, respBody([]byte("data: 1\n\n"), false), respBody([]byte("data: 2\n\n"), true))
		c.rest()
		if page := scrapePage(t, r.picker.met, false); !strings.Contains(page, "eppctl_first_byte_seconds"+x.want+"\n") {
			t.Errorf("no eppctl_first_byte_seconds%s in\n%s", x.want, page)
		}
	}
}

func TestResponse(t *testing.T) {
	r := newRig(t, rigOptions{})
	both := protocol(modeFullDuplex, modeFullDuplex)
	t.Run("EP-31 RS-15", func(t *testing.T) {
		c, _ := r.routed(both, 1)
		c.send(sse())
		wantKinds(t, []*extproc.ProcessingResponse{c.recv()}, "resp-headers")
		var sent, back []byte
		for i, piece := range []string{"data: 1\n\n", "data: 2\n\n", ""} {
			c.send(respBody([]byte(piece), i == 2))
			m := c.recv()
			if want := []string{"resp-body+", "resp-body+", "resp-body+eos"}[i]; kind(m) != want {
				t.Fatalf("%s, want %s", kind(m), want)
			}
			sent = append(sent, piece...)
			back = append(back, m.GetResponseBody().GetResponse().GetBodyMutation().GetStreamedResponse().GetBody()...)
		}
		if !bytes.Equal(sent, back) {
			t.Fatal("the response came back changed")
		}
		wantKinds(t, c.rest(), "")
	})
	t.Run("EP-31 other modes", func(t *testing.T) {
		for _, mode := range []bodyMode{modeStreamed, modeBuffered} {
			c, _ := r.routed(protocol(modeFullDuplex, mode), 1)
			c.send(sse(), respBody([]byte("x"), false), respBody(nil, true))
			wantKinds(t, c.rest(), "resp-headers resp-body resp-body")
		}
	})
	t.Run("EP-32 compressed", func(t *testing.T) {
		c, _ := r.routed(both, 1)
		zip := []byte{0x1f, 0x8b, 8, 0, 1, 2, 3}
		c.send(respHeaders(false, ":status", "200", "content-encoding", "gzip"), respBody(zip, true))
		got := c.rest()
		if b := got[1].GetResponseBody().GetResponse().GetBodyMutation().GetStreamedResponse().GetBody(); !bytes.Equal(b, zip) {
			t.Fatalf("came back as %v", b)
		}
	})
	t.Run("EP-36", func(t *testing.T) {
		c, _ := r.routed(both, 1)
		c.send(sse(), respBody([]byte("x"), false), respTrailers())
		wantKinds(t, c.rest(), "resp-headers resp-body+ resp-trailers")
	})
	t.Run("RS-14", func(t *testing.T) {
		c, _ := r.routed(both, 1)
		big := bytes.Repeat([]byte("{not json"), 20_000)
		c.send(respHeaders(false, ":status", "200", "content-type", "application/json"), respBody(big, false), respBody(nil, true))
		got := c.rest()
		if k := kinds(got); k != "resp-headers resp-body+ resp-body+ resp-body+ resp-body+eos" {
			t.Fatal(k)
		}
	})
	waitFor(t, "idle", func() bool { return r.inFlight() == 0 })
}

// gate is a tokenizer that answers when told to.
type gate struct{ asked, open chan struct{} }

func (gate) Name() string { return "gate" }
func (g gate) Tokenize(ctx context.Context, _ tokenizer.Text) (tokenizer.Result, error) {
	g.asked <- struct{}{}
	select {
	case <-g.open:
		return tokenizer.Result{IDs: ids(1, 100), Cut: -1}, nil
	case <-ctx.Done():
		return tokenizer.Result{}, ctx.Err()
	}
}

func TestResponseHeadersDoNotQueueBehindPicks(t *testing.T) {
	t.Run("EP-31", func(t *testing.T) {
		g := gate{make(chan struct{}, 2000), make(chan struct{})}
		r := newRig(t, rigOptions{provider: g, config: func(c *Config) { c.Limits.PickDeadline = time.Minute }})
		c, _ := r.routed(fullDuplex, 1)
		// Every pick hangs in its tokenizer, and then every slot is taken too:
		// the answer to response headers must need none of them.
		for range 2000 {
			x := r.talk()
			x.send(reqHeaders(fullDuplex, false, completionsPath), reqBody([]byte(`{"model":"m","prompt":"text"}`), true))
		}
		for range 2000 {
			<-g.asked
		}
		for range cap(r.picker.slots.all) {
			r.picker.slots.all <- struct{}{}
		}
		c.send(sse())
		wantKinds(t, []*extproc.ProcessingResponse{c.recv()}, "resp-headers")
		for range cap(r.picker.slots.all) {
			<-r.picker.slots.all
		}
		close(g.open)
		wantKinds(t, c.rest(), "")
	})
}

func TestServedElsewhere(t *testing.T) {
	t.Run("EP-33", func(t *testing.T) {
		r := newRig(t, rigOptions{})
		c, picked := r.routed(fullDuplex, 1)
		other := "10.0.0.1:8000"
		if picked == other {
			other = "10.0.0.2:8000"
		}
		c.send(withMetadata(sse(), lbNamespace, servedKey, structpb.NewStringValue(other)))
		c.recv()
		now := time.Now().UnixNano()
		waitFor(t, "the move", func() bool {
			for _, p := range r.fleet.Pods.Snapshot().Pods {
				if n := r.fleet.Load.Load(p, now).InFlight; (p.Target == other) != (n == 1) {
					return false
				}
			}
			return true
		})
		c.rest()
		waitFor(t, "idle", func() bool { return r.inFlight() == 0 })
	})
}

func TestEngineStatus(t *testing.T) {
	t.Run("EP-35", func(t *testing.T) {
		r := newRig(t, rigOptions{pods: threePods()[:2]})
		prompt := ids(1, 800)
		r.cache("a", 0, prompt)
		at := time.Now() // probes come with the clock
		r.picker.clock = func() time.Time { return at }
		a, b := r.pod("a").Target, r.pod("b").Target
		answer := func(want string, headers ...string) {
			t.Helper()
			c, picked := r.talk(), ""
			c.send(reqHeaders(fullDuplex, false, completionsPath), reqBody(completion("m", prompt), true))
			if picked = destination(t, c.recv()); picked != want {
				t.Fatalf("picked %s, want %s", picked, want)
			}
			c.recv()
			c.send(respHeaders(true, headers...))
			c.rest()
			waitFor(t, "idle", func() bool { return r.inFlight() == 0 })
		}
		const took = upstreamTime
		const announced = 3 * time.Second // by then a placement has ended in the index
		answer(a, ":status", "200", took, "7")
		for range 10 { // a refused connection, say: the proxy's own answer
			answer(a, ":status", "503")
		}
		for range 4 {
			answer(a, ":status", "503", took, "1")
		}
		answer(a, ":status", "404", took, "1") // ends the row
		for range 5 {
			answer(a, ":status", "500", took, "1")
		}
		answer(b, ":status", "200", took, "1")
		x, _, _ := r.picker.Explain(t.Context(), &ask{Head: head{Path: completionsPath, Length: -1}, Body: completion("m", prompt)})
		if f := x.Pods[1].Filter; f.Name != "failing" || *f.Value != 5 || *f.Limit != 5 || *f.Probe != 1 {
			t.Errorf("filter %+v", f)
		}
		if s := r.picker.snapshot(stateQuery{limit: 9}, time.Now()).Pods[0]; s.State != "open" || s.Filter != "failing" {
			t.Errorf("state %s, filter %s", s.State, s.Filter)
		}
		page := scrapePage(t, r.picker.met, false)
		for _, want := range []string{
			`eppctl_engine_responses_total{class="5xx",pod="a"} 9`, `eppctl_engine_responses_total{class="4xx",pod="a"} 1`,
			`eppctl_proxy_responses_total{class="5xx"} 10`,
		} {
			if !strings.Contains(page, want) {
				t.Errorf("no %s", want)
			}
		}
		// The probe, a second later. What b was given is no longer expected there,
		// or the two would be alike.
		r.fleet.Index.Sweep(r.picker.clock().Add(announced).UnixNano())
		later := at.Add(1100 * time.Millisecond)
		r.picker.clock = func() time.Time { return later }
		answer(a, ":status", "200", took, "1")
		answer(a, ":status", "200", took, "1")
	})
	t.Run("EP-35/a proxy that tells nothing", func(t *testing.T) {
		r := newRig(t, rigOptions{pods: threePods()[:1]})
		for range 5 {
			c, _ := r.routed(fullDuplex, 1)
			c.send(respHeaders(true, ":status", "503"))
			c.rest()
		}
		if f := r.fleet.Load.Load(r.pod("a"), time.Now().UnixNano()).Circuit; !f.Out {
			t.Errorf("%+v: without a better sign a 503 is the engine's", f)
		}
	})
}

func TestFirstByte(t *testing.T) {
	r := newRig(t, rigOptions{})
	waiting := func() (n int) {
		for _, p := range r.fleet.Pods.Snapshot().Pods {
			n += r.fleet.Load.Load(p, time.Now().UnixNano()).Waiting
		}
		return n
	}
	shown := protocol(modeFullDuplex, modeFullDuplex)
	c, _ := r.routed(shown, 1)
	c.send(sse())
	c.recv()
	if waiting() != 1 {
		t.Fatal("the headers of an event stream count as its first byte")
	}
	c.send(respBody([]byte("data: 1\n\n"), false))
	c.recv()
	waitFor(t, "first byte by content", func() bool { return waiting() == 0 })
	c.rest()

	c, _ = r.routed(fullDuplex, 2)
	c.send(respHeaders(false, ":status", "200", "content-type", "application/json"))
	c.recv()
	waitFor(t, "first byte by headers", func() bool { return waiting() == 0 })
	c.rest()

	// An unseen first byte is estimated, and the estimate needs a scrape that
	// does not show the request waiting.
	c, target := r.routed(fullDuplex, 3)
	c.send(sse())
	c.recv()
	p := r.fleet.Pods.Snapshot().ByTarget(netip.MustParseAddrPort(target))
	now := time.Now().UnixNano()
	settle := func(after time.Duration, running, waiting float64) {
		at := now + int64(after)
		r.fleet.Telemetry.Put(p.ID, &telemetry.Sample{At: at, Running: telemetry.Value{V: running, Known: true}, Waiting: telemetry.Value{V: waiting, Known: true}})
		presume(r.fleet.View(), r.picker.rules.Load().limits(), at)
	}
	waitFor(t, "unseen", func() bool { settle(0, 0, 1); return waiting() == 1 })
	settle(time.Second, 0, 1)
	if waiting() != 1 {
		t.Fatal("the estimate counts though the engine has not begun")
	}
	settle(2*time.Second, 0, 0) // a gauge that lags behind both ways
	if waiting() != 1 {
		t.Fatal("the estimate counts though nothing runs")
	}
	settle(3*time.Second, 1, 0)
	if waiting() != 0 || r.inFlight() != 1 {
		t.Fatalf("%d wait, %d in flight, want 0 and 1", waiting(), r.inFlight())
	}
	c.rest()

	// Without telemetry there is nothing but the estimate.
	c, _ = r.routed(fullDuplex, 4)
	c.send(sse())
	c.recv()
	waitFor(t, "first byte by estimate", func() bool {
		presume(r.fleet.View(), r.picker.rules.Load().limits(), time.Now().Add(time.Minute).UnixNano())
		return waiting() == 0
	})
	c.rest()
}

// TestCutsLeakNothing cuts streams at random places, in every way a stream can
// end, and wants every counter back at zero.
func TestCutsLeakNothing(t *testing.T) {
	for _, signal := range []string{"auto", "stream", "metrics"} {
		t.Run("EP-34/"+signal, func(t *testing.T) {
			r := newRig(t, rigOptions{options: Options{EndSignal: signal, EndTTL: time.Hour}})
			rnd := rand.New(rand.NewPCG(7, uint64(len(signal))))
			body := completion("m", ids(1, 200))
			for range 1000 {
				r.cutStream(rnd, body)
			}
			waitFor(t, "streams gone", func() bool { return r.processor.open.Load() == 0 })
			// Idle engines tell of it at their next scrape.
			for _, p := range r.fleet.Pods.Snapshot().Pods {
				r.scrape(p, 0, 0)
			}
			r.ends.reconcile(r.fleet.View(), time.Now())
			if n := r.inFlight(); n != 0 {
				t.Fatalf("%d requests leaked", n)
			}
			if n := r.ends.lingering(); n != 0 {
				t.Fatalf("%d loose ends", n)
			}
			for _, p := range r.fleet.Pods.Snapshot().Pods {
				l := r.fleet.Load.Load(p, time.Now().UnixNano())
				if l.Waiting != 0 || l.Held != 0 {
					t.Fatalf("%s: %+v", p.Spec.Name, l)
				}
				r.fleet.Index.Sweep(time.Now().Add(time.Hour).UnixNano()) // expectations outlast their requests a little
				if s, _ := r.fleet.Index.Member(p.Members[0]); s.Expectations != 0 {
					t.Fatalf("%s: %d prompts still expected", p.Spec.Name, s.Expectations)
				}
			}
		})
	}
}

// cutStream sends the messages of a whole request up to a random one, and ends
// the stream by half-closing or by a reset.
func (r *rig) cutStream(rnd *rand.Rand, body []byte) {
	modes := []bodyMode{modeNone, modeStreamed, modeBuffered, modePartial, modeFullDuplex}
	cfg := protocol(modes[rnd.IntN(len(modes))], modes[rnd.IntN(len(modes))])
	cut := rnd.IntN(len(body))
	msgs := []*extproc.ProcessingRequest{reqHeaders(cfg, false, completionsPath)}
	if cfg.RequestBodyMode == modeBuffered || cfg.RequestBodyMode == modePartial {
		msgs = append(msgs, reqBody(body, true))
	} else if cfg.RequestBodyMode != modeNone {
		msgs = append(msgs, reqBody(body[:cut], false), reqBody(body[cut:], true))
	}
	if rnd.IntN(2) == 0 {
		msgs = append(msgs, sse())
	} else {
		msgs = append(msgs, respHeaders(rnd.IntN(4) == 0, ":status", fmt.Sprint(200+100*rnd.IntN(4))))
	}
	msgs = append(msgs, respBody([]byte("data: 1\n\n"), false), respBody(nil, true))

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	st, err := r.client.Process(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	n := rnd.IntN(len(msgs) + 1)
	for _, m := range msgs[:n] {
		if st.Send(m) != nil {
			break
		}
	}
	switch rnd.IntN(3) {
	case 0: // reset, at once
		cancel()
	case 1: // reset once something was answered
		if n > 0 && (cfg.RequestBodyMode != modeFullDuplex || n > 2) {
			_, _ = st.Recv()
		}
		cancel()
	default:
		_ = st.CloseSend()
		for {
			if _, err := st.Recv(); err != nil {
				break
			}
		}
	}
}

func TestManyOpenStreams(t *testing.T) {
	t.Run("EP-40", func(t *testing.T) {
		r := newRig(t, rigOptions{})
		var open []*talk
		for range 2000 {
			c := r.talk()
			c.send(reqHeaders(fullDuplex, true, "/v1/models"))
			open = append(open, c)
		}
		for _, c := range open {
			destination(t, c.recv())
		}
		if n := r.inFlight(); n != 2000 {
			t.Fatalf("%d in flight", n)
		}
		for _, c := range open {
			c.rest()
		}
		waitFor(t, "idle", func() bool { return r.inFlight() == 0 })
	})
}

func TestResponsePhasesOff(t *testing.T) {
	t.Run("EU-06", func(t *testing.T) {
		r := newRig(t, rigOptions{})
		c, _ := r.routed(protocol(modeBuffered, modeNone), 1)
		c.cancel() // Envoy has no phase left
		waitFor(t, "stream gone", func() bool { return r.processor.open.Load() == 0 })
		// Nobody said that the request is over; the engine will.
		waitFor(t, "loose end", func() bool { return r.ends.lingering() == 1 })
		if r.inFlight() != 1 {
			t.Fatal("counted down without a signal")
		}
	})
}

// An answer whose length is told is over with its stream, with no event stream seen
// before and no scrape behind it; one of unknown length may still be written.
func TestWholeAnswerLeavesNoLooseEnd(t *testing.T) {
	for _, c := range []struct {
		headers []string
		loose   int
	}{
		{[]string{":status", "200", "content-type", "application/json", "Content-Length", "394"}, 0},
		{[]string{":status", "200", "content-type", "application/json"}, 1},
	} {
		r := newRig(t, rigOptions{})
		s, _ := r.routed(protocol(modeBuffered, modeNone), 1)
		s.send(respHeaders(false, c.headers...))
		s.recv()
		s.cancel()
		waitFor(t, "stream gone", func() bool { return r.processor.open.Load() == 0 })
		waitFor(t, fmt.Sprintf("%d loose ends", c.loose), func() bool { return r.ends.lingering() == c.loose && r.inFlight() == c.loose })
	}
}
