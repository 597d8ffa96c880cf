package feed

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// What can be dialled, and what can be listened at.
func TestEndpoints(t *testing.T) {
	for _, c := range []struct{ text, dial, listen string }{
		{"10.0.0.7:5557", "tcp://10.0.0.7:5557", "tcp://10.0.0.7:5557"},
		{"tcp://[fd00::1]:5557", "tcp://[fd00::1]:5557", "tcp://[fd00::1]:5557"},
		{"pod-0.svc:5557", "tcp://pod-0.svc:5557", ""},
		{":5557", "", "tcp://*:5557"}, {"tcp://*:5557", "", "tcp://*:5557"}, {"0.0.0.0:5557", "", "tcp://0.0.0.0:5557"}, {"[::]:5557", "", "tcp://[::]:5557"},
		{"127.0.0.1:0", "", "tcp://127.0.0.1:0"}, {"localhost:99999", "", ""}, {"localhost", "", ""}, {"ipc:///tmp/x", "", ""},
	} {
		if got, err := Endpoint(c.text); got != c.dial || (err == nil) != (c.dial != "") {
			t.Errorf("Endpoint(%q) = %q, %v", c.text, got, err)
		}
		if got, err := ListenEndpoint(c.text); got != c.listen || (err == nil) != (c.listen != "") {
			t.Errorf("ListenEndpoint(%q) = %q, %v", c.text, got, err)
		}
	}
}

// The configuration's spelling of every address is one that can be listened at.
func TestListensEverywhere(t *testing.T) {
	g, err := openGate("tcp://*:0", dialer{}, slog.New(slog.DiscardHandler), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	nc, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", g.ln.Addr().(*net.TCPAddr).Port))
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
}

// One failure reads the same however often it happens, and says nothing twice.
func TestLinkErrorsInWords(t *testing.T) {
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 49622}
	for want, e := range map[string]*linkError{
		"handshake: no answer in time":        {FaultHandshake, &net.OpError{Op: "read", Net: "tcp", Source: local, Err: os.ErrDeadlineExceeded}},
		"dial: connection refused":            {FaultDial, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}},
		"dial: no such host: no.such.host":    {FaultDial, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "no.such.host", Server: "10.0.0.1:53", IsNotFound: true}}},
		"eof: closed by the other side":       {FaultEOF, io.EOF},
		"protocol: invalid greeting received": {FaultProtocol, fmt.Errorf("zmq4: could not open a ZMTP connection: %w", fmt.Errorf("zmq4: could not exchange greetings: %w", errors.New("zmq4: invalid greeting received")))},
	} {
		if got := e.Error(); got != want || strings.Contains(got, "49622") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
