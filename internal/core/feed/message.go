package feed

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/go-zeromq/zmq4"
)

// smallFrames is room for what stands before the payload: a topic such as
// "kv@10.0.0.11:8000@meta-llama/Llama-3.3-70B-Instruct", and the number.
const smallFrames = 96

// message holds one message's frames: an allocation for the three of them and
// what is small of them, and one for the payload. zmq4's RecvMsg makes seven.
type message struct {
	list  [3][]byte
	small [smallFrames]byte
}

// receive reads the next message; command reports that it is none but a ZMTP
// command. The guard fails on a header above the limits before it gets here.
func (l *link) receive() (frames [][]byte, command bool, err error) {
	m := new(message)
	frames, small := m.list[:0], m.small[:]
	for more := true; more; {
		flags, size, err := l.frameHeader()
		if err != nil {
			return nil, false, err
		}
		var body []byte
		if size <= uint64(len(small)) {
			body, small = small[:size:size], small[size:]
			_, err = io.ReadFull(l.guard, body)
		} else {
			body, err = l.take(int(size))
		}
		if err != nil {
			return nil, false, err
		}
		frames = append(frames, body)
		more = flags&flagMore != 0
		command = command || flags&flagCommand != 0
	}
	return frames, command, nil
}

// bodyStep is how far a frame's buffer grows ahead of the bytes that have come: a
// peer that claims 16 MiB and stalls would hold as much for 25 bytes. Nearly every
// batch is smaller (a store of 100 blocks of 16 tokens is 10 kB), and costs one
// allocation.
const bodyStep = 64 << 10

// take reads a frame's body of n bytes.
func (l *link) take(n int) ([]byte, error) {
	b := make([]byte, min(n, bodyStep))
	for have := 0; ; {
		got, err := io.ReadFull(l.guard, b[have:])
		if have += got; err != nil || have == n {
			return b, err
		}
		more := make([]byte, min(n, 2*have))
		copy(more, b)
		b = more
	}
}

// frameHeader reads a frame's flags and the size of its body.
func (l *link) frameHeader() (flags byte, size uint64, err error) {
	h := l.header[:]
	if _, err := io.ReadFull(l.guard, h[:2]); err != nil {
		return 0, 0, err
	}
	if h[0]&flagLong == 0 {
		return h[0], uint64(h[1]), nil
	}
	if _, err := io.ReadFull(l.guard, h[2:]); err != nil {
		return 0, 0, err
	}
	return h[0], binary.BigEndian.Uint64(h[1:]), nil
}

var errCommand = errors.New("malformed ZMTP command")

// obey takes a command: it answers PING. The others mean nothing to us.
func (l *link) obey(frames [][]byte) error {
	body := frames[0]
	if len(frames) > 1 || len(body) == 0 || len(body) <= int(body[0]) {
		return errCommand
	}
	if string(body[1:1+body[0]]) == zmq4.CmdPing {
		return l.conn.SendCmd(zmq4.CmdPong, nil)
	}
	return nil
}
