package feed

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"
)

// FrameSource is one connection to a publisher. Recv is called by one goroutine;
// Close may be called from any and makes Recv return.
type FrameSource interface {
	// Recv returns the frames of the next message, which belong to the caller,
	// or none for a ZMTP command. After an error the source is dead.
	Recv() ([][]byte, error)
	// Peer is the publisher's ZMTP version.
	Peer() (major, minor byte)
	Close() error
}

// link is a FrameSource over one guarded TCP connection.
//
// It is made with zmq4.Open and not zmq4.NewSub: the socket above Conn has no
// handshake deadline, dials the wrong endpoint again, does not notice half of
// the ways a connection ends and cannot be closed without a leak. zmq4 makes the
// handshake and writes; messages are received here (see message), which NULL and
// PLAIN allow, since both leave them as they are.
type link struct {
	guard   *guard
	conn    *zmq4.Conn
	header  [9]byte     // of the frame being received
	release func() bool // unties the connection from its context
}

var _ FrameSource = (*link)(nil)

// dialer makes links. The zero value dials with the default limits and no
// security.
type dialer struct {
	lim Limits
	// security makes a new value per connection, because zmq4's PLAIN forgets
	// its credentials in the first handshake. nil = NULL.
	security func() zmq4.Security
}

// keepAlive ends a half-open connection to a peer that cannot be pinged, dialled
// or accepted, after 25 s. Go's own values take 150 s.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}

// dial connects to endpoint, tcp://host:port, as a socket of the given kind. A
// host name is resolved at each call. The link dies with ctx.
func (d dialer) dial(ctx context.Context, endpoint string, kind zmq4.SocketType) (*link, error) {
	addr, err := tcpAddress(endpoint)
	if err != nil {
		return nil, &linkError{FaultDial, err}
	}
	nd := net.Dialer{Timeout: d.lim.withDefaults().Dial, KeepAliveConfig: keepAlive}
	nc, err := nd.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, &linkError{FaultDial, err}
	}
	return d.open(ctx, nc, kind, false)
}

// open performs the ZMTP handshake within its deadline. It owns nc: an error
// closes it.
func (d dialer) open(ctx context.Context, nc net.Conn, kind zmq4.SocketType, server bool) (l *link, err error) {
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer func() {
		if err != nil {
			stop()
			nc.Close()
		}
	}()
	lim := d.lim.withDefaults()
	if err := nc.SetDeadline(time.Now().Add(lim.Handshake)); err != nil {
		return nil, &linkError{FaultHandshake, err}
	}
	security := null.Security()
	if d.security != nil {
		security = d.security()
	}
	g := newGuard(nc, lim)
	conn, err := openConn(g, security, kind, server)
	if err != nil {
		return nil, handshakeError(g, err)
	}
	if err := nc.SetDeadline(time.Time{}); err != nil {
		return nil, &linkError{FaultHandshake, err}
	}
	g.opened()
	return &link{guard: g, conn: conn, release: stop}, nil
}

// openConn is zmq4.Open without its panics: a READY that is empty, cut short or
// names an unknown socket type brings it down.
func openConn(nc net.Conn, s zmq4.Security, kind zmq4.SocketType, server bool) (c *zmq4.Conn, err error) {
	defer func() {
		if r := recover(); r != nil {
			c, err = nil, fmt.Errorf("malformed ZMTP handshake: %v", r)
		}
	}()
	return zmq4.Open(nc, s, kind, nil, server, nil)
}

// handshakeError tells a peer that went away from one that speaks wrongly.
func handshakeError(g *guard, err error) error {
	switch {
	case g.fault == nil:
		return &linkError{FaultProtocol, err}
	case g.fault.fault == FaultOversize || g.fault.fault == FaultClosed:
		return g.fault
	}
	return &linkError{FaultHandshake, g.fault.err}
}

// tcpAddress returns the host:port of an endpoint. ipc and inproc are local to
// the engine's machine or process and are not supported.
func tcpAddress(endpoint string) (string, error) {
	addr, ok := strings.CutPrefix(endpoint, "tcp://")
	if !ok && strings.Contains(endpoint, "://") {
		return "", fmt.Errorf("endpoint %q: only tcp:// is supported", endpoint)
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return "", fmt.Errorf("endpoint %q: %w", endpoint, err)
	}
	return addr, nil
}

// subscribe asks the publisher for topics with this prefix. It is called once,
// before the first Recv.
func (l *link) subscribe(prefix string) error {
	return l.send(append([]byte{1}, prefix...))
}

// send writes one message. It must not run beside Recv.
func (l *link) send(frames ...[]byte) error {
	if err := l.conn.SendMsg(zmq4.NewMsgFrom(frames...)); err != nil {
		return l.error(err)
	}
	return nil
}

// Recv implements FrameSource.
func (l *link) Recv() ([][]byte, error) {
	frames, command, err := l.receive()
	if command && err == nil {
		frames, err = nil, l.obey(frames)
	}
	if err != nil {
		return nil, l.error(err)
	}
	return frames, nil
}

// error prefers the guard's reason: zmq4 wraps, or replaces, what the
// connection said.
func (l *link) error(err error) error {
	if l.guard.fault != nil {
		return l.guard.fault
	}
	return &linkError{FaultProtocol, err}
}

// silence sets how long Recv waits without a byte before it fails; the peer is
// not pinged. For replay, where a pause means a lost end marker.
func (l *link) silence(d time.Duration) {
	l.guard.silence, l.guard.strict = d, true
}

// Peer implements FrameSource.
func (l *link) Peer() (major, minor byte) { return l.guard.peer[0], l.guard.peer[1] }

// Close implements FrameSource.
func (l *link) Close() error {
	l.release()
	return l.guard.Close()
}
