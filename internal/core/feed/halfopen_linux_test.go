package feed

import (
	"context"
	"io"
	"log/slog"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

// A peer that vanishes without a word is noticed by TCP's keepalive alone when it
// speaks ZMTP 3.0: it is never pinged, and nothing is written to it. Only a
// network that drops packets shows that, so the socket is asked whether the
// kernel has been told: a probe after 10 s of silence, given up after 3 in
// intervals of 5 s.
func TestHalfOpenLegacyPeer(t *testing.T) {
	check := func(t *testing.T, l *link) {
		t.Helper()
		raw, err := l.guard.Conn.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		if _, minor := l.Peer(); minor != 0 || l.guard.canPing {
			t.Errorf("ZMTP 3.%d, pinged %v", minor, l.guard.canPing)
		}
		for _, o := range []struct {
			name       string
			level, opt int
			want       int
		}{
			{"SO_KEEPALIVE", syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
			{"TCP_KEEPIDLE", syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 10},
			{"TCP_KEEPINTVL", syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, 5},
			{"TCP_KEEPCNT", syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, 3},
		} {
			var got int
			var soErr error
			err := raw.Control(func(fd uintptr) { got, soErr = syscall.GetsockoptInt(int(fd), o.level, o.opt) })
			if err != nil || soErr != nil || got != o.want {
				t.Errorf("%s is %d, want %d; %v, %v", o.name, got, o.want, err, soErr)
			}
		}
	}
	t.Run("dialled", func(t *testing.T) {
		at := publisherPeer(t, 0, func(p *zmtp.Conn) { io.Copy(io.Discard, p) })
		check(t, subscribeTo(t, t.Context(), at, patient))
	})
	t.Run("dialled for a replay", func(t *testing.T) {
		at := peer(t, func(nc net.Conn) {
			if _, err := zmtp.Handshake(nc, "ROUTER", 0); err == nil {
				io.Copy(io.Discard, nc)
			}
		})
		l, err := dialer{lim: patient}.dial(t.Context(), at, zmq4.Dealer)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		check(t, l)
	})
	t.Run("accepted", func(t *testing.T) {
		g, err := newGate("tcp://127.0.0.1:0", dialer{lim: patient}, slog.New(slog.DiscardHandler), func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		came := make(chan *accepted, 1)
		g.adopt = func(src FrameSource, _ string) { came <- src.(*accepted) }
		g.serve()
		defer g.close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var nd net.Dialer
		nc, err := nd.DialContext(ctx, "tcp", g.ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if _, err := zmtp.Handshake(nc, "PUB", 0); err != nil {
			t.Fatal(err)
		}
		select {
		case src := <-came:
			defer src.Close()
			check(t, src.link)
		case <-ctx.Done():
			t.Fatal("never accepted")
		}
	})
}
