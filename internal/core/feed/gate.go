package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/go-zeromq/zmq4"
)

const (
	// perPeer is the number of connections without an owner that one remote
	// address may hold; more when more than half as many members are configured
	// there. Those with one are bounded by the members: a new one replaces the old.
	perPeer = 4
	// ownerless is how long one of them may keep a place that another needs. An
	// idle publisher that loses it dials again: libzmq after 0.1 s.
	ownerless = 2 * time.Second
)

// gate listens at one address for publishers that dial us, and gives each
// connection to the member it belongs to. The socket's address decides; the
// topic is asked only where several pods, or none, have that address.
type gate struct {
	dialer  dialer
	log     *slog.Logger
	refused func(why string)
	// adopt, when not nil, takes every connection, whoever it is of; set before
	// serve. It owns src.
	adopt  func(src FrameSource, from string)
	ln     net.Listener
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	said   refusals

	mu     sync.Mutex
	claims []*claim
	conns  map[netip.Addr]int
	idle   map[netip.Addr][]waiting // connections without an owner, the oldest first
}

// waiting is a connection that has not told yet whose it is.
type waiting struct {
	src   *accepted
	since time.Time
}

// openGate listens at a local endpoint, tcp://host:port.
func openGate(endpoint string, d dialer, log *slog.Logger, refused func(why string)) (*gate, error) {
	g, err := newGate(endpoint, d, log, refused)
	if err == nil {
		g.serve()
	}
	return g, err
}

// newGate is openGate without accepting yet.
func newGate(endpoint string, d dialer, log *slog.Logger, refused func(why string)) (*gate, error) {
	addr, err := listenAddress(endpoint)
	if err != nil {
		return nil, err
	}
	lc := net.ListenConfig{KeepAliveConfig: keepAlive}
	ln, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("event listener: %w", err)
	}
	g := &gate{
		dialer: d, log: log.With("listener", ln.Addr().String()), refused: refused, ln: ln,
		conns: map[netip.Addr]int{}, idle: map[netip.Addr][]waiting{},
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g, nil
}

func (g *gate) serve() { g.wg.Go(g.accept) }

// close ends the listener and every connection still without an owner.
func (g *gate) close() {
	g.cancel()
	g.ln.Close()
	g.wg.Wait()
}

func (g *gate) join(c *claim) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.claims = append(g.claims, c)
}

// leave withdraws a claim and reports whether none is left.
func (g *gate) leave(c *claim) (last bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.claims = slices.DeleteFunc(g.claims, func(x *claim) bool { return x == c })
	return len(g.claims) == 0
}

func (g *gate) accept() {
	for g.ctx.Err() == nil {
		nc, err := g.ln.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				_ = sleep(g.ctx, backoffFirst) // out of descriptors, say
			}
			continue
		}
		from := remoteAddr(nc)
		if !g.enter(from) && !(g.makeRoom(from) && g.enter(from)) {
			nc.Close()
			g.refuse(from, refusedLimit, nil)
			continue
		}
		g.wg.Go(func() { g.admit(nc, from) })
	}
}

func remoteAddr(nc net.Conn) netip.Addr {
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// enter counts a connection in, exit out.
func (g *gate) enter(from netip.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	limit := 0
	if g.adopt != nil {
		limit = watchedPerPeer
	}
	for _, c := range g.claims {
		if c.from(from) {
			limit += 2 * len(c.ranks) // an old connection may linger beside the new
		}
	}
	if g.conns[from] >= max(limit, perPeer) {
		return false
	}
	g.conns[from]++
	return true
}

func (g *gate) exit(from netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conns[from]--; g.conns[from] <= 0 {
		delete(g.conns, from)
	}
}

// waits notes that a connection has no owner yet, found that this is over.
func (g *gate) waits(from netip.Addr, src *accepted) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.idle[from] = append(g.idle[from], waiting{src, time.Now()})
}

func (g *gate) found(from netip.Addr, src *accepted) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.idle[from] = slices.DeleteFunc(g.idle[from], func(w waiting) bool { return w.src == src })
	if len(g.idle[from]) == 0 {
		delete(g.idle, from)
	}
}

// makeRoom ends the oldest connection of an address that has kept a place long
// enough without telling whose it is. Its place is taken over at once.
func (g *gate) makeRoom(from netip.Addr) bool {
	g.mu.Lock()
	var oldest *accepted
	if idle := g.idle[from]; len(idle) > 0 && time.Since(idle[0].since) >= ownerless {
		oldest = idle[0].src
		g.idle[from] = idle[1:]
	}
	g.mu.Unlock()
	if oldest == nil {
		return false
	}
	oldest.Close()
	return true
}

// admit performs the handshake and finds the owner, which may take until the
// first message: an idle publisher stays without one.
func (g *gate) admit(nc net.Conn, from netip.Addr) {
	l, err := g.dialer.open(g.ctx, nc, zmq4.Sub, true)
	if err == nil {
		if err = l.subscribe(""); err != nil {
			l.Close()
		}
	}
	if err != nil {
		g.exit(from)
		g.refuse(from, refusedHandshake, err)
		return
	}
	src := &accepted{link: l, exit: sync.OnceFunc(func() { g.exit(from) })}
	if g.adopt != nil {
		g.adopt(src, nc.RemoteAddr().String())
		return
	}
	g.waits(from, src)
	box, why, err := g.owner(from, src)
	g.found(from, src)
	switch {
	case box != nil && box.offer(src):
		src.exit() // the member's inbox bounds it from here
		return
	case box == nil && why != "":
		g.refuse(from, why, err)
	}
	src.Close()
}

// accepted is a link from a gate, with the message that told whose it is.
type accepted struct {
	*link
	first [][]byte
	exit  func()
}

func (a *accepted) Recv() ([][]byte, error) {
	if f := a.first; f != nil {
		a.first = nil
		return f, nil
	}
	return a.link.Recv()
}

func (a *accepted) Close() error {
	a.exit()
	return a.link.Close()
}
