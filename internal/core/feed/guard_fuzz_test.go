package feed

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

// wire is a net.Conn whose peer has written everything already, in pieces of
// the given size (0 = at once), and hears nothing.
type wire struct {
	net.Conn
	r     *bytes.Reader
	piece int
}

func (w *wire) Read(p []byte) (int, error) {
	if w.piece > 0 && len(p) > w.piece {
		p = p[:w.piece]
	}
	return w.r.Read(p)
}
func (*wire) Write(p []byte) (int, error)      { return len(p), nil }
func (*wire) Close() error                     { return nil }
func (*wire) SetDeadline(time.Time) error      { return nil }
func (*wire) SetReadDeadline(time.Time) error  { return nil }
func (*wire) SetWriteDeadline(time.Time) error { return nil }

const fuzzBytes = 1 << 20

// receiveAll opens a link over what the peer wrote and receives to the end,
// holding every message against the limits.
func receiveAll(t *testing.T, stream []byte, piece int) (messages [][][]byte, err error) {
	d := dialer{lim: Limits{MessageBytes: fuzzBytes}}
	l, err := d.open(context.Background(), &wire{r: bytes.NewReader(stream), piece: piece}, zmq4.Sub, false)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	for {
		frames, err := l.Recv()
		if err != nil {
			return messages, err
		}
		size := 0
		for _, f := range frames {
			size += len(f)
		}
		if size > fuzzBytes || len(frames) > messageFrames {
			t.Fatalf("a message of %d bytes in %d frames passed", size, len(frames))
		}
		messages = append(messages, frames)
	}
}

// ZF-42: whatever follows a handshake ends in a typed error, and is read the
// same in one piece and byte by byte.
func FuzzGuardAfterHandshake(f *testing.F) {
	msg := zmtp.AppendMessage(nil, []byte("kv@p@m"), make([]byte, 8), stored(1))
	f.Add(msg)
	f.Add(zmtp.AppendMessage(msg, make([]byte, 300)))
	f.Add(zmtp.AppendCommand(bytes.Clone(msg), "PING", []byte("\x00\x00ctx")))
	f.Add(msg[:len(msg)-1])
	f.Add([]byte{flagLong, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{flagLong | flagMore, 0, 0, 0, 0, 0, 0x0f, 0xff, 0xff})
	f.Add(bytes.Repeat([]byte{flagMore, 0}, 20))
	f.Add([]byte{flagCommand, 0})
	f.Add([]byte{0xf8, 1, 'x'})
	hello := append(zmtp.Greeting(1), zmtp.Ready("PUB")...)
	f.Fuzz(func(t *testing.T, tail []byte) {
		if len(tail) > 64<<10 {
			return
		}
		stream := append(bytes.Clone(hello), tail...)
		whole, err1 := receiveAll(t, stream, 0)
		split, err2 := receiveAll(t, stream, 1)
		if len(whole) != len(split) || faultOf(err1) != faultOf(err2) {
			t.Errorf("%d messages, %v in one piece; %d, %v byte by byte", len(whole), err1, len(split), err2)
		}
		if f := faultOf(err1); f == FaultHandshake || f == FaultTimeout {
			t.Errorf("fault %v", err1)
		}
	})
}

// ZF-42, ZF-12: any handshake is accepted or a typed error.
func FuzzOpen(f *testing.F) {
	for _, socket := range []string{"PUB", "XPUB", "ROUTER", "FOO"} {
		f.Add(append(zmtp.Greeting(1), zmtp.Ready(socket)...))
	}
	f.Add(zmtp.AppendCommand(zmtp.Greeting(0), "READY", nil))
	f.Add(zmtp.AppendCommand(zmtp.Greeting(1), "READY", []byte("\x02ab")))
	f.Add(zmtp.AppendCommand(zmtp.Greeting(1), "ERROR", []byte("\x03no!")))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"))
	f.Add(zmtp.Greeting(1)[:40])
	f.Add(append(zmtp.Greeting(1), flagCommand|flagLong, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff))
	f.Fuzz(func(t *testing.T, stream []byte) {
		if len(stream) > 64<<10 {
			return
		}
		if _, err := receiveAll(t, stream, 0); err == nil || err == io.EOF {
			t.Errorf("error %v", err)
		}
	})
}

// naiveFraming is the slow twin of the guard: the whole stream at hand, it cuts
// frames off and tells whether and where a limit is broken.
func naiveFraming(b []byte, limit uint64) (breach bool) {
	var size, frames uint64
	for len(b) >= 2 {
		flags, n := b[0], uint64(b[1])
		b = b[2:]
		if flags&flagLong != 0 {
			if len(b) < 7 {
				return false
			}
			for _, x := range b[:7] {
				n = n<<8 | uint64(x)
			}
			b = b[7:]
		}
		most := limit
		if flags&flagCommand != 0 {
			most = handshakeBytes
		}
		frames++
		if n > most || size+n > most || frames > messageFrames {
			return true
		}
		if n > uint64(len(b)) {
			return false
		}
		b, size = b[n:], size+n
		if flags&flagMore == 0 {
			size, frames = 0, 0
		}
	}
	return false
}

func TestGuardAgainstTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	breaches := 0
	for range 20_000 {
		var stream []byte
		for range r.IntN(20) {
			flags := byte(r.IntN(8))
			n := []int{0, 1, 255, 256, 5000, 9000}[r.IntN(6)]
			if flags&flagLong != 0 || n > 255 {
				flags |= flagLong
				stream = append(stream, flags, 0, 0, 0, 0, 0, 0, byte(n>>8), byte(n))
			} else {
				stream = append(stream, flags, byte(n))
			}
			stream = append(stream, make([]byte, n)...)
		}
		stream = stream[:len(stream)-r.IntN(1+min(3, len(stream)))]
		const limit = 20_000
		g := &guard{lim: Limits{MessageBytes: limit}, greeted: greetingBytes, open: true}
		var err error
		for rest := stream; len(rest) > 0 && err == nil; {
			n := 1 + r.IntN(min(len(rest), 3000))
			err = g.check(rest[:n])
			rest = rest[n:]
		}
		want := naiveFraming(stream, limit)
		if (err != nil) != want {
			t.Fatalf("guard %v, twin %v for %x", err, want, stream[:min(len(stream), 100)])
		}
		if want {
			breaches++
		}
	}
	if breaches == 0 || breaches == 20_000 {
		t.Errorf("%d breaches: the streams test nothing", breaches)
	}
}
