package zmtp

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
)

// ReplayOptions shape a Replay and its faults.
type ReplayOptions struct {
	// Size is the number of batches kept; 0 = 10000, vLLM's buffer_steps.
	Size int
	// Bare leaves the topic frame out of replies and puts the end marker in the
	// form of vLLM before 0.26.
	Bare bool
	// NoEnd never sends the end marker.
	NoEnd bool
	// Keep, when set, decides per request (counted from 1) and sequence number
	// whether a reply is sent: libzmq's ROUTER loses some above its high-water
	// mark.
	Keep func(request int, seq uint64) bool
}

// Replay is a ROUTER socket that answers [start sequence] with every batch it
// still has from there on, then an end marker. Its methods may be called from
// any goroutine.
type Replay struct {
	opts   ReplayOptions
	ln     net.Listener
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu   sync.Mutex
	ring []batch // in order of sequence, oldest first once full
	head int     // index of the oldest

	requests atomic.Int64
	ignored  atomic.Int64
}

type batch struct {
	seq     uint64
	topic   string
	payload []byte
}

// ListenReplay binds addr.
func ListenReplay(addr string, o ReplayOptions) (*Replay, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("zmtp replay: %w", err)
	}
	if o.Size <= 0 {
		o.Size = 10000
	}
	r := &Replay{opts: o, ln: ln}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.wg.Go(func() {
		acceptEach(r.ctx, ln, func(nc net.Conn) { r.wg.Go(func() { r.serve(nc) }) })
	})
	return r, nil
}

// Addr is the bound address.
func (r *Replay) Addr() string { return r.ln.Addr().String() }

// Requests counts the well-formed requests, Ignored the others.
func (r *Replay) Requests() int { return int(r.requests.Load()) }

// Ignored counts the requests that had no empty delimiter frame: a real engine
// answers those with silence.
func (r *Replay) Ignored() int { return int(r.ignored.Load()) }

// Record keeps a copy of one batch, at the cost of the oldest when full.
// Batches come in order of their sequence numbers.
func (r *Replay) Record(seq uint64, topic string, payload []byte) {
	b := batch{seq, topic, append([]byte(nil), payload...)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ring) < r.opts.Size {
		r.ring = append(r.ring, b)
		return
	}
	r.ring[r.head] = b
	r.head = (r.head + 1) % len(r.ring)
}

// Reset forgets everything, as a restarted engine does.
func (r *Replay) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ring, r.head = nil, 0
}

// Close ends every connection and returns when all goroutines have.
func (r *Replay) Close() error {
	r.cancel()
	err := r.ln.Close()
	r.wg.Wait()
	return err
}

func (r *Replay) since(start uint64) []batch {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []batch
	for i := range r.ring {
		if b := r.ring[(r.head+i)%len(r.ring)]; b.seq >= start {
			out = append(out, b)
		}
	}
	return out
}

func (r *Replay) serve(nc net.Conn) {
	stop := context.AfterFunc(r.ctx, func() { nc.Close() })
	defer stop()
	defer nc.Close()
	c, err := Handshake(nc, "ROUTER", 1)
	if err != nil || c.Peer != "DEALER" && c.Peer != "REQ" {
		return
	}
	for {
		cmd, frames, err := c.Recv()
		switch {
		case err != nil:
			return
		case cmd == "PING":
			c.w.Write(AppendCommand(nil, "PONG", nil))
			c.w.Flush()
		case cmd != "":
		case len(frames) != 2 || len(frames[0]) != 0 || len(frames[1]) != 8:
			r.ignored.Add(1)
		default:
			n := int(r.requests.Add(1))
			if r.answer(c, n, binary.BigEndian.Uint64(frames[1])) != nil {
				return
			}
		}
	}
}

func (r *Replay) answer(c *Conn, request int, start uint64) error {
	var buf []byte
	for _, b := range r.since(start) {
		if r.opts.Keep != nil && !r.opts.Keep(request, b.seq) {
			continue
		}
		buf = r.appendReply(buf[:0], b.topic, b.seq, b.payload)
		if _, err := c.w.Write(buf); err != nil {
			return err
		}
	}
	if !r.opts.NoEnd {
		buf = r.appendReply(buf[:0], "", math.MaxUint64, nil)
		if _, err := c.w.Write(buf); err != nil {
			return err
		}
	}
	return c.w.Flush()
}

func (r *Replay) appendReply(b []byte, topic string, seq uint64, payload []byte) []byte {
	num := binary.BigEndian.AppendUint64(nil, seq)
	if r.opts.Bare {
		return AppendMessage(b, nil, num, payload)
	}
	return AppendMessage(b, nil, []byte(topic), num, payload)
}
