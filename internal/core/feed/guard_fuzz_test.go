package feed

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/eppctl/eppctl/internal/sim/zmtp"
	"github.com/eppctl/eppctl/internal/testdata"
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

// What a stream may make a link allocate: room for the one message that a header
// announces and that never comes, buffers, and for a frame of two bytes a message
// of 170 and its place in the test's list.
const (
	allocFloor   = fuzzBytes + 256<<10
	allocPerByte = 256
)

// receiveBounded is receiveAll under a bound of what it allocates.
func receiveBounded(t *testing.T, stream []byte, piece int) (messages [][][]byte, err error) {
	t.Helper()
	testdata.Bounded(t, uint64(allocFloor+allocPerByte*len(stream)), func() { messages, err = receiveAll(t, stream, piece) })
	return messages, err
}

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

// receiveByZMQ4 is the same by zmq4's own means.
func receiveByZMQ4(t *testing.T, stream []byte) (messages [][][]byte) {
	d := dialer{lim: Limits{MessageBytes: fuzzBytes}}
	l, err := d.open(context.Background(), &wire{r: bytes.NewReader(stream)}, zmq4.Sub, false)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for {
		msg, err := l.conn.RecvMsg()
		switch {
		case err != nil:
			return messages
		case msg.Type == zmq4.CmdMsg:
			messages = append(messages, nil)
		default:
			messages = append(messages, msg.Frames)
		}
	}
}

// streams are what publishers send behind a handshake, and what breaks it.
func streams() [][]byte {
	msg := zmtp.AppendMessage(nil, []byte("kv@p@m"), make([]byte, 8), stored(1))
	return [][]byte{
		msg,
		zmtp.AppendMessage(msg, make([]byte, 300)),
		zmtp.AppendMessage(nil, nil, binary.BigEndian.AppendUint64(nil, 7), stored(1)),              // a replay's answer
		zmtp.AppendMessage(nil, nil, []byte("t"), binary.BigEndian.AppendUint64(nil, 7), stored(1)), // with a topic
		zmtp.AppendMessage(zmtp.AppendMessage(nil, nil, endMarker, nil), nil, nil, endMarker, nil),
		zmtp.AppendCommand(bytes.Clone(msg), "PING", []byte("\x00\x00ctx")),
		zmtp.AppendCommand(bytes.Clone(msg), "PONG", nil),
		msg[:len(msg)-1],
		{flagLong, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		{flagLong, 0, 0, 0, 0, 0x10, 0, 0, 0},                                         // 256 MiB that could be had
		bytes.Repeat([]byte{flagMore | flagLong, 0, 0, 0, 0, 0, 0x0f, 0xff, 0xff}, 2), // two together beyond the limit
		{flagLong | flagMore, 0, 0, 0, 0, 0, 0x0f, 0xff, 0xff},
		bytes.Repeat([]byte{flagMore, 0}, 20),
		{flagCommand, 0},
		{0xf8, 1, 'x'},
	}
}

// checkStream holds what follows a handshake against the promise: it ends in a
// typed error, and is read the same in one piece, byte by byte and by zmq4.
func checkStream(t *testing.T, tail []byte) {
	t.Helper()
	stream := append(append(zmtp.Greeting(1), zmtp.Ready("PUB")...), tail...)
	whole, err1 := receiveBounded(t, stream, 0)
	split, err2 := receiveBounded(t, stream, 1)
	if len(whole) != len(split) || faultOf(err1) != faultOf(err2) {
		t.Errorf("%d messages, %v in one piece; %d, %v byte by byte", len(whole), err1, len(split), err2)
	}
	theirs := receiveByZMQ4(t, stream)
	if !slices.EqualFunc(whole, theirs, func(a, b [][]byte) bool {
		return (a == nil) == (b == nil) && slices.EqualFunc(a, b, bytes.Equal)
	}) {
		t.Errorf("%q, by zmq4 %q", whole, theirs)
	}
	if f := faultOf(err1); f == FaultHandshake || f == FaultTimeout {
		t.Errorf("fault %v", err1)
	}
}

func FuzzGuardAfterHandshake(f *testing.F) {
	for _, s := range streams() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, tail []byte) {
		if len(tail) <= 64<<10 {
			checkStream(t, tail)
		}
	})
}

// handshakes are what peers open a connection with.
func handshakes() [][]byte {
	greeted := func(minor byte, rest ...byte) []byte { return append(zmtp.Greeting(minor), rest...) }
	ready := func(body string) []byte { return zmtp.AppendCommand(zmtp.Greeting(1), "READY", []byte(body)) }
	all := [][]byte{
		zmtp.AppendCommand(zmtp.Greeting(0), "READY", nil),
		ready("\x02ab"), // a key that fills the rest
		ready("\x0bSocket-Type\x00\x00\x00\x03PUB\x08Identity\x00\x00\x00\x00"),
		ready("\x0bsocket-type\x00\x00\x00\x04XPUB"),
		ready("\x0bSocket-Type\xff\xff\xff\xffPUB"), // a value longer than there is
		ready("\x00\x00\x00\x00\x00"),
		zmtp.AppendCommand(zmtp.Greeting(1), "ERROR", []byte("\x03no!")),
		zmtp.AppendMessage(zmtp.Greeting(1), []byte("no command")),
		[]byte("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"),
		zmtp.Greeting(1)[:40],
		greeted(1, flagCommand|flagLong, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
	}
	for _, socket := range []string{"PUB", "XPUB", "ROUTER", "FOO"} {
		all = append(all, greeted(1, zmtp.Ready(socket)...))
	}
	return all
}

// checkHandshake: any is accepted, or ends in a typed error.
func checkHandshake(t *testing.T, stream []byte) {
	t.Helper()
	if _, err := receiveBounded(t, stream, 0); err == nil || err == io.EOF {
		t.Errorf("error %v", err)
	}
}

func FuzzOpen(f *testing.F) {
	for _, s := range handshakes() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		if len(stream) <= 64<<10 {
			checkHandshake(t, stream)
		}
	})
}

// What the fuzz targets look for, a little of it in every run of the tests.
func TestAnyBytes(t *testing.T) {
	const each = 300
	mutants := func(t *testing.T, seeds [][]byte, check func(*testing.T, []byte)) {
		r := rand.New(rand.NewPCG(42, 42))
		for _, s := range seeds {
			check(t, s)
			for range each {
				m := bytes.Clone(s)
				for range 1 + r.IntN(4) {
					if len(m) == 0 {
						break
					}
					switch i := r.IntN(len(m)); r.IntN(4) {
					case 0:
						m[i] = byte(r.Uint32())
					case 1:
						m = m[:i]
					case 2:
						m = append(m[:i:i], append([]byte{byte(r.Uint32())}, m[i:]...)...)
					case 3:
						o := seeds[r.IntN(len(seeds))]
						m = append(m, o[r.IntN(len(o)):]...)
					}
				}
				check(t, m)
			}
		}
	}
	t.Run("ZF-42 behind a handshake", func(t *testing.T) { mutants(t, streams(), checkStream) })
	t.Run("ZF-42 handshakes", func(t *testing.T) { mutants(t, handshakes(), checkHandshake) })
	t.Run("ZF-42 answers of a replay port", func(t *testing.T) { mutants(t, replayReplies(), checkReplies) })
}

// endMarker is the sequence frame of the last answer.
var endMarker = bytes.Repeat([]byte{0xff}, 8)

// replayReplies are what replay ports write behind a handshake, in both layouts.
func replayReplies() [][]byte {
	seq := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	var bare, topic []byte
	for i := range uint64(3) {
		bare = zmtp.AppendMessage(bare, nil, seq(i), stored(i))
		topic = zmtp.AppendMessage(topic, nil, []byte("kv@p@m"), seq(i), stored(i))
	}
	return [][]byte{
		zmtp.AppendMessage(bytes.Clone(bare), nil, endMarker, nil), // vLLM 0.23.0
		zmtp.AppendMessage(topic, nil, nil, endMarker, nil),        // vLLM 0.32.0, SGLang 0.5.23
		bare,
		zmtp.AppendMessage(nil, nil, nil, endMarker, nil),
		zmtp.AppendMessage(nil, nil, seq(5), stored(5)),
		zmtp.AppendMessage(nil, []byte("one frame")),
		zmtp.AppendMessage(nil, nil, []byte{1, 2, 3}, nil),
		zmtp.AppendCommand(nil, "PING", []byte("\x00\x00")),
	}
}

// checkReplies holds one round of a replay against the promise: batches come in
// order, each once, and the round ends.
func checkReplies(t *testing.T, tail []byte) {
	t.Helper()
	stream := append(append(zmtp.Greeting(1), zmtp.Ready("ROUTER")...), tail...)
	l, err := dialer{lim: Limits{MessageBytes: fuzzBytes}}.open(context.Background(), &wire{r: bytes.NewReader(stream)}, zmq4.Dealer, false)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var q sequence
	q.canReplay = true
	q.up(1)
	m := machine{t: t, q: &q}
	ask(l, 0, &m)
}

// machine is a taker that holds what a sequence machine applies against the
// promise.
type machine struct {
	t    *testing.T
	q    *sequence
	want uint64
}

func (m *machine) take(a replayed, first bool) verdict {
	st := m.q.replayed(a.seq, digest(a.payload), first, 1)
	v := verdict{next: m.q.next()}
	switch st.do {
	case apply:
		if a.seq < m.want || a.seq > m.want && !first {
			m.t.Errorf("batch %d applied, %d is next", a.seq, m.want)
		}
		m.want = a.seq + 1
	case hole:
		v.do = again
	case reject:
		v.do = refused
	}
	return v
}

func (m *machine) over(ending, bool) (uint64, bool) { return m.q.from(), true }

func FuzzReplies(f *testing.F) {
	for _, a := range replayReplies() {
		f.Add(a)
	}
	f.Fuzz(func(t *testing.T, tail []byte) {
		if len(tail) <= 64<<10 {
			checkReplies(t, tail)
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
