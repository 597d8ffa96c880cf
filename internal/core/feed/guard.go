package feed

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// Limits bound what a peer can make us wait for and allocate. The zero value of
// a field means its default.
type Limits struct {
	MessageBytes int           // one message, all frames; default 16 MiB
	Dial         time.Duration // TCP connect; default 3 s
	Handshake    time.Duration // the whole ZMTP handshake; default 3 s
	Ping         time.Duration // silence before a PING, and again before giving up; default 5 s
	Write        time.Duration // one write; default 2 s
}

const (
	greetingBytes = 64
	// handshakeBytes bounds a handshake message and every later command: a READY
	// holds two short properties, libzmq's PING at most 16 bytes of context.
	handshakeBytes = 8 << 10
	messageFrames  = 16
	// readBuffer is small because there is one per rank of the fleet; larger
	// ones gain nothing measurable once a read returns several messages.
	readBuffer = 32 << 10
)

func (l Limits) withDefaults() Limits {
	if l.MessageBytes <= 0 {
		l.MessageBytes = 16 << 20
	}
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{{&l.Dial, 3 * time.Second}, {&l.Handshake, 3 * time.Second}, {&l.Ping, 5 * time.Second}, {&l.Write, 2 * time.Second}} {
		if *d.v <= 0 {
			*d.v = d.def
		}
	}
	return l
}

// ping is the ZMTP 3.1 command PING with a TTL of 0, in wire form.
var ping = []byte("\x04\x07\x04PING\x00\x00")

var errFrameTooLarge = errors.New("frame too large")

// guard is the net.Conn under a zmq4.Conn. zmq4 sizes its buffers by the length
// the peer claims and never gives up on a silent peer, so the guard reads every
// frame header first, fails before an oversize one is delivered whole, and
// keeps a rolling read deadline.
//
// One goroutine reads; it also writes, because zmq4 answers PING from its
// receive call and writes header and body apart, so that a second writer would
// cut a frame in two. Close may be called from anywhere.
type guard struct {
	net.Conn
	buf   *bufio.Reader
	lim   Limits
	fault *linkError // first failure; sticky

	// Where the stream stands, counted over the bytes zmq4 has received. The
	// buffer is empty whenever the socket is read, so at that moment this is
	// also where the peer stands.
	greeted int // bytes of the greeting seen
	peer    [2]byte
	open    bool // handshake is over
	header  [9]byte
	have    int    // bytes of header
	body    uint64 // bytes left of the frame
	bytes   uint64 // bytes of the earlier frames of this message
	frames  int    // earlier frames of this message

	// Liveness, in force once open.
	silence time.Duration // read deadline
	canPing bool
	strict  bool // the first silence is the last, between messages too
	strikes int  // deadlines passed since the last byte
}

func newGuard(nc net.Conn, lim Limits) *guard {
	g := &guard{Conn: nc, lim: lim}
	g.buf = bufio.NewReaderSize((*source)(g), readBuffer)
	return g
}

// opened ends the handshake: message limits and liveness are in force from here.
// A peer of ZMTP 3.1 or later is pinged after a silence. Older ones are not:
// go-zeromq's PUB queues PINGs nobody reads until it stops reading at all.
func (g *guard) opened() {
	g.open = true
	g.silence = g.lim.Ping
	g.canPing = g.peer[0] > 3 || g.peer[0] == 3 && g.peer[1] >= 1
}

// inside reports whether the stream stands inside a greeting or message.
func (g *guard) inside() bool {
	return g.greeted < greetingBytes || g.have > 0 || g.body > 0 || g.frames > 0
}

// Read implements net.Conn. A failing byte is not delivered: io.ReadFull would
// hide an error that comes with enough bytes.
func (g *guard) Read(p []byte) (int, error) {
	if g.fault != nil {
		return 0, g.fault
	}
	n, err := g.buf.Read(p)
	if n > 0 {
		if err := g.check(p[:n]); err != nil {
			return 0, g.fail(FaultOversize, err)
		}
		return n, nil
	}
	if err != nil {
		return 0, g.fail(ioFault(err, g.inside()), err)
	}
	return 0, nil
}

// Write implements net.Conn.
func (g *guard) Write(p []byte) (int, error) {
	if g.open {
		if err := g.Conn.SetWriteDeadline(time.Now().Add(g.lim.Write)); err != nil {
			return 0, g.fail(ioFault(err, false), err)
		}
	}
	n, err := g.Conn.Write(p)
	if err != nil {
		return n, g.fail(ioFault(err, false), err)
	}
	return n, nil
}

func (g *guard) fail(f Fault, err error) error {
	if g.fault == nil {
		g.fault = &linkError{f, err}
	}
	return g.fault
}

// check follows the framing through b and fails at a header above the limits.
func (g *guard) check(b []byte) error {
	for len(b) > 0 {
		switch {
		case g.greeted < greetingBytes:
			if i := g.greeted - 10; i == 0 || i == 1 {
				g.peer[i] = b[0] // ZMTP major, minor
			}
			g.greeted++
			b = b[1:]
		case g.body > 0:
			n := min(g.body, uint64(len(b)))
			g.body -= n
			b = b[n:]
			if g.body == 0 {
				g.endFrame()
			}
		default:
			g.header[g.have] = b[0]
			g.have++
			b = b[1:]
			if err := g.headerByte(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Flag bits of a ZMTP frame header.
const (
	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
)

// headerByte looks at a header that has grown by one byte.
func (g *guard) headerByte() error {
	flags, size := g.header[0], uint64(0)
	switch {
	case g.have < 2, flags&flagLong != 0 && g.have < 9:
		return nil
	case flags&flagLong != 0:
		size = binary.BigEndian.Uint64(g.header[1:])
	default:
		size = uint64(g.header[1])
	}
	limit := uint64(g.lim.MessageBytes)
	if !g.open || flags&flagCommand != 0 {
		limit = handshakeBytes
	}
	// size is compared alone first: the sum could wrap around.
	if size > limit || g.bytes+size > limit {
		return fmt.Errorf("%w: %d bytes, limit %d", errFrameTooLarge, g.bytes+size, limit)
	}
	if g.frames++; g.frames > messageFrames {
		return fmt.Errorf("%w: more than %d frames in a message", errFrameTooLarge, messageFrames)
	}
	g.bytes += size
	if g.body = size; size == 0 {
		g.endFrame()
	}
	return nil
}

func (g *guard) endFrame() {
	if g.have = 0; g.header[0]&flagMore == 0 {
		g.bytes, g.frames = 0, 0
	}
}

// source is the guard seen from its buffer: it reads the socket.
type source guard

// Read waits for bytes under the rolling deadline.
func (s *source) Read(p []byte) (int, error) {
	g := (*guard)(s)
	for {
		if g.open {
			if err := g.Conn.SetReadDeadline(time.Now().Add(g.silence)); err != nil {
				return 0, err
			}
		}
		n, err := g.Conn.Read(p)
		if n > 0 {
			g.strikes = 0
			return n, nil
		}
		if !g.open || !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, err
		}
		if err := g.silent(err); err != nil {
			return 0, err
		}
	}
}

// silent decides after one more deadline without a byte. An idle engine
// publishes nothing, so silence between messages kills a connection only when a
// PING stays unanswered; a stall inside a message always does, the second time.
func (g *guard) silent(timeout error) error {
	g.strikes++
	switch {
	case g.strict:
		return timeout
	case !g.canPing && !g.inside():
		g.strikes = 0
	case g.strikes >= 2:
		return timeout
	case g.canPing:
		_, err := g.Write(ping)
		return err
	}
	return nil
}
