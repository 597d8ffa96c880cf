package feed

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"

	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

// BenchmarkReceive compares what guard and buffer cost over zmq4's bare Conn,
// per three-frame message over loopback TCP.
func BenchmarkReceive(b *testing.B) {
	for _, size := range []int{200, 2000, 60_000} {
		msg := zmtp.AppendMessage(nil, make([]byte, 21), make([]byte, 8), make([]byte, size))
		for _, c := range []struct {
			name string
			open func(nc net.Conn) (interface{ recv() error }, error)
		}{{"bare", openBare}, {"guard", openGuarded}} {
			b.Run(c.name+"/"+fmt.Sprint(size), func(b *testing.B) {
				ln, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					b.Fatal(err)
				}
				defer ln.Close()
				go func() {
					nc, err := ln.Accept()
					if err != nil {
						return
					}
					defer nc.Close()
					nc.Write(append(zmtp.Greeting(1), zmtp.Ready("PUB")...))
					chunk := bytes.Repeat(msg, max(1, 256<<10/len(msg)))
					for {
						if _, err := nc.Write(chunk); err != nil {
							return
						}
					}
				}()
				nc, err := net.Dial("tcp", ln.Addr().String())
				if err != nil {
					b.Fatal(err)
				}
				defer nc.Close()
				conn, err := c.open(nc)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(msg)))
				b.ReportAllocs()
				for b.Loop() {
					if err := conn.recv(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

type bareConn struct{ c *zmq4.Conn }

func (b bareConn) recv() error { _, err := b.c.RecvMsg(); return err }

func openBare(nc net.Conn) (interface{ recv() error }, error) {
	c, err := openConn(nc, null.Security(), zmq4.Sub, false)
	return bareConn{c}, err
}

type guarded struct{ *link }

func (g guarded) recv() error { _, err := g.Recv(); return err }

func openGuarded(nc net.Conn) (interface{ recv() error }, error) {
	l, err := dialer{}.open(context.Background(), nc, zmq4.Sub, false)
	return guarded{l}, err
}
