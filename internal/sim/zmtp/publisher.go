package zmtp

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options of a Publisher. The zero value is a well-behaved ZMTP 3.1 publisher.
type Options struct {
	// Queue is the number of messages kept per subscriber (the high-water
	// mark); a full queue drops the new message, as libzmq does. 0 = 1000.
	Queue int
	// Legacy greets as ZMTP 3.0 and never answers a PING, as go-zeromq's own
	// PUB does.
	Legacy bool
	// Heartbeat sends a PING that often and cuts a subscriber that was silent
	// for Patience. 0 = no heartbeat, and two heartbeats.
	Heartbeat, Patience time.Duration
}

// Publisher is a PUB socket. Its methods may be called from any goroutine.
type Publisher struct {
	opts Options
	ln   net.Listener // nil for a publisher that dials
	addr string

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu   sync.Mutex
	subs map[*subscriber]struct{}

	dropped atomic.Uint64
	pongs   atomic.Uint64
	pings   atomic.Uint64
}

// Listen binds addr ("127.0.0.1:0") and publishes to whoever connects.
func Listen(addr string, o Options) (*Publisher, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("zmtp publisher: %w", err)
	}
	p := newPublisher(o, ln.Addr().String())
	p.ln = ln
	p.wg.Go(func() {
		acceptEach(p.ctx, ln, func(nc net.Conn) { p.wg.Go(func() { p.serve(nc) }) })
	})
	return p, nil
}

// Dial publishes to the one subscriber that listens at addr, connecting again
// for as long as the publisher lives. It returns at once.
func Dial(addr string, o Options) *Publisher {
	p := newPublisher(o, addr)
	p.wg.Go(func() {
		var d net.Dialer
		for p.ctx.Err() == nil {
			if nc, err := d.DialContext(p.ctx, "tcp", addr); err == nil {
				p.serve(nc)
			}
			select {
			case <-p.ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	return p
}

func newPublisher(o Options, addr string) *Publisher {
	if o.Queue <= 0 {
		o.Queue = 1000
	}
	p := &Publisher{opts: o, addr: addr, subs: map[*subscriber]struct{}{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Addr is the bound address, or the dialled one.
func (p *Publisher) Addr() string { return p.addr }

// Subscribers counts the connections that have subscribed to anything.
func (p *Publisher) Subscribers() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for s := range p.subs {
		if len(s.topics) > 0 {
			n++
		}
	}
	return n
}

// Dropped counts messages lost to full queues.
func (p *Publisher) Dropped() uint64 { return p.dropped.Load() }

// Pings counts the PINGs subscribers sent.
func (p *Publisher) Pings() uint64 { return p.pings.Load() }

// Pongs counts the PONGs subscribers sent.
func (p *Publisher) Pongs() uint64 { return p.pongs.Load() }

// Send publishes one batch as the three frames topic, sequence, payload. It
// never blocks and keeps none of its arguments.
func (p *Publisher) Send(topic string, seq uint64, payload []byte) {
	p.SendFrames([]byte(topic), binary.BigEndian.AppendUint64(nil, seq), payload)
}

// SendFrames publishes any frames; the first one is the topic.
func (p *Publisher) SendFrames(frames ...[]byte) {
	wire := AppendMessage(nil, frames...)
	p.sendWire(string(frames[0]), wire)
}

// SendRaw publishes bytes as they are to every subscriber: the way to a
// malformed stream.
func (p *Publisher) SendRaw(wire []byte) { p.sendWire("", append([]byte(nil), wire...)) }

func (p *Publisher) sendWire(topic string, wire []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.subs {
		if !s.wants(topic) {
			continue
		}
		select {
		case s.queue <- wire:
		default:
			p.dropped.Add(1)
		}
	}
}

// Close ends every connection and returns when all goroutines have.
func (p *Publisher) Close() error {
	p.cancel()
	if p.ln != nil {
		p.ln.Close()
	}
	p.wg.Wait()
	return nil
}

// subscriber is one connected SUB socket.
type subscriber struct {
	topics map[string]int // prefix -> number of subscriptions; under Publisher.mu
	queue  chan []byte    // whole messages in wire form
	urgent chan []byte    // PING and PONG: not behind a backlog of messages
}

func (s *subscriber) wants(topic string) bool {
	for prefix := range s.topics {
		if strings.HasPrefix(topic, prefix) {
			return true
		}
	}
	return false
}

// serve runs one connection to its end.
func (p *Publisher) serve(nc net.Conn) {
	stop := context.AfterFunc(p.ctx, func() { nc.Close() })
	defer stop()
	defer nc.Close()
	minor := byte(1)
	if p.opts.Legacy {
		minor = 0
	}
	c, err := Handshake(nc, "PUB", minor)
	if err != nil || c.Peer != "SUB" && c.Peer != "XSUB" {
		return
	}
	s := &subscriber{topics: map[string]int{}, queue: make(chan []byte, p.opts.Queue), urgent: make(chan []byte, 4)}
	p.mu.Lock()
	p.subs[s] = struct{}{}
	p.mu.Unlock()
	done := make(chan struct{})
	p.wg.Go(func() { p.write(c, s, done) })
	p.read(c, s)
	close(done)
	p.mu.Lock()
	delete(p.subs, s)
	p.mu.Unlock()
}

// read takes subscriptions and heartbeats until the connection ends.
func (p *Publisher) read(c *Conn, s *subscriber) {
	for {
		if p.opts.Heartbeat > 0 {
			c.SetReadDeadline(time.Now().Add(cmp.Or(p.opts.Patience, 2*p.opts.Heartbeat)))
		}
		cmd, frames, err := c.Recv()
		if err != nil {
			return
		}
		body := frames[0]
		switch {
		case cmd == "SUBSCRIBE":
			p.subscribe(s, string(body), 1)
		case cmd == "CANCEL":
			p.subscribe(s, string(body), -1)
		case cmd == "PING":
			p.pings.Add(1)
			if !p.opts.Legacy && len(body) >= 2 {
				// The context behind the 2-byte TTL comes back.
				s.offer(AppendCommand(nil, "PONG", body[2:]))
			}
		case cmd == "PONG":
			p.pongs.Add(1)
		case cmd == "" && len(frames) == 1 && len(body) > 0 && body[0] == 1:
			p.subscribe(s, string(body[1:]), 1)
		case cmd == "" && len(frames) == 1 && len(body) > 0 && body[0] == 0:
			p.subscribe(s, string(body[1:]), -1)
		}
	}
}

func (s *subscriber) offer(wire []byte) {
	select {
	case s.urgent <- wire:
	default:
	}
}

func (p *Publisher) subscribe(s *subscriber, prefix string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.topics[prefix] += n; s.topics[prefix] <= 0 {
		delete(s.topics, prefix)
	}
}

// write is the connection's only writer. It flushes when nothing waits.
func (p *Publisher) write(c *Conn, s *subscriber, done <-chan struct{}) {
	defer c.Close() // a failed write ends the reader too
	var beat <-chan time.Time
	if p.opts.Heartbeat > 0 {
		t := time.NewTicker(p.opts.Heartbeat)
		defer t.Stop()
		beat = t.C
	}
	for {
		var wire []byte
		select {
		case wire = <-s.urgent:
		case wire = <-s.queue:
		case <-beat:
			wire = AppendCommand(nil, "PING", []byte{0, 0})
		case <-done:
			return
		}
		if _, err := c.w.Write(wire); err != nil {
			return
		}
		if len(s.queue) == 0 && c.w.Flush() != nil {
			return
		}
	}
}

// acceptEach hands every accepted connection to serve until ctx ends or the
// listener is closed.
func acceptEach(ctx context.Context, ln net.Listener, serve func(net.Conn)) {
	for {
		nc, err := ln.Accept()
		switch {
		case err == nil:
			serve(nc)
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return
		default: // out of descriptors, say: they come back
			time.Sleep(10 * time.Millisecond)
		}
	}
}
