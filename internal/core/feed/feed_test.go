package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

func newFleet() *view.Fleet {
	return &view.Fleet{
		Pods: pod.NewTable(), Index: index.New(index.Options{Seed: 1, TTL: -1}), Telemetry: &telemetry.Board{},
		Sync: &view.SyncBoard{}, Load: view.NewLedger(),
	}
}

// startFeed runs a feed over an empty fleet.
func startFeed(t *testing.T, o Options) (*Feed, *view.Fleet) {
	t.Helper()
	fleet := newFleet()
	client := &http.Client{Transport: &http.Transport{}}
	o.HTTP, o.ScrapeInterval = client, 10*time.Millisecond
	f := New(fleet, o)
	t.Cleanup(func() {
		f.Close()
		client.CloseIdleConnections()
	})
	return f, fleet
}

// engine is the HTTP side of an engine: what it serves, what it tells of its
// event ports, when it started.
type engine struct {
	*httptest.Server
	model   atomic.Pointer[string]
	sources atomic.Pointer[string] // /kv_event_sources, nil = 404
	started atomic.Int64
}

func newEngine(t *testing.T, model string) *engine {
	t.Helper()
	e := &engine{}
	e.model.Store(&model)
	e.started.Store(1000)
	e.Server = httptest.NewServer(e)
	t.Cleanup(e.Close)
	return e
}

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/version":
		fmt.Fprint(w, `{"version":"0.32.0"}`)
	case "/v1/models":
		fmt.Fprintf(w, `{"object":"list","data":[{"id":%q,"object":"model","owned_by":"vllm","max_model_len":2048,"parent":null}]}`, *e.model.Load())
	case "/kv_event_sources":
		if s := e.sources.Load(); s != nil {
			fmt.Fprint(w, *s)
			return
		}
		http.NotFound(w, r)
	case "/metrics":
		fmt.Fprintf(w, "vllm:num_requests_running 0\nvllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc 0\nvllm:cache_config_info{block_size=\"2\"} 1\nprocess_start_time_seconds %d\n", e.started.Load())
	default:
		http.NotFound(w, r)
	}
}

func (e *engine) address() string { return e.Listener.Addr().String() }

// tells makes the engine name these event and replay ports, one pair per rank.
func (e *engine) tells(ports ...string) {
	m := map[string]any{}
	for i := 0; i < len(ports); i += 2 {
		s := map[string]any{"enable_kv_cache_events": true, "publisher": "zmq", "topic": "", "endpoint": "tcp://*:" + portOf(ports[i])}
		if ports[i+1] != "" {
			s["replay_endpoint"] = "tcp://*:" + portOf(ports[i+1])
		}
		m[fmt.Sprint(i/2)] = s
	}
	b, _ := json.Marshal(m)
	text := string(b)
	e.sources.Store(&text)
}

func portOf(addr string) string {
	_, p, _ := net.SplitHostPort(addr)
	return p
}

// held is how many tokens of the prompt a member holds.
func held(fleet *view.Fleet, m pod.Member, p *block.Prompt) int {
	var out index.Result
	fleet.Index.Lookup(p, &out)
	for _, x := range out.Matches {
		if x.Member == m {
			return int(x.Depth * x.Size)
		}
	}
	return 0
}

// prompt is what stored(n) stores, under a model.
func prompt(model string, n uint32) *block.Prompt {
	return &block.Prompt{Model: model, Tokens: []uint32{n, 7}, Cut: -1}
}

func waitHeld(t *testing.T, fleet *view.Fleet, m pod.Member, p *block.Prompt, want int) {
	t.Helper()
	eventually(t, fmt.Sprintf("member %d holds %d tokens", m, want), func() bool { return held(fleet, m, p) == want },
		func() string { return fmt.Sprintf("%d, %+v", held(fleet, m, p), fleet.Sync.Get(m)) })
}

// waitPod waits for the pod of this name to satisfy ok.
func waitPod(t *testing.T, fleet *view.Fleet, name string, ok func(*pod.Pod) bool) *pod.Pod {
	t.Helper()
	var p *pod.Pod
	eventually(t, "pod "+name, func() bool {
		p = fleet.Pods.Snapshot().ByName(name)
		return p != nil && ok(p)
	}, func() string { return fmt.Sprintf("%+v", p) })
	return p
}

// Everything but the address comes from the engine.
func TestFeedDiscovers(t *testing.T) {
	e := newEngine(t, "m")
	p0, p1 := publisher(t, "127.0.0.1:0", zmtp.Options{}), publisher(t, "127.0.0.1:0", zmtp.Options{})
	r0, r1 := replayServer(t, zmtp.ReplayOptions{}), replayServer(t, zmtp.ReplayOptions{})
	e.tells(p0.Addr(), r0.Addr(), p1.Addr(), r1.Addr())
	r1.Record(0, "", stored(1))
	f, fleet := startFeed(t, Options{})
	f.Apply([]pod.Spec{{Address: e.address()}})
	p := waitPod(t, fleet, e.address(), func(p *pod.Pod) bool { return len(p.Members) == 2 && p.Spec.Model == "m" })
	if p.Spec.Engine != pod.EngineVLLM || p.Spec.MaxContext != 2048 || p.Target != e.address() || p.Spec.Metrics == "" {
		t.Errorf("%+v", p)
	}
	waitHeld(t, fleet, p.Members[1], prompt("m", 1), 2)
	subscribed(t, p0)
	p0.Send("", 0, stored(2))
	waitHeld(t, fleet, p.Members[0], prompt("m", 2), 2)
	if held(fleet, p.Members[0], prompt("m", 1)) != 0 {
		t.Error("rank 0 holds the block of rank 1")
	}
	eventually(t, "telemetry", func() bool { return fleet.Telemetry.Get(p.ID).Sample != nil }, func() string { return fleet.Telemetry.Get(p.ID).Err })
	eventually(t, "a block stored by rank 1 of 2", func() bool {
		c := f.Counters()
		return len(c) == 2 && c[1].Rank == 1 && c[1].Stored == 1
	}, func() string { return fmt.Sprintf("%+v", f.Counters()) })

	// Taken out: the blocks go, the numbers are free again.
	f.Apply(nil)
	if n := len(fleet.Pods.Snapshot().Pods); n != 0 {
		t.Errorf("%d pods left", n)
	}
	for _, m := range p.Members {
		if held(fleet, m, prompt("m", 1)) != 0 || held(fleet, m, prompt("m", 2)) != 0 || fleet.Sync.Get(m) != (view.Sync{}) {
			t.Errorf("member %d: something is left", m)
		}
	}
	if fleet.Telemetry.Get(p.ID).Sample != nil {
		t.Error("the sample is left")
	}
	f.Apply([]pod.Spec{{Name: "next", Address: e.address()}})
	if next := fleet.Pods.Snapshot().ByName("next"); next == nil || next.ID != p.ID || next.Epoch == p.Epoch {
		t.Errorf("%+v", next)
	}
}

// The engine starts after eppctl.
func TestFeedWaitsForEngine(t *testing.T) {
	addr := free(t)
	f, fleet := startFeed(t, Options{})
	f.Apply([]pod.Spec{{Name: "p", Address: addr}})
	p := fleet.Pods.Snapshot().ByName("p")
	board := func() string { return fmt.Sprintf("%+v", fleet.Telemetry.Get(p.ID)) }
	eventually(t, "nothing answers", func() bool { return fleet.Telemetry.Get(p.ID).Mute }, board)
	v := fleet.View()
	if e := fleet.Telemetry.Get(p.ID); e.Err != "connection refused" || !v.Silent(p, &e, Now(), telemetry.Limits{FreshNs: 1e9, KnownNs: 5e9}) {
		t.Errorf("a pod that was never there: %+v", e)
	}
	model := "m"
	e := &engine{}
	e.model.Store(&model)
	pub := publisher(t, "127.0.0.1:0", zmtp.Options{})
	e.tells(pub.Addr(), "")
	e.Server = httptest.NewUnstartedServer(e)
	e.Listener.Close()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	e.Listener = ln
	e.Start()
	defer e.Close()
	subscribed(t, pub)
	pub.Send("", 0, stored(1))
	waitHeld(t, fleet, p.Members[0], prompt("m", 1), 2)
	eventually(t, "it answers", func() bool { e := fleet.Telemetry.Get(p.ID); return !e.Mute && e.Sample != nil }, board)
}

func TestFeedRestartByMetrics(t *testing.T) {
	e := newEngine(t, "m")
	pub := publisher(t, free(t), zmtp.Options{})
	e.tells(pub.Addr(), "")
	f, fleet := startFeed(t, Options{})
	f.Apply([]pod.Spec{{Name: "p", Address: e.address()}})
	m := fleet.Pods.Snapshot().ByName("p").Members[0]
	subscribed(t, pub)
	pub.Send("", 0, stored(1))
	waitHeld(t, fleet, m, prompt("m", 1), 2)
	eventually(t, "identity known", func() bool { return fleet.Telemetry.Get(0).Sample != nil }, nil)

	// Not a word from the publisher: the start time alone tells. And the engine
	// came back with another model.
	pub.Close()
	pub = publisher(t, pub.Addr(), zmtp.Options{})
	subscribed(t, pub)
	other := "n"
	e.model.Store(&other)
	e.started.Store(2000)
	waitHeld(t, fleet, m, prompt("m", 1), 0)
	p := waitPod(t, fleet, "p", func(p *pod.Pod) bool { return p.Spec.Model == "n" })
	// The publisher may still count the subscription of the old pod.
	for i := uint64(0); held(fleet, p.Members[0], prompt("n", 1)) != 2 && i < 10_000; i++ {
		pub.Send("", i, stored(1))
		time.Sleep(time.Millisecond)
	}
	waitHeld(t, fleet, p.Members[0], prompt("n", 1), 2)
}

// resolver answers from a table that tests change.
type resolver struct {
	mu    sync.Mutex
	addrs map[string]string
}

func (r *resolver) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a, ok := r.addrs[host]; ok {
		return []netip.Addr{netip.MustParseAddr(a)}, nil
	}
	return nil, errors.New("no such host")
}

func (r *resolver) set(host, addr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addrs[host] = addr
}

// A name that moves is another pod.
func TestFeedNameMoves(t *testing.T) {
	pub := publisher(t, "127.0.0.1:0", zmtp.Options{})
	names := &resolver{addrs: map[string]string{}}
	f, fleet := startFeed(t, Options{Resolver: names, ResolveEvery: 10 * time.Millisecond})
	f.Apply([]pod.Spec{{Name: "p", Address: "engine-0.test:1", Model: "m", Engine: pod.EngineVLLM, Events: []string{"tcp://" + pub.Addr()}}})
	first := fleet.Pods.Snapshot().ByName("p")
	if first == nil || first.Target != "" {
		t.Fatalf("%+v", first)
	}
	names.set("engine-0.test", "127.0.0.9")
	waitPod(t, fleet, "p", func(p *pod.Pod) bool { return p.Target == "127.0.0.9:1" && p.Epoch == first.Epoch })
	subscribed(t, pub)
	pub.Send("", 0, stored(1))
	waitHeld(t, fleet, first.Members[0], prompt("m", 1), 2)
	names.set("engine-0.test", "127.0.0.10")
	p := waitPod(t, fleet, "p", func(p *pod.Pod) bool { return p.Target == "127.0.0.10:1" && p.Epoch != first.Epoch })
	if held(fleet, p.Members[0], prompt("m", 1)) != 0 {
		t.Error("the blocks of the old address are left")
	}
}

// The ranks that answer work, the others are shown as down.
func TestFeedRanks(t *testing.T) {
	t.Run("ZF-38 one of four answers", func(t *testing.T) {
		t.Parallel()
		pub := publisher(t, "127.0.0.1:0", zmtp.Options{})
		f, fleet := startFeed(t, Options{})
		f.Apply([]pod.Spec{{Name: "p", Address: "127.0.0.1:1", Model: "m", Engine: pod.EngineVLLM, Ranks: 4,
			Events: []string{"tcp://" + pub.Addr(), "tcp://" + free(t), "tcp://" + free(t), "tcp://" + free(t)}}})
		p := fleet.Pods.Snapshot().ByName("p")
		subscribed(t, pub)
		pub.Send("", 0, stored(1))
		waitHeld(t, fleet, p.Members[0], prompt("m", 1), 2)
		for _, m := range p.Members[1:] {
			eventually(t, "shown as down", func() bool {
				s := fleet.Sync.Get(m)
				return s.State == view.Down && s.Why == reason.Unreachable && strings.Contains(s.Detail, "refused")
			}, func() string { return fmt.Sprintf("%+v", fleet.Sync.Get(m)) })
		}
		if s := fleet.Sync.Get(p.Members[0]); s.State != view.Live || !s.Connected || s.LastEvent == 0 {
			t.Errorf("%+v", s)
		}
	})
}

// Role, adapters and context length change in place; the address does not.
func TestFeedApplyChanges(t *testing.T) {
	pub := publisher(t, "127.0.0.1:0", zmtp.Options{})
	f, fleet := startFeed(t, Options{})
	spec := pod.Spec{Name: "p", Address: "127.0.0.1:1", Model: "m", Engine: pod.EngineVLLM, Events: []string{"tcp://" + pub.Addr()}}
	f.Apply([]pod.Spec{spec})
	first := fleet.Pods.Snapshot().ByName("p")
	subscribed(t, pub)
	pub.Send("", 0, stored(1))
	waitHeld(t, fleet, first.Members[0], prompt("m", 1), 2)
	spec.Role, spec.Adapters = pod.RoleDecode, []string{"sql"}
	f.Apply([]pod.Spec{spec})
	p := waitPod(t, fleet, "p", func(p *pod.Pod) bool { return p.Spec.Role == pod.RoleDecode && len(p.Spec.Adapters) == 1 })
	if p.Epoch != first.Epoch || held(fleet, p.Members[0], prompt("m", 1)) != 2 {
		t.Errorf("%+v: replaced", p)
	}
	spec.Address = "127.0.0.1:2"
	f.Apply([]pod.Spec{spec})
	if p = fleet.Pods.Snapshot().ByName("p"); p.Epoch == first.Epoch || p.Target != "127.0.0.1:2" {
		t.Errorf("%+v: not replaced", p)
	}
}

// ZF-37 through the whole feed: two pods share one listener.
func TestFeedBind(t *testing.T) {
	at := free(t)
	f, fleet := startFeed(t, Options{})
	spec := func(name, addr string) pod.Spec {
		return pod.Spec{Name: name, Address: addr, Model: "m", Engine: pod.EngineVLLM, Bind: "tcp://" + at}
	}
	f.Apply([]pod.Spec{spec("a", "127.0.0.1:1"), spec("b", "127.0.0.1:2")})
	set := fleet.Pods.Snapshot()
	send := func(topic string, n uint64) {
		p := zmtp.Dial(at, zmtp.Options{})
		t.Cleanup(func() { p.Close() })
		subscribed(t, p)
		p.Send(topic, 0, stored(n))
	}
	send("kv@a@m", 1)
	send("kv@127.0.0.1:2@m", 2)
	waitHeld(t, fleet, set.ByName("a").Members[0], prompt("m", 1), 2)
	waitHeld(t, fleet, set.ByName("b").Members[0], prompt("m", 2), 2)
	send("kv@c@m", 3)
	eventually(t, "refused", func() bool { return f.Refused()[refusedUnknown] == 1 }, func() string { return fmt.Sprint(f.Refused()) })
	f.Apply([]pod.Spec{spec("b", "127.0.0.1:2")})
	send("kv@b@m", 4) // the listener is still there
	waitHeld(t, fleet, set.ByName("b").Members[0], prompt("m", 4), 2)
	f.Apply(nil)
	ln, err := net.Listen("tcp", at) // and now free
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
}

// O-127: pods come and go; goleak counts what is left.
func TestFeedChurn(t *testing.T) {
	pub := publisher(t, "127.0.0.1:0", zmtp.Options{})
	e := newEngine(t, "m")
	f, fleet := startFeed(t, Options{})
	spec := pod.Spec{Address: e.address(), Model: "m", Events: []string{"tcp://" + pub.Addr()}}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := uint64(0); ; i++ {
			select {
			case <-stop:
				return
			default:
				pub.Send("", i, stored(i))
			}
		}
	})
	for i := range 200 {
		var specs []pod.Spec
		for j := range i % 4 {
			s := spec
			s.Name = fmt.Sprint("p", (i+j)%5)
			specs = append(specs, s)
		}
		f.Apply(specs)
		if n := len(fleet.Pods.Snapshot().Pods); n != len(specs) {
			t.Fatalf("%d pods, want %d", n, len(specs))
		}
	}
	close(stop)
	wg.Wait()
	f.Apply(nil)
	if s := fleet.Index.Stats(); s.Blocks != 0 {
		fleet.Index.Sweep(Now() + int64(time.Hour))
		if s = fleet.Index.Stats(); s.Blocks != 0 {
			t.Errorf("%d blocks without an owner", s.Blocks)
		}
	}
}
