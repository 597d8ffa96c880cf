package serve

import (
	"net"
	"sync/atomic"
	"testing"
)

// TestBoundedListener: with httpConns connections open the next one waits until one
// of them is closed.
func TestBoundedListener(t *testing.T) {
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := bounded(plain)
	defer l.Close()
	dial := func() {
		c, err := net.Dial("tcp", plain.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	var open []net.Conn
	for range httpConns {
		dial()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		open = append(open, c)
	}
	dial()
	var room atomic.Bool
	early := make(chan bool, 1)
	go func() {
		c, err := l.Accept()
		early <- err != nil || !room.Load()
		if err == nil {
			_ = c.Close()
		}
	}()
	for range 100 { // handed out at once, it would have come by now
		if c, err := net.Dial("tcp", plain.Addr().String()); err == nil {
			_ = c.Close()
		}
	}
	room.Store(true)
	_ = open[0].Close()
	if <-early {
		t.Error("one more than the bound was accepted")
	}
	if bounded(nil) != nil {
		t.Error("no listener became one")
	}
}
