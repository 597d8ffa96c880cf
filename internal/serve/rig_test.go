package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/core/view"
)

// rig is a picker over real parts behind a real gRPC connection in memory; only
// the pods are not there, since nothing but their index entries and numbers
// matters to a pick.
type rig struct {
	t         testing.TB
	fleet     *view.Fleet
	picker    *Picker
	processor *Processor
	ends      *endSignal
	client    extproc.ExternalProcessorClient
}

// rigOptions change what newRig builds.
type rigOptions struct {
	pods     []pod.Spec
	config   func(*Config)
	options  Options
	provider tokenizer.Provider
}

const blockSize = 16

// threePods serve model m at three addresses, one of them IPv6.
func threePods() []pod.Spec {
	return []pod.Spec{
		{Name: "a", Address: "10.0.0.1:8000", Model: "m", Engine: pod.EngineVLLM, Events: []string{"tcp://10.0.0.1:5557"}},
		{Name: "b", Address: "10.0.0.2:8000", Model: "m", Engine: pod.EngineVLLM, Events: []string{"tcp://10.0.0.2:5557"}},
		{Name: "c", Address: "[fd00::3]:8000", Model: "m", Engine: pod.EngineVLLM, Events: []string{"tcp://[fd00::3]:5557"}},
	}
}

func newRig(t testing.TB, ro rigOptions) *rig {
	t.Helper()
	c, err := LoadConfig("")
	if err != nil {
		t.Fatal(err)
	}
	c.Models = Models{{Name: "m", Aliases: []string{"m-alias"}, Adapters: []string{"ad"}}}
	c.Limits.PickDeadline = 5 * time.Second
	if ro.config != nil {
		ro.config(c)
	}
	if ro.pods == nil {
		ro.pods = threePods()
	}
	o, err := ro.options.check()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, fleet: newFleet(c)}
	for _, s := range ro.pods {
		r.add(s)
	}
	chain := func(*Model) *prompt.Chain {
		x := &prompt.Chain{}
		if ro.provider != nil {
			x.Links = append(x.Links, prompt.Link{Provider: ro.provider})
		}
		return x
	}
	r.picker = newPicker(r.fleet, newRules(c, chain), 64, o, newMetrics())
	mode, _ := parseEndSignal(o.EndSignal)
	forced, _ := forcedMode(o.RequestBodyMode)
	r.ends = newEndSignal(mode, o.EndTTL, o.Log)
	r.processor = newProcessor(r.picker, forced, r.ends, o.Log)
	r.picker.streams = func() (int64, int) { return r.processor.open.Load(), r.ends.lingering() }
	r.serve(int(c.Limits.RequestBytes))
	return r
}

// add puts a pod into the fleet as the feed would.
func (r *rig) add(s pod.Spec) *pod.Pod {
	r.t.Helper()
	p, err := r.fleet.Pods.Add(s, netip.MustParseAddrPort(s.Address))
	if err != nil {
		r.t.Fatal(err)
	}
	now := time.Now().UnixNano()
	for _, m := range p.Members {
		r.fleet.Index.Register(m, index.Owner{Model: s.Model, Engine: s.Engine, BlockSize: blockSize})
		r.fleet.Sync.Put(m, view.Sync{State: view.Live, Connected: true, Since: now, LastEvent: now})
	}
	r.scrape(p, 0, 0)
	return p
}

// scrape publishes a fresh page of a pod.
func (r *rig) scrape(p *pod.Pod, running, waiting float64) {
	r.fleet.Telemetry.Put(p.ID, &telemetry.Sample{
		Engine: p.Spec.Engine, At: time.Now().UnixNano(),
		Running: telemetry.Value{V: running, Known: true, Metric: "running"},
		Waiting: telemetry.Value{V: waiting, Known: true, Metric: "waiting"},
		KVUsage: telemetry.Value{V: 0.1, Known: true, Metric: "usage"},
	})
}

func (r *rig) pod(name string) *pod.Pod {
	p := r.fleet.Pods.Snapshot().ByName(name)
	if p == nil {
		r.t.Fatalf("no pod %q", name)
	}
	return p
}

// cache makes a pod's engine announce the blocks of a prompt.
func (r *rig) cache(name string, rank int, tokens []uint32) {
	p := r.pod(name)
	e := event.Event{Kind: event.Stored, Tier: event.TierGPU, BlockSize: blockSize, LoRAID: -1}
	n := len(tokens) / blockSize
	e.Tokens = tokens[:n*blockSize]
	for i := range n {
		e.Hashes = append(e.Hashes, uint64(p.ID)<<32|uint64(rank)<<24|uint64(tokens[0])<<12|uint64(i+1))
	}
	r.fleet.Index.Apply(p.Members[rank], &e, time.Now().UnixNano())
}

func (r *rig) serve(limit int) {
	l := bufconn.Listen(1 << 20)
	s := grpc.NewServer(serverOptions(limit)...)
	extproc.RegisterExternalProcessorServer(s, r.processor)
	go func() { _ = s.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:///rig",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close(); s.Stop() })
	r.client = extproc.NewExternalProcessorClient(conn)
}

// inFlight sums the ledger.
func (r *rig) inFlight() (n int) {
	now := time.Now().UnixNano()
	for _, p := range r.fleet.Pods.Snapshot().Pods {
		n += r.fleet.Load.Load(p, now).InFlight
	}
	return n
}

// eventually bounds what may take long on a busy machine; it is never reached in a good run.
const eventually = 2 * time.Minute

// waitFor polls a condition that another goroutine brings about.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(eventually); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// Messages.

func protocol(body, response bodyMode) *extproc.ProtocolConfiguration {
	return &extproc.ProtocolConfiguration{RequestBodyMode: body, ResponseBodyMode: response}
}

var fullDuplex = protocol(modeFullDuplex, modeNone)

// reqHeaders is a POST of JSON to path with further headers in pairs.
func reqHeaders(c *extproc.ProtocolConfiguration, eos bool, path string, kv ...string) *extproc.ProcessingRequest {
	all := append([]string{":method", "POST", ":path", path, "content-type", "application/json"}, kv...)
	return &extproc.ProcessingRequest{
		Request:        &extproc.ProcessingRequest_RequestHeaders{RequestHeaders: httpHeaders(eos, all...)},
		ProtocolConfig: c,
	}
}

func httpHeaders(eos bool, kv ...string) *extproc.HttpHeaders {
	m := &corev3.HeaderMap{}
	for i := 0; i < len(kv); i += 2 {
		m.Headers = append(m.Headers, &corev3.HeaderValue{Key: kv[i], RawValue: []byte(kv[i+1])})
	}
	return &extproc.HttpHeaders{Headers: m, EndOfStream: eos}
}

func reqBody(b []byte, eos bool) *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestBody{RequestBody: &extproc.HttpBody{Body: b, EndOfStream: eos}}}
}

func reqTrailers() *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestTrailers{RequestTrailers: &extproc.HttpTrailers{}}}
}

func respHeaders(eos bool, kv ...string) *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseHeaders{ResponseHeaders: httpHeaders(eos, kv...)}}
}

func respBody(b []byte, eos bool) *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseBody{ResponseBody: &extproc.HttpBody{Body: b, EndOfStream: eos}}}
}

func respTrailers() *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseTrailers{ResponseTrailers: &extproc.HttpTrailers{}}}
}

// withMetadata adds filter metadata to a message.
func withMetadata(m *extproc.ProcessingRequest, namespace, key string, v *structpb.Value) *extproc.ProcessingRequest {
	m.MetadataContext = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
		namespace: {Fields: map[string]*structpb.Value{key: v}},
	}}
	return m
}

func withSubset(m *extproc.ProcessingRequest, hint ...string) *extproc.ProcessingRequest {
	list := &structpb.ListValue{}
	for _, h := range hint {
		list.Values = append(list.Values, structpb.NewStringValue(h))
	}
	return withMetadata(m, subsetNamespace, subsetKey, structpb.NewListValue(list))
}

// tokens makes a prompt of n ids that share nothing with another first id's.
func ids(first, n int) []uint32 {
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = uint32(first*1_000 + i)
	}
	return ids
}

// completion is a body of /v1/completions with token ids.
func completion(model string, ids []uint32) []byte {
	b, err := json.Marshal(map[string]any{"model": model, "prompt": ids, "max_tokens": 4})
	if err != nil {
		panic(err)
	}
	return b
}

const completionsPath = "/v1/completions"

// Streams.

type talk struct {
	t      testing.TB
	st     grpc.BidiStreamingClient[extproc.ProcessingRequest, extproc.ProcessingResponse]
	cancel context.CancelFunc
}

func (r *rig) talk() *talk {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), eventually)
	r.t.Cleanup(cancel)
	st, err := r.client.Process(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	return &talk{t: r.t, st: st, cancel: cancel}
}

func (c *talk) send(list ...*extproc.ProcessingRequest) {
	c.t.Helper()
	for _, m := range list {
		if err := c.st.Send(m); err != nil && err != io.EOF {
			c.t.Fatalf("send: %v", err)
		}
	}
}

func (c *talk) recv() *extproc.ProcessingResponse {
	c.t.Helper()
	m, err := c.st.Recv()
	if err != nil {
		c.t.Fatalf("recv: %v", err)
	}
	return m
}

// rest half-closes and returns what still comes.
func (c *talk) rest() (list []*extproc.ProcessingResponse) {
	c.t.Helper()
	if err := c.st.CloseSend(); err != nil {
		c.t.Fatal(err)
	}
	for {
		m, err := c.st.Recv()
		if err == io.EOF {
			return list
		}
		if err != nil {
			c.t.Fatalf("recv: %v", err)
		}
		list = append(list, m)
	}
}

// ask sends whole messages and returns all answers.
func (r *rig) ask(list ...*extproc.ProcessingRequest) []*extproc.ProcessingResponse {
	r.t.Helper()
	c := r.talk()
	c.send(list...)
	return c.rest()
}

// route sends a completion in full duplex and returns the destination.
func (r *rig) route(body []byte, kv ...string) string {
	r.t.Helper()
	return destination(r.t, r.ask(reqHeaders(fullDuplex, false, completionsPath, kv...), reqBody(body, true))[0])
}

// Answers.

// kind names an answer, for comparing sequences.
func kind(m *extproc.ProcessingResponse) string {
	switch x := m.GetResponse().(type) {
	case *extproc.ProcessingResponse_RequestHeaders:
		return "headers"
	case *extproc.ProcessingResponse_RequestBody:
		return "body" + bodyKind(x.RequestBody)
	case *extproc.ProcessingResponse_RequestTrailers:
		return "trailers"
	case *extproc.ProcessingResponse_ResponseHeaders:
		return "resp-headers"
	case *extproc.ProcessingResponse_ResponseBody:
		return "resp-body" + bodyKind(x.ResponseBody)
	case *extproc.ProcessingResponse_ResponseTrailers:
		return "resp-trailers"
	case *extproc.ProcessingResponse_ImmediateResponse:
		return fmt.Sprintf("immediate %d", x.ImmediateResponse.GetStatus().GetCode())
	}
	return "?"
}

func bodyKind(b *extproc.BodyResponse) string {
	s := b.GetResponse().GetBodyMutation().GetStreamedResponse()
	switch {
	case s == nil:
		return ""
	case s.EndOfStream:
		return "+eos"
	}
	return "+"
}

func kinds(list []*extproc.ProcessingResponse) string {
	var out []string
	for _, m := range list {
		out = append(out, kind(m))
	}
	return strings.Join(out, " ")
}

func wantKinds(t testing.TB, got []*extproc.ProcessingResponse, want string) {
	t.Helper()
	if k := kinds(got); k != want {
		t.Fatalf("answers %q, want %q", k, want)
	}
}

// bodyOf joins the streamed bytes of the request's body.
func bodyOf(list []*extproc.ProcessingResponse) (all []byte) {
	for _, m := range list {
		all = append(all, m.GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse().GetBody()...)
	}
	return all
}

// mutationOf returns the header mutation of a header or body answer.
func mutationOf(m *extproc.ProcessingResponse) *extproc.HeaderMutation {
	if x := m.GetRequestHeaders(); x != nil {
		return x.GetResponse().GetHeaderMutation()
	}
	return m.GetRequestBody().GetResponse().GetHeaderMutation()
}

func headerOf(m *extproc.ProcessingResponse, key string) (string, bool) {
	for _, h := range mutationOf(m).GetSetHeaders() {
		if h.GetHeader().GetKey() == key {
			return string(h.GetHeader().GetRawValue()), true
		}
	}
	return "", false
}

func metadataOf(m *extproc.ProcessingResponse, key string) string {
	return m.GetDynamicMetadata().GetFields()[lbNamespace].GetStructValue().GetFields()[key].GetStringValue()
}

// destination is the pick of an answer; header and metadata must agree.
func destination(t testing.TB, m *extproc.ProcessingResponse) string {
	t.Helper()
	h, ok := headerOf(m, destinationKey)
	if !ok {
		t.Fatalf("answer %s carries no pick: %v", kind(m), m)
	}
	if md := metadataOf(m, destinationKey); md != h {
		t.Fatalf("header %q and metadata %q differ", h, md)
	}
	return h
}

func quietLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

var _ = pick.Picked
