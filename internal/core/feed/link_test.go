package feed

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/plain"
	"go.uber.org/goleak"

	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quick are limits that make a test of silence short, and yet not so short that
// a busy machine is taken for a silent peer.
var quick = Limits{Dial: 30 * time.Second, Handshake: 30 * time.Second, Ping: time.Second, Write: 30 * time.Second}

// patient are limits for tests of anything but silence: a busy machine may hold
// everything up for seconds.
var patient = Limits{Dial: 30 * time.Second, Handshake: 30 * time.Second, Ping: 30 * time.Second, Write: 30 * time.Second}

// peer is a scripted ZMTP peer: script runs for each accepted connection, then
// the connection is closed.
func peer(t *testing.T, script func(net.Conn)) (endpoint string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	conns := make(chan net.Conn, 1000)
	go func() {
		defer close(done)
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			conns <- nc
			script(nc)
			nc.Close()
		}
	}()
	t.Cleanup(func() {
		ln.Close()
		for {
			select {
			case nc := <-conns:
				nc.Close()
			case <-done:
				return
			}
		}
	})
	return "tcp://" + ln.Addr().String()
}

// publisherPeer is a scripted publisher past its handshake and subscription.
func publisherPeer(t *testing.T, minor byte, script func(*zmtp.Conn)) string {
	t.Helper()
	return peer(t, func(nc net.Conn) {
		c, err := zmtp.Handshake(nc, "PUB", minor)
		if err != nil {
			return // the test sees it on its side
		}
		if _, frames, err := c.Recv(); err == nil && bytes.Equal(frames[0], []byte{1}) {
			script(c)
		}
	})
}

func subscribeTo(t *testing.T, ctx context.Context, endpoint string, lim Limits) *link {
	t.Helper()
	src, err := dialled{dialer{lim: lim}, endpoint}.open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src.(*link)
}

// recv returns the next message and the number of commands before it.
func recv(l *link) (frames [][]byte, commands int, err error) {
	for {
		frames, err = l.Recv()
		if frames != nil || err != nil {
			return frames, commands, err
		}
		commands++
	}
}

// dialFault dials and expects a failure.
func dialFault(t *testing.T, endpoint string, lim Limits) error {
	t.Helper()
	l, err := dialer{lim: lim}.dial(t.Context(), endpoint, zmq4.Sub)
	if err == nil {
		l.Close()
		t.Fatal("dial succeeded")
	}
	return err
}

func wantFault(t *testing.T, err error, want Fault, text string) {
	t.Helper()
	if err == nil || faultOf(err) != want || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want fault %q with %q", err, want, text)
	}
}

func TestDialFaults(t *testing.T) {
	closed := peer(t, func(net.Conn) {})
	silent := peer(t, func(nc net.Conn) { io.Copy(io.Discard, nc) })
	http := peer(t, func(nc net.Conn) {
		nc.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		io.Copy(io.Discard, nc) // a server that waits for the end of a request line
		io.WriteString(nc, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n400 Bad Request: a text to fill sixty-four bytes")
	})
	ready := func(body string) string {
		return peer(t, func(nc net.Conn) {
			nc.Write(zmtp.AppendCommand(zmtp.Greeting(1), "READY", []byte(body)))
			io.Copy(io.Discard, nc)
		})
	}
	prop := func(k, v string) string {
		b := append([]byte{byte(len(k))}, k...)
		return string(binary.BigEndian.AppendUint32(b, uint32(len(v)))) + v
	}
	raw := func(b string) string {
		return peer(t, func(nc net.Conn) { io.WriteString(nc, b); io.Copy(io.Discard, nc) })
	}
	greeting := string(zmtp.Greeting(1))
	for _, c := range []struct {
		name, endpoint string
		fault          Fault
		text           string
	}{
		{"no port", "tcp://127.0.0.1", FaultDial, "port"},
		{"other transport", "ipc:///tmp/x", FaultDial, "tcp"},
		{"refused", "tcp://127.0.0.1:1", FaultDial, "refused"},
		{"ZF-02 silent accept", silent, FaultHandshake, "no answer in time"},
		{"ZF-02 HTTP port", http, FaultProtocol, "greeting"},
		{"ZF-03 accept and close", closed, FaultHandshake, ""},
		{"ZF-12 no metadata", ready(""), FaultProtocol, "malformed"},
		{"ZF-12 cut metadata", ready("\x02ab"), FaultProtocol, "malformed"},
		{"ZF-12 unknown type", ready(prop("Socket-Type", "FOO")), FaultProtocol, "malformed"},
		{"ZF-12 router", ready(prop("Socket-Type", "ROUTER")), FaultProtocol, "not compatible"},
		{"ERROR command", raw(greeting + string(zmtp.AppendCommand(nil, "ERROR", []byte("\x03bad")))), FaultProtocol, ""},
		{"empty command", raw(greeting + "\x04\x00"), FaultProtocol, ""},
		{"ZMTP 2", raw("\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x01\x01" + strings.Repeat("\x00", 52)), FaultProtocol, "version"},
		{"other mechanism", raw("\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x01CURVE" + strings.Repeat("\x00", 47)), FaultProtocol, "mechanism"},
		{"endless MORE", raw(greeting + strings.Repeat("\x01\x00", 100)), FaultOversize, "frames"},
	} {
		t.Run(c.name, func(t *testing.T) {
			lim := patient
			if c.endpoint == silent {
				lim.Handshake = 200 * time.Millisecond
			}
			wantFault(t, dialFault(t, c.endpoint, lim), c.fault, c.text)
		})
	}
	for _, body := range []string{prop("socket-type", "PUB"), prop("Socket-Type", "XPUB")} {
		t.Run("ZF-12 accepted "+body[1:], func(t *testing.T) {
			l, err := dialer{lim: patient}.dial(t.Context(), ready(body), zmq4.Sub)
			if err != nil {
				t.Fatal(err)
			}
			l.Close()
		})
	}
}

// The length is what kills a plain zmq4 connection.
func TestHugeLengths(t *testing.T) {
	for _, size := range []uint64{1<<31 - 1, 1 << 31, 100_000_000_000, 1 << 50, 1<<63 - 1, 1 << 63, 1<<64 - 1} {
		header := binary.BigEndian.AppendUint64([]byte{flagLong | flagCommand}, size)
		before := heap()
		t.Run(fmt.Sprintf("ZF-11 handshake %d", size), func(t *testing.T) {
			at := peer(t, func(nc net.Conn) {
				nc.Write(append(zmtp.Greeting(1), header...))
				io.Copy(io.Discard, nc)
			})
			wantFault(t, dialFault(t, at, patient), FaultOversize, "frame too large")
		})
		for _, flags := range []byte{flagLong, flagLong | flagMore, flagLong | flagCommand} {
			header[0] = flags
			t.Run(fmt.Sprintf("ZF-11 stream %d flags %d", size, flags), func(t *testing.T) {
				at := publisherPeer(t, 1, func(c *zmtp.Conn) {
					c.Write(header)
					io.Copy(io.Discard, c)
				})
				_, err := subscribeTo(t, t.Context(), at, patient).Recv()
				wantFault(t, err, FaultOversize, "frame too large")
			})
		}
		t.Run(fmt.Sprintf("sum that wraps around, %d", size), func(t *testing.T) {
			header[0] = flagLong
			at := publisherPeer(t, 1, func(c *zmtp.Conn) {
				c.Write(append([]byte{flagMore, 1, 'x'}, header...))
				io.Copy(io.Discard, c)
			})
			_, err := subscribeTo(t, t.Context(), at, patient).Recv()
			wantFault(t, err, FaultOversize, "frame too large")
		})
		after := heap()
		if after.TotalAlloc-before.TotalAlloc > 1<<26 { // the connections' buffers take a part of it
			t.Errorf("length %d: %d bytes were allocated", size, after.TotalAlloc-before.TotalAlloc)
		}
		// What a connection leaves behind is collected at some time.
		eventually(t, "heap growth below 1 MiB", func() bool {
			after = heap()
			return int64(after.HeapAlloc)-int64(before.HeapAlloc) < 1<<20
		}, func() string { return fmt.Sprintf("length %d: %d, %d before", size, after.HeapAlloc, before.HeapAlloc) })
	}
}

// A length below the limit is a claim too: memory follows the bytes that come.
func TestClaimedLength(t *testing.T) {
	const size, came = 16<<20 - 100, 100 << 10
	frame := binary.BigEndian.AppendUint64([]byte{flagLong}, size)
	release := make(chan struct{})
	at := publisherPeer(t, 1, func(c *zmtp.Conn) {
		c.Write(append(frame, make([]byte, came)...))
		<-release
	})
	l := subscribeTo(t, t.Context(), at, patient)
	before := heap()
	close(release) // ends the connection inside the frame
	_, err := l.Recv()
	wantFault(t, err, FaultTruncated, "")
	if n := heap().TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes allocated for %d", n, came)
	}
}

// A frame of any size around the steps of its buffer comes whole.
func TestFrameSizes(t *testing.T) {
	sizes := []int{1, smallFrames, smallFrames + 1, bodyStep - 1, bodyStep, bodyStep + 1, 2*bodyStep + 1, 1 << 20}
	at := publisherPeer(t, 1, func(c *zmtp.Conn) {
		for _, n := range sizes {
			body := bytes.Repeat([]byte{byte(n), byte(n >> 8), 7}, n/3+1)[:n]
			c.Write(append(binary.BigEndian.AppendUint64([]byte{flagLong}, uint64(n)), body...))
		}
		io.Copy(io.Discard, c)
	})
	l := subscribeTo(t, t.Context(), at, patient)
	for _, n := range sizes {
		frames, err := l.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if want := bytes.Repeat([]byte{byte(n), byte(n >> 8), 7}, n/3+1)[:n]; len(frames) != 1 || !bytes.Equal(frames[0], want) {
			t.Errorf("%d bytes: %d frames, %d bytes in the first", n, len(frames), len(frames[0]))
		}
	}
}

// heap is what is allocated now and was in all, behind a collection.
func heap() (m runtime.MemStats) {
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m
}

func TestMessageLimits(t *testing.T) {
	half := make([]byte, 17<<19)
	frames := make([][]byte, 17)
	for _, c := range []struct {
		name   string
		frames [][]byte
	}{{"ZF-13 17 frames", frames}, {"ZF-13 17 MiB in 2 frames", [][]byte{half, half}}} {
		t.Run(c.name, func(t *testing.T) {
			at := publisherPeer(t, 1, func(p *zmtp.Conn) {
				p.Send([]byte("small"))
				p.Send(c.frames...)
			})
			l := subscribeTo(t, t.Context(), at, Limits{})
			if got, err := l.Recv(); err != nil || string(got[0]) != "small" {
				t.Fatalf("%q, %v", got, err)
			}
			_, err := l.Recv()
			wantFault(t, err, FaultOversize, "")
		})
	}
	t.Run("16 frames and 16 MiB pass", func(t *testing.T) {
		whole := make([]byte, 16<<20)
		at := publisherPeer(t, 1, func(p *zmtp.Conn) {
			p.Send(frames[:16]...)
			p.Send(whole)
		})
		l := subscribeTo(t, t.Context(), at, Limits{})
		if got, err := l.Recv(); err != nil || len(got) != 16 {
			t.Fatalf("%d frames, %v", len(got), err)
		}
		if got, err := l.Recv(); err != nil || len(got[0]) != 16<<20 {
			t.Fatal(err)
		}
	})
}

func TestEndOfConnection(t *testing.T) {
	wire := zmtp.AppendMessage(nil, []byte("topic"), make([]byte, 8), make([]byte, 300))
	for _, c := range []struct {
		name  string
		end   func(*zmtp.Conn)
		fault Fault
	}{
		{"ZF-04 FIN in a header", func(p *zmtp.Conn) { p.Write(wire[:1]) }, FaultTruncated},
		{"ZF-04 FIN in a body", func(p *zmtp.Conn) { p.Write(wire[:30]) }, FaultTruncated},
		{"ZF-04 FIN between frames", func(p *zmtp.Conn) { p.Write(wire[:7]) }, FaultTruncated},
		{"ZF-04 FIN", func(p *zmtp.Conn) {}, FaultEOF},
		{"ZF-04 RST", func(p *zmtp.Conn) { p.Conn.(*net.TCPConn).SetLinger(0) }, FaultReset},
		{"stall in a frame, 3.1", func(p *zmtp.Conn) { p.Write(wire[:30]); io.Copy(io.Discard, p) }, FaultTimeout},
		{"ZF-09 no answer to PING", func(p *zmtp.Conn) { io.Copy(io.Discard, p) }, FaultTimeout},
		{"command with MORE", func(p *zmtp.Conn) { p.Write([]byte{5, 1, 0, 4, 1, 0}); io.Copy(io.Discard, p) }, FaultProtocol},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := publisherPeer(t, 1, func(p *zmtp.Conn) {
				p.Write(wire)
				c.end(p)
			})
			lim := patient
			if c.fault == FaultTimeout || c.fault == FaultProtocol { // the latter leaves the socket to its silence
				lim = quick
			}
			l := subscribeTo(t, t.Context(), at, lim)
			if got, err := l.Recv(); err != nil || len(got) != 3 {
				t.Fatalf("%q, %v", got, err)
			}
			_, err := l.Recv()
			wantFault(t, err, c.fault, "")
			if _, again := l.Recv(); again == nil {
				t.Error("a dead link received")
			}
		})
	}
	t.Run("stall in a frame, 3.0", func(t *testing.T) {
		at := publisherPeer(t, 0, func(p *zmtp.Conn) { p.Write(wire[:30]); io.Copy(io.Discard, p) })
		_, err := subscribeTo(t, t.Context(), at, quick).Recv()
		wantFault(t, err, FaultTimeout, "")
	})
}

func TestHeartbeats(t *testing.T) {
	t.Run("ZF-07 peer pings", func(t *testing.T) {
		t.Parallel()
		// 40 PINGs take twice the peer's patience.
		p := publisher(t, "127.0.0.1:0", zmtp.Options{Heartbeat: 100 * time.Millisecond, Patience: 2 * time.Second})
		lim := patient
		lim.Ping = time.Minute // so that only our answers keep the connection
		l := subscribeTo(t, t.Context(), "tcp://"+p.Addr(), lim)
		go func() {
			for p.Pongs() < 40 {
				time.Sleep(time.Millisecond)
			}
			p.Send("t", 1, []byte("x"))
		}()
		got, commands, err := recv(l)
		if err != nil || len(got) != 3 || commands < 40 {
			t.Fatalf("%q, %v after %d commands", got, err, commands)
		}
		if major, minor := l.Peer(); major != 3 || minor != 1 {
			t.Errorf("peer %d.%d", major, minor)
		}
	})
	t.Run("ZF-08 idle peer that answers", func(t *testing.T) {
		t.Parallel()
		p := publisher(t, "127.0.0.1:0", zmtp.Options{})
		l := subscribeTo(t, t.Context(), "tcp://"+p.Addr(), quick)
		go func() {
			for p.Pings() < 10 {
				time.Sleep(time.Millisecond)
			}
			p.Send("t", 1, nil)
		}()
		if got, _, err := recv(l); err != nil || len(got) != 3 {
			t.Fatalf("%q, %v", got, err)
		}
	})
	t.Run("ZF-10 peer of ZMTP 3.0 is not pinged", func(t *testing.T) {
		t.Parallel()
		p := publisher(t, "127.0.0.1:0", zmtp.Options{Legacy: true})
		lim := quick
		lim.Ping = 100 * time.Millisecond
		l := subscribeTo(t, t.Context(), "tcp://"+p.Addr(), lim)
		go func() {
			time.Sleep(11 * lim.Ping)
			p.Send("t", 1, nil)
		}()
		if got, err := l.Recv(); err != nil || len(got) != 3 || p.Pings() != 0 {
			t.Fatalf("%q, %v, %d pings", got, err, p.Pings())
		}
	})
}

func TestCancelEndsRecv(t *testing.T) {
	t.Run("ZF-16 cancel during Recv", func(t *testing.T) {
		at := publisherPeer(t, 1, func(p *zmtp.Conn) { io.Copy(io.Discard, p) })
		ctx, cancel := context.WithCancel(t.Context())
		l := subscribeTo(t, ctx, at, Limits{})
		end := make(chan error)
		go func() {
			_, err := l.Recv()
			end <- err
		}()
		cancel()
		select {
		case err := <-end:
			wantFault(t, err, FaultClosed, "")
		case <-time.After(time.Minute):
			t.Fatal("Recv goes on")
		}
	})
}

// Goroutines and descriptors return to where they were, half of the
// links being closed with data unread.
func TestOpenClose(t *testing.T) {
	t.Run("ZF-15 a thousand links", func(t *testing.T) {
		p, err := zmtp.Listen("127.0.0.1:0", zmtp.Options{Queue: 10})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		fds := func() int {
			d, err := os.ReadDir("/proc/self/fd")
			if err != nil {
				return 0 // not Linux: goroutines are still counted
			}
			return len(d)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		before := fds()
		for i := range 1000 {
			src, err := dialled{dialer{}, "tcp://" + p.Addr()}.open(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if i%2 == 0 {
				p.Send("t", uint64(i), make([]byte, 1000))
			}
			src.Close()
		}
		for end := time.Now().Add(time.Minute); p.Subscribers() > 0 || fds() > before+1; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d descriptors, %d before; %d subscribers left", fds(), before, p.Subscribers())
			}
		}
	})
}

// PLAIN needs a new Security per connection.
func TestPlain(t *testing.T) {
	t.Run("ZF-17 right, again, wrong", func(t *testing.T) {
		at := peer(t, func(nc net.Conn) { plainServer(nc, "user", "secret") })
		d := dialer{lim: patient, security: func() zmq4.Security { return plain.Security("user", "secret") }}
		for range 2 {
			l, err := d.dial(t.Context(), at, zmq4.Sub)
			if err != nil {
				t.Fatal(err)
			}
			l.Close()
		}
		d.security = func() zmq4.Security { return plain.Security("user", "wrong") }
		if l, err := d.dial(t.Context(), at, zmq4.Sub); err == nil {
			l.Close()
			t.Error("a wrong password passed")
		} else {
			wantFault(t, err, FaultProtocol, "")
		}
	})
}

// plainServer is the server half of the PLAIN handshake.
func plainServer(nc net.Conn, user, password string) {
	g := zmtp.Greeting(1)
	clear(g[12:32])
	copy(g[12:], "PLAIN")
	g[32] = 1
	nc.Write(g)
	if _, err := io.CopyN(io.Discard, nc, 64); err != nil {
		return
	}
	read := func() []byte {
		var h [2]byte
		if _, err := io.ReadFull(nc, h[:]); err != nil {
			return nil
		}
		b := make([]byte, h[1])
		io.ReadFull(nc, b)
		return b
	}
	hello := fmt.Sprintf("\x05HELLO%c%s%c%s", len(user), user, len(password), password)
	if string(read()) != hello {
		nc.Write(zmtp.AppendCommand(nil, "ERROR", []byte("\x06denied")))
		io.Copy(io.Discard, nc)
		return
	}
	nc.Write(zmtp.AppendCommand(nil, "WELCOME", nil))
	read() // INITIATE
	nc.Write(zmtp.Ready("PUB"))
}

func TestFaultOfOtherErrors(t *testing.T) {
	if f := faultOf(errors.New("x")); f != FaultProtocol {
		t.Error(f)
	}
}

// The limits as the documentation has them, and what each is applied to.
func TestLimits(t *testing.T) {
	want := Limits{MessageBytes: 16 << 20, Dial: 3 * time.Second, Handshake: 3 * time.Second, Ping: 5 * time.Second, Write: 2 * time.Second}
	if got := (Limits{}).withDefaults(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// deadlines is a connection that keeps what it was told to wait for.
type deadlines struct {
	wire
	write time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.write = t
	return nil
}

// A peer that does not read must not hold up the goroutine that reads from it:
// every write of an open connection has its own deadline, whichever ZMTP the peer
// speaks.
func TestWriteDeadline(t *testing.T) {
	for minor := range byte(2) {
		t.Run(fmt.Sprint("3.", minor), func(t *testing.T) {
			stream := append(zmtp.Greeting(minor), zmtp.Ready("PUB")...)
			nc := &deadlines{wire: wire{r: bytes.NewReader(stream)}}
			l, err := dialer{}.open(t.Context(), nc, zmq4.Sub, false)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			nc.write = time.Time{}
			from := time.Now()
			if err := l.subscribe(""); err != nil {
				t.Fatal(err)
			}
			to := time.Now()
			if nc.write.Before(from.Add(2*time.Second)) || nc.write.After(to.Add(2*time.Second)) {
				t.Errorf("deadline %v after the write began, want 2s", nc.write.Sub(from))
			}
		})
	}
	t.Run("a full socket", func(t *testing.T) {
		ours, theirs := net.Pipe() // holds nothing: a write waits for its reader
		defer theirs.Close()
		lim := patient
		lim.Write = 20 * time.Millisecond
		g := newGuard(ours, lim)
		defer g.Close()
		g.opened()
		_, err := g.Write(ping)
		wantFault(t, err, FaultTimeout, "")
		if _, err := g.Read(make([]byte, 1)); faultOf(err) != FaultTimeout {
			t.Errorf("the link lives on: %v", err)
		}
	})
}
