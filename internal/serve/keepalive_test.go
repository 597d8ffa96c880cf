package serve

import (
	"bytes"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// A proxy pings its connection every second or so, with and without streams on
// it. grpc-go takes the third ping within five minutes for an attack and closes
// the connection with all its streams. grpc-go's own client cannot ping more than
// every ten seconds, so the frames are written here.
func TestKeepalivePings(t *testing.T) {
	t.Run("EP-40/pings", func(t *testing.T) {
		r := newRig(t, rigOptions{})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := grpc.NewServer(serverOptions(1 << 20)...)
		extproc.RegisterExternalProcessorServer(s, r.processor)
		go func() { _ = s.Serve(l) }()
		t.Cleanup(s.Stop)
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if _, err := c.Write([]byte(http2.ClientPreface)); err != nil {
			t.Fatal(err)
		}
		f := http2.NewFramer(c, c)
		if err := f.WriteSettings(); err != nil {
			t.Fatal(err)
		}
		ping := func(n byte) {
			t.Helper()
			if err := f.WritePing(false, [8]byte{n}); err != nil {
				t.Fatal(err)
			}
			for {
				got, err := f.ReadFrame()
				if err != nil {
					t.Fatalf("ping %d: %v", n, err)
				}
				switch x := got.(type) {
				case *http2.GoAwayFrame:
					t.Fatalf("ping %d: GOAWAY %v %s", n, x.ErrCode, x.DebugData())
				case *http2.PingFrame:
					if x.IsAck() && x.Data[0] == n {
						return
					}
				}
			}
		}
		// Faster than any proxy, so that the test need not last.
		for i := range byte(6) {
			ping(i)
			time.Sleep(150 * time.Millisecond)
		}
		openStream(t, f)
		for i := range byte(6) {
			ping(100 + i)
			time.Sleep(150 * time.Millisecond)
		}
	})
}

// openStream opens an ext_proc stream and leaves it open.
func openStream(t *testing.T, f *http2.Framer) {
	t.Helper()
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, h := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", "/" + healthExtProc + "/Process"}, {":authority", "epp"},
		{"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		if err := e.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
}
