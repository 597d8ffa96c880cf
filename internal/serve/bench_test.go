package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// The benchmarks below measure the CPU of the server alone: it runs in a process
// of its own, which tells its resource usage when asked, and the client's share
// stays out. The floor is a bare server in another process that answers the same
// messages without reading them, in the same run.

const benchServerEnv = "EPPCTL_BENCH_SERVER"

const benchPods = 16

// benchServer is the child: it prints its address, and for every line on stdin
// the CPU time it has used, in ns.
func benchServer(kind string) {
	var srv extproc.ExternalProcessorServer = floor{}
	options := []grpc.ServerOption{grpc.MaxRecvMsgSize(64 << 20)} // else as gRPC comes
	if kind == "eppctl" {
		options = serverOptions(32 << 20)
		r := newRig(benchTB{}, rigOptions{pods: benchFleet()})
		r.cache("p0", 0, ids(1000, benchTokens("420kB")))
		srv = r.processor
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	s := grpc.NewServer(options...)
	extproc.RegisterExternalProcessorServer(s, srv)
	go func() { _ = s.Serve(l) }()
	fmt.Println(l.Addr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			panic(err)
		}
		fmt.Println(u.Utime.Nano() + u.Stime.Nano())
	}
}

// benchTB lets the rig be built outside of a test.
type benchTB struct{ testing.TB }

func (benchTB) Helper()        {}
func (benchTB) Cleanup(func()) {}
func (benchTB) Fatal(a ...any) { panic(fmt.Sprint(a...)) }

func benchFleet() (list []pod.Spec) {
	for i := range benchPods {
		list = append(list, pod.Spec{Name: fmt.Sprintf("p%d", i), Address: fmt.Sprintf("10.0.0.%d:8000", i+1), Model: "m", Engine: pod.EngineVLLM})
	}
	return list
}

// benchTokens is the number of token ids that fill a body of a size.
func benchTokens(size string) int {
	if size == "4kB" {
		return 4_000 / 8
	}
	return 420_000 / 8 // seven digits and a comma
}

// floor answers like a picker that knows its answer: headers, then the bytes
// back where the proxy keeps none.
type floor struct {
	extproc.UnimplementedExternalProcessorServer
}

func (floor) Process(st extproc.ExternalProcessor_ProcessServer) error {
	out := &answer{Destination: "10.0.0.1:8000", PickID: "0"}
	duplex, sent := false, false
	for {
		m, err := st.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		send := func(r *extproc.ProcessingResponse) { _ = st.Send(r) }
		switch {
		case m.GetRequestHeaders() != nil:
			if duplex = m.GetProtocolConfig().GetRequestBodyMode() == modeFullDuplex; !duplex {
				send(requestHeadersAnswer(nil))
			}
		case m.GetRequestBody() != nil && duplex:
			if !sent {
				sent = true
				send(requestHeadersAnswer(out))
			}
			chunks(m.GetRequestBody().GetBody(), m.GetRequestBody().GetEndOfStream(), func(b []byte, eos bool) { send(streamedRequest(b, eos)) })
		case m.GetRequestBody() != nil:
			send(requestBodyAnswer(out))
		case m.GetResponseHeaders() != nil:
			send(responseHeadersAnswer(false))
		}
	}
}

// benchProcess is a running child.
type benchProcess struct {
	in     io.WriteCloser
	out    *bufio.Scanner
	client extproc.ExternalProcessorClient
}

func startBench(b *testing.B, kind string) *benchProcess {
	b.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), benchServerEnv+"="+kind)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	p := &benchProcess{in: in, out: bufio.NewScanner(out)}
	if !p.out.Scan() {
		b.Fatal("no address from the server")
	}
	conn, err := grpc.NewClient(p.out.Text(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		b.Fatal(err)
	}
	p.client = extproc.NewExternalProcessorClient(conn)
	b.Cleanup(func() {
		_ = conn.Close()
		_ = in.Close() // ends the child
		_ = cmd.Wait()
	})
	return p
}

// cpu is what the child has used so far, in ns.
func (p *benchProcess) cpu(b *testing.B) int64 {
	b.Helper()
	if _, err := io.WriteString(p.in, "\n"); err != nil || !p.out.Scan() {
		b.Fatalf("the server is gone: %v", err)
	}
	n, err := strconv.ParseInt(p.out.Text(), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// benchHeaders are those of an ordinary client behind Envoy.
var benchHeaders = []string{
	":authority", "example.org", ":scheme", "http", "user-agent", "openai-python/1.50", "accept", "application/json",
	"accept-encoding", "gzip, deflate", "authorization", "Bearer sk-0123456789abcdef0123456789abcdef",
	"x-forwarded-proto", "http", requestIDHeader, "0f8fad5b-d9cb-469f-a165-70867728950e", "x-stainless-lang", "python",
}

// request is one HTTP request as Envoy tells of it, up to the end of its
// response. Bodies come in pieces of 64 KiB where they are streamed.
func (p *benchProcess) request(b *testing.B, duplex bool, body []byte) {
	st, err := p.client.Process(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	answers := func(last func(*extproc.ProcessingResponse) bool) {
		for {
			m, err := st.Recv()
			if err != nil {
				b.Fatal(err)
			}
			if last(m) {
				return
			}
		}
	}
	one := func(*extproc.ProcessingResponse) bool { return true }
	mode := modeBuffered
	if duplex {
		mode = modeFullDuplex
	}
	send := func(m *extproc.ProcessingRequest) {
		if err := st.Send(m); err != nil {
			b.Fatal(err)
		}
	}
	send(reqHeaders(protocol(mode, modeNone), false, completionsPath, benchHeaders...))
	if duplex {
		for rest := body; len(rest) > 0; {
			n := min(len(rest), 64<<10)
			send(reqBody(rest[:n], false))
			rest = rest[n:]
		}
		send(reqBody(nil, true))
		answers(func(m *extproc.ProcessingResponse) bool { return strings.HasSuffix(kind(m), "+eos") })
	} else {
		answers(one)
		send(reqBody(body, true))
		answers(one)
	}
	send(respHeaders(false, ":status", "200", "content-type", "text/event-stream"))
	answers(one)
	if err := st.CloseSend(); err != nil {
		b.Fatal(err)
	}
	if _, err := st.Recv(); err != io.EOF {
		b.Fatal(err)
	}
}

// BenchmarkExtProc is the whole path: receive, parse, match, decide, place,
// answer, end. The prompt is token ids that one of 16 pods holds. Requests to the
// picker and to the floor alternate, so that a busy machine bears on both.
func BenchmarkExtProc(b *testing.B) {
	picker, bare := startBench(b, "eppctl"), startBench(b, "floor")
	for _, size := range []string{"4kB", "420kB"} {
		body := completion("m", ids(1000, benchTokens(size)))
		b.Run(size, func(b *testing.B) { compare(b, picker, bare, false, body) })
		b.Run(size+"-duplex", func(b *testing.B) { compare(b, picker, bare, true, body) })
	}
}

func compare(b *testing.B, picker, bare *benchProcess, duplex bool, body []byte) {
	for range 20 { // warm
		picker.request(b, duplex, body)
		bare.request(b, duplex, body)
	}
	cpu, floor := picker.cpu(b), bare.cpu(b)
	for b.Loop() {
		picker.request(b, duplex, body)
		bare.request(b, duplex, body)
	}
	cpu, floor = picker.cpu(b)-cpu, bare.cpu(b)-floor
	b.ReportMetric(0, "ns/op") // of both and the client: nobody's number
	b.ReportMetric(float64(cpu)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(floor)/float64(b.N), "floor-cpu-ns/op")
	b.ReportMetric(float64(cpu)/float64(max(floor, 1)), "x-floor")
}
