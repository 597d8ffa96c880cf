package serve

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// frozenConn is a connection whose end stops at some moment as a stopped process
// does: nothing is read or written any more, and nothing is closed.
type frozenConn struct {
	net.Conn
	frozen *atomic.Bool
	closed chan struct{}
}

func (c frozenConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.frozen.Load() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (c frozenConn) Write(p []byte) (int, error) {
	if c.frozen.Load() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return c.Conn.Write(p)
}

// The requests of a proxy that is stopped, or cut off, end with the patience for
// its connection, not with that of TCP.
func TestSilentProxyHoldsNothing(t *testing.T) {
	defer func(a, b time.Duration) { silentAfter, answerWithin = a, b }(silentAfter, answerWithin)
	silentAfter, answerWithin = time.Second, 200*time.Millisecond
	r := newRig(t, rigOptions{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(serverOptions(1 << 20)...)
	extproc.RegisterExternalProcessorServer(s, r.processor)
	go func() { _ = s.Serve(l) }()
	defer s.Stop()
	var frozen atomic.Bool
	closed := make(chan struct{})
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
			return frozenConn{c, &frozen, closed}, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	defer close(closed)
	r.client = extproc.NewExternalProcessorClient(conn)
	for _, body := range [][]byte{completion("m", ids(1, 64)), completion("m", ids(2, 64))} {
		c := r.talk()
		c.send(reqHeaders(fullDuplex, false, completionsPath), reqBody(body, true))
		destination(t, c.recv())
		if len(body)%2 == 0 { // one before and one after its response headers
			c.send(respHeaders(false, ":status", "200", "content-type", "text/event-stream"))
		}
	}
	if r.inFlight() != 2 {
		t.Fatalf("%d in flight", r.inFlight())
	}
	frozen.Store(true)
	waitFor(t, "nothing is in flight", func() bool { return r.inFlight() == 0 })
}
