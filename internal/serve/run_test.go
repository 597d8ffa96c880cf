package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/sim"
	"github.com/eppctl/eppctl/internal/testdata"
)

// process is Run over simulated engines: real sockets for all of it.
type process struct {
	t      *testing.T
	fleet  *sim.Fleet
	at     Addresses
	config string
	eds    string
	log    *testdata.Buffer
	level  slog.LevelVar
	stop   context.CancelFunc
	ended  chan error
	conn   *grpc.ClientConn
	client extproc.ExternalProcessorClient
	health healthpb.HealthClient
	reload chan struct{}
}

// startProcess waits until the fleet is known; launch does not.
func startProcess(t *testing.T, engines int, edit func(string) string) *process {
	t.Helper()
	p := launch(t, engines, edit)
	waitFor(t, "readiness", func() bool { return p.check(healthReadiness) == healthpb.HealthCheckResponse_SERVING })
	// Readiness does not wait for what is slow to answer, as engines on a loaded machine are.
	waitFor(t, "the fleet", func() bool {
		for _, x := range p.state().Pods {
			if len(x.Ranks) == 0 || x.Ranks[0].Sync != "live" || x.Telemetry.State != "fresh" {
				return false
			}
		}
		return true
	})
	return p
}

func launch(t *testing.T, engines int, edit func(string) string) *process {
	t.Helper()
	fleet, err := sim.StartFleet(sim.FleetOptions{Engines: engines, Engine: sim.EngineOptions{Speedup: 4}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := &process{
		t: t, fleet: fleet, config: filepath.Join(dir, "eppctl.yaml"), eds: filepath.Join(dir, "hosts.json"),
		log: &testdata.Buffer{}, ended: make(chan error, 1), reload: make(chan struct{}, 1),
	}
	const any = "127.0.0.1:0"
	// Past the usual limits, as on a busy machine, a request is routed without its prefix.
	const unhurried = "limits: {pick_deadline: 20s, render_timeout: 10s, tokenize_timeout: 10s}\n"
	p.write(edit(fleet.Config(sim.Listen{ExtProc: any, Health: any, Admin: any, Metrics: any, EndpointsFile: p.eds}) + unhurried))
	c, err := LoadConfig(p.config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	ready := make(chan Addresses, 1)
	go func() {
		p.ended <- Run(ctx, c, Options{Log: slog.New(slog.NewTextHandler(p.log, nil)), Level: &p.level, Reload: p.reload, Ready: func(a Addresses) { ready <- a }})
	}()
	t.Cleanup(p.close)
	select {
	case p.at = <-ready:
	case err := <-p.ended:
		t.Fatalf("run: %v", err)
	}
	if p.conn, err = grpc.NewClient(p.at.ExtProc, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		t.Fatal(err)
	}
	p.client, p.health = extproc.NewExternalProcessorClient(p.conn), healthpb.NewHealthClient(p.conn)
	return p
}

func (p *process) write(text string) {
	p.t.Helper()
	if err := os.WriteFile(p.config, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) close() {
	p.stop()
	if p.conn != nil {
		_ = p.conn.Close()
	}
	if err := <-p.ended; err != nil {
		p.t.Errorf("run: %v", err)
	}
	if err := p.fleet.Close(); err != nil {
		p.t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
}

func (p *process) check(name string) healthpb.HealthCheckResponse_ServingStatus {
	r, err := p.health.Check(context.Background(), &healthpb.HealthCheckRequest{Service: name})
	if err != nil {
		return healthpb.HealthCheckResponse_SERVICE_UNKNOWN
	}
	return r.GetStatus()
}

// call does an HTTP request and returns status and body.
func (p *process) call(method, url string, body []byte, kv ...string) (int, []byte) {
	p.t.Helper()
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	for i := 0; i < len(kv); i += 2 {
		req.Header.Set(kv[i], kv[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, b
}

func (p *process) admin(method, path string, body []byte, kv ...string) (int, []byte) {
	p.t.Helper()
	return p.call(method, "http://"+p.at.Admin+path, body, kv...)
}

func (p *process) state() view.Snapshot {
	p.t.Helper()
	code, b := p.admin("GET", "/v1/state", nil)
	var s view.Snapshot
	if err := json.Unmarshal(b, &s); err != nil || code != 200 {
		p.t.Fatalf("%d %v %s", code, err, b)
	}
	return s
}

func (p *process) talk() *talk {
	p.t.Helper()
	return (&rig{t: p.t, client: p.client}).talk()
}

func same(s string) string { return s }

// TestFollowsTheCache is the product in one test: an engine computes a prompt,
// its events reach the index, and the next request of that prompt goes there.
func TestFollowsTheCache(t *testing.T) {
	p := startProcess(t, 3, same)
	for i, e := range p.fleet.Engines {
		text := fmt.Sprintf("conversation %d: ", i) + strings.Repeat(fmt.Sprintf("word%d ", i), 1600)
		body := []byte(fmt.Sprintf(`{"model":"sim","prompt":%q,"max_tokens":1}`, text))
		if code, b := p.call("POST", e.URL()+completionsPath, body, "content-type", "application/json"); code != 200 {
			t.Fatalf("engine: %d %s", code, b)
		}
		waitFor(t, "events of "+e.Name(), func() bool {
			for _, x := range p.state().Pods {
				if x.Name == e.Name() {
					return x.Ranks[0].GPU > 0
				}
			}
			return false
		})
		// Before the pick is placed, explain sees what the pick will see.
		id := fmt.Sprintf("follow-%d", i)
		code, b := p.admin("POST", "/v1/explain?path="+completionsPath, body, "content-type", "application/json", requestIDHeader, id)
		var x pick.Explanation
		if err := json.Unmarshal(b, &x); err != nil || code != 200 {
			t.Fatalf("explain: %d %v %s", code, err, b)
		}
		c := p.talk()
		c.send(reqHeaders(fullDuplex, false, completionsPath, requestIDHeader, id), reqBody(body, true))
		got := c.rest()
		if d := destination(t, got[0]); d != e.Addr() || *x.Pick.Addr != d {
			t.Fatalf("prompt %d: picked %s, explained %s, cached at %s\n%s\n%s", i, d, *x.Pick.Addr, e.Addr(), b, p.log)
		}
		if x.Pods[0].Match.Tokens == 0 {
			t.Fatal("explained without a match")
		}
		for _, out := range []string{string(b), p.log.String()} {
			if strings.Contains(out, "word0") {
				t.Fatal("prompt text leaks")
			}
		}
	}
	if !strings.Contains(p.log.String(), "3 of 3 pods have event sources") {
		t.Fatalf("log:\n%s", p.log)
	}
}

func TestHealth(t *testing.T) {
	p := startProcess(t, 1, same)
	const serving, not = healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_NOT_SERVING
	names := []string{healthOverall, healthLiveness, healthReadiness, healthExtProc}
	own, err := grpc.NewClient(p.at.Health, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	t.Run("EP-37 EU-07", func(t *testing.T) {
		for _, client := range []healthpb.HealthClient{p.health, healthpb.NewHealthClient(own)} {
			for _, name := range names {
				r, err := client.Check(context.Background(), &healthpb.HealthCheckRequest{Service: name})
				if err != nil || r.GetStatus() != serving {
					t.Fatalf("%q: %v %v", name, r.GetStatus(), err)
				}
			}
			if _, err := client.Check(context.Background(), &healthpb.HealthCheckRequest{Service: "nobody"}); status.Code(err) != codes.NotFound {
				t.Fatalf("unknown name: %v", err)
			}
		}
	})
	watch := func(name string) healthpb.Health_WatchClient {
		w, err := healthpb.NewHealthClient(own).Watch(context.Background(), &healthpb.HealthCheckRequest{Service: name})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	next := func(w healthpb.Health_WatchClient) healthpb.HealthCheckResponse_ServingStatus {
		r, err := w.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return r.GetStatus()
	}
	unknown, ready, live := watch("nobody"), watch(healthReadiness), watch(healthLiveness)
	if s := next(unknown); s != healthpb.HealthCheckResponse_SERVICE_UNKNOWN {
		t.Fatalf("unknown name: %v", s)
	}
	if a, b := next(ready), next(live); a != serving || b != serving {
		t.Fatalf("readiness %v, liveness %v", a, b)
	}
	c := p.talk() // keeps the drain going
	c.send(reqHeaders(fullDuplex, true, "/v1/models"))
	c.recv()
	p.stop()
	t.Run("EP-37 drain", func(t *testing.T) {
		if s := next(ready); s != not {
			t.Fatalf("readiness %v", s)
		}
		for name, want := range map[string]healthpb.HealthCheckResponse_ServingStatus{healthOverall: not, healthExtProc: not, healthReadiness: not, healthLiveness: serving} {
			if s := p.check(name); s != want {
				t.Fatalf("%q is %v in the drain", name, s)
			}
		}
	})
}

func TestDrain(t *testing.T) {
	t.Run("EP-38 UX-20", func(t *testing.T) {
		p := startProcess(t, 1, same)
		response, idle := p.talk(), p.talk()
		response.send(reqHeaders(fullDuplex, true, "/v1/models"))
		destination(t, response.recv())
		response.send(sse())
		response.recv()
		picking := p.talk()
		picking.send(reqHeaders(fullDuplex, false, completionsPath), reqBody([]byte(`{"model":`), false))
		p.stop()
		waitFor(t, "NOT_SERVING", func() bool { return p.check(healthReadiness) == healthpb.HealthCheckResponse_NOT_SERVING })
		late := p.talk()
		late.send(reqHeaders(fullDuplex, true, "/v1/models"))
		destination(t, late.recv())
		picking.send(reqBody([]byte(`"sim","prompt":[1,2,3]}`), true))
		destination(t, picking.recv())
		wantKinds(t, []*extproc.ProcessingResponse{picking.recv()}, "body+eos")
		for name, c := range map[string]*talk{"response": response, "idle": idle, "picking": picking, "late": late} {
			if m, err := c.st.Recv(); err != io.EOF { // io.EOF at the client = status OK
				t.Fatalf("%s ends with %v %v, want OK", name, m, err)
			}
		}
		if err := <-p.ended; err != nil {
			t.Fatal(err)
		}
		p.ended <- nil // for close
	})
}

func TestReload(t *testing.T) {
	p := startProcess(t, 2, func(s string) string { return strings.Replace(s, "sim-1", "zwei", 1) })
	pods := func() string {
		var names []string
		for _, x := range p.state().Pods {
			names = append(names, x.Name)
		}
		return strings.Join(names, " ")
	}
	text, err := os.ReadFile(p.config)
	if err != nil {
		t.Fatal(err)
	}
	if got := pods(); got != "sim-0 zwei" {
		t.Fatal(got)
	}
	t.Run("EU-11 change", func(t *testing.T) {
		p.write(strings.Replace(string(text), "zwei", "two", 1))
		p.reload <- struct{}{}
		waitFor(t, "the new pod", func() bool { return pods() == "sim-0 two" })
	})
	t.Run("level of the log", func(t *testing.T) {
		for _, want := range []slog.Level{slog.LevelDebug, slog.LevelError} {
			p.write(string(text) + "log_level: " + strings.ToLower(want.String()) + "\n")
			p.reload <- struct{}{}
			waitFor(t, want.String(), func() bool { return p.level.Level() == want })
		}
		p.write(strings.Replace(string(text), "zwei", "two", 1))
		p.reload <- struct{}{}
		waitFor(t, "the default again", func() bool { return p.level.Level() == slog.LevelInfo && pods() == "sim-0 two" })
	})
	t.Run("EP-42 UX-21 broken", func(t *testing.T) {
		p.write("pods: [{nmae: x}]\n")
		p.reload <- struct{}{}
		waitFor(t, "an error line", func() bool { return strings.Contains(p.log.String(), "nmae") })
		if got := pods(); got != "sim-0 two" {
			t.Fatal(got)
		}
	})
}

func TestHostsFile(t *testing.T) {
	p := startProcess(t, 2, same)
	hosts := func() []string {
		b, err := os.ReadFile(p.eds)
		if err != nil {
			return nil
		}
		var d discoveryv3.DiscoveryResponse
		if err := protojson.Unmarshal(b, &d); err != nil {
			t.Fatalf("%v in %s", err, b)
		}
		var cla endpointv3.ClusterLoadAssignment
		if err := d.GetResources()[0].UnmarshalTo(&cla); err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, e := range cla.GetEndpoints()[0].GetLbEndpoints() {
			a := e.GetEndpoint().GetAddress().GetSocketAddress()
			list = append(list, fmt.Sprintf("%s:%d", a.GetAddress(), a.GetPortValue()))
		}
		return list
	}
	want := fmt.Sprint([]string{p.fleet.Engines[0].Addr(), p.fleet.Engines[1].Addr()})
	waitFor(t, "both hosts", func() bool { return fmt.Sprint(hosts()) == want })
	before, err := os.Stat(p.eds)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(p.config)
	p.write(strings.Join(strings.Split(string(text), "\n"), "\n") + "\n# no change\n")
	p.reload <- struct{}{}
	line := fmt.Sprintf("- {name: %q, address: %q}\n", "sim-1", p.fleet.Engines[1].Addr())
	if !strings.Contains(string(text), line) {
		t.Fatalf("config:\n%s", text)
	}
	if now, _ := os.Stat(p.eds); !os.SameFile(before, now) {
		t.Fatal("rewritten without a change")
	}
	p.write(strings.Replace(string(text), line, "", 1))
	p.reload <- struct{}{}
	waitFor(t, "one host", func() bool { return len(hosts()) == 1 })
	// Envoy's watch is on renames, and a file written in place can be read half.
	if now, err := os.Stat(p.eds); err != nil || os.SameFile(before, now) {
		t.Fatalf("written in place, not replaced (%v)", err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(p.eds), ".hosts*"))
	if err != nil || len(left) > 0 {
		t.Fatalf("temporary files are left: %v %v", left, err)
	}
}

func TestMetricsListener(t *testing.T) {
	p := startProcess(t, 1, same)
	code, b := p.call("GET", "http://"+p.at.Metrics+"/metrics", nil)
	if code != 200 {
		t.Fatalf("%d", code)
	}
	for _, want := range []string{"eppctl_pod_in_flight{pod=\"sim-0\"} 0", "eppctl_event_batches_total{", "eppctl_scrapes_total{result=\"good\"}", "go_goroutines", "process_cpu_seconds_total"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s", want)
		}
	}
}

func TestListenFailsAtStart(t *testing.T) {
	c, err := LoadConfig("", Override{Set: func(c *Config) { c.Listen = Listen{ExtProc: "127.0.0.1:0", Admin: "0.0.0.0:0"} }})
	if err == nil { // the file's own check stands before ours
		t.Fatal("accepted")
	}
	t.Run("ADM-01", func(t *testing.T) {
		c, _ = LoadConfig("")
		c.Listen = Listen{ExtProc: "127.0.0.1:0", Admin: "0.0.0.0:0"}
		if err := Run(context.Background(), c, Options{}); err == nil || !strings.Contains(err.Error(), "loopback") {
			t.Fatalf("error %v", err)
		}
	})
	t.Run("EU-08 options", func(t *testing.T) {
		for _, o := range []Options{{Fallbacks: -1}, {Fallbacks: 99}, {EndSignal: "x"}, {RequestBodyMode: "x"}} {
			if err := Run(context.Background(), c, o); err == nil {
				t.Fatalf("%+v is accepted", o)
			}
		}
	})
}
