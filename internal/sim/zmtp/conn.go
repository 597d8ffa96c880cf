// Package zmtp is the publishing half of ZeroMQ as an inference engine uses it:
// a PUB socket for KV events and a ROUTER socket that replays them. It is a small
// implementation of ZMTP 3.1 (https://rfc.zeromq.org/spec/37/) with the NULL
// mechanism, written apart from the subscriber in core/feed so that each side
// tests the other.
package zmtp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// Flag bits of a frame header.
const (
	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
)

// Bounds of what a peer may send to a publisher: subscriptions, commands and
// replay requests are all tiny.
const (
	maxFrame         = 64 << 10
	maxFrames        = 16
	handshakeTimeout = 5 * time.Second
)

// Conn is one ZMTP connection past its handshake. One goroutine may receive
// while another sends.
type Conn struct {
	net.Conn
	r *bufio.Reader
	w *bufio.Writer

	// Peer is the other side's socket type, Minor its ZMTP 3.x minor version.
	Peer  string
	Minor byte
}

// Handshake greets as ZMTP 3.minor and exchanges READY commands, all within
// five seconds. socket is our socket type ("PUB", "ROUTER"). It does not close
// nc on error.
func Handshake(nc net.Conn, socket string, minor byte) (*Conn, error) {
	c := &Conn{Conn: nc, r: bufio.NewReader(nc), w: bufio.NewWriterSize(nc, 64<<10)}
	if err := nc.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return nil, err
	}
	c.w.Write(Greeting(minor))
	c.w.Write(Ready(socket))
	if err := c.w.Flush(); err != nil {
		return nil, fmt.Errorf("zmtp greeting: %w", err)
	}
	var hello [64]byte
	if _, err := io.ReadFull(c.r, hello[:]); err != nil {
		return nil, fmt.Errorf("zmtp greeting: %w", err)
	}
	if hello[0] != 0xff || hello[9] != 0x7f || hello[10] < 3 || !strings.HasPrefix(string(hello[12:32]), "NULL\x00") {
		return nil, errors.New("zmtp greeting: peer speaks no ZMTP 3 with NULL security")
	}
	c.Minor = hello[11]
	cmd, frames, err := c.Recv()
	if err != nil {
		return nil, fmt.Errorf("zmtp handshake: %w", err)
	}
	if cmd != "READY" {
		return nil, fmt.Errorf("zmtp handshake: command %q instead of READY", cmd)
	}
	if c.Peer, err = socketType(frames[0]); err != nil {
		return nil, err
	}
	return c, nc.SetDeadline(time.Time{})
}

// Greeting is the first 64 bytes of a connection.
func Greeting(minor byte) []byte {
	g := make([]byte, 64)
	g[0], g[9], g[10], g[11] = 0xff, 0x7f, 3, minor
	copy(g[12:], "NULL")
	return g
}

// Ready is the command that ends the NULL handshake, as it stands on the wire.
func Ready(socket string) []byte {
	var body []byte
	for _, kv := range [][2]string{{"Socket-Type", socket}, {"Identity", ""}} {
		body = append(body, byte(len(kv[0])))
		body = append(body, kv[0]...)
		body = binary.BigEndian.AppendUint32(body, uint32(len(kv[1])))
		body = append(body, kv[1]...)
	}
	return AppendCommand(nil, "READY", body)
}

func socketType(props []byte) (string, error) {
	for len(props) > 0 {
		n := int(props[0])
		if len(props) < 1+n+4 {
			break
		}
		key, size := string(props[1:1+n]), int(binary.BigEndian.Uint32(props[1+n:]))
		props = props[1+n+4:]
		if size > len(props) {
			break
		}
		if strings.EqualFold(key, "Socket-Type") {
			return string(props[:size]), nil
		}
		props = props[size:]
	}
	return "", errors.New("zmtp handshake: READY without Socket-Type")
}

// AppendMessage appends the frames of one message in wire form.
func AppendMessage(b []byte, frames ...[]byte) []byte {
	for i, f := range frames {
		var flags byte
		if i < len(frames)-1 {
			flags = flagMore
		}
		b = append(appendHeader(b, flags, len(f)), f...)
	}
	return b
}

// AppendCommand appends a command in wire form.
func AppendCommand(b []byte, name string, body []byte) []byte {
	b = appendHeader(b, flagCommand, 1+len(name)+len(body))
	b = append(b, byte(len(name)))
	return append(append(b, name...), body...)
}

func appendHeader(b []byte, flags byte, size int) []byte {
	if size > 255 {
		return binary.BigEndian.AppendUint64(append(b, flags|flagLong), uint64(size))
	}
	return append(b, flags, byte(size))
}

// Recv returns the next message's frames, or the next command's name and its
// body as the one frame.
func (c *Conn) Recv() (command string, frames [][]byte, err error) {
	for {
		var h [9]byte
		if _, err := io.ReadFull(c.r, h[:2]); err != nil {
			return "", nil, err
		}
		size := uint64(h[1])
		if h[0]&flagLong != 0 {
			if _, err := io.ReadFull(c.r, h[2:]); err != nil {
				return "", nil, err
			}
			size = binary.BigEndian.Uint64(h[1:])
		}
		if size > maxFrame || len(frames) == maxFrames {
			return "", nil, fmt.Errorf("zmtp: frame of %d bytes, number %d of its message", size, len(frames)+1)
		}
		body := make([]byte, size)
		if _, err := io.ReadFull(c.r, body); err != nil {
			return "", nil, err
		}
		if h[0]&flagCommand != 0 {
			if size == 0 || int(body[0]) >= len(body) {
				return "", nil, errors.New("zmtp: malformed command")
			}
			n := 1 + int(body[0])
			return string(body[1:n]), [][]byte{body[n:]}, nil
		}
		if frames = append(frames, body); h[0]&flagMore == 0 {
			return "", frames, nil
		}
	}
}

// Send writes one message and flushes it.
func (c *Conn) Send(frames ...[]byte) error {
	if _, err := c.w.Write(AppendMessage(nil, frames...)); err != nil {
		return err
	}
	return c.w.Flush()
}
