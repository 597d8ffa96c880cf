package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

const (
	// perPeer is the number of connections without an owner that one remote
	// address may hold; more when more than half as many members are configured
	// there. Those with one are bounded by the members: a new one replaces the old.
	perPeer = 4
	// ownerless is how long one of them may keep a place that another needs. An
	// idle publisher that loses it dials again: libzmq after 0.1 s.
	ownerless = 2 * time.Second
	// refusalEvery is how often the same refusal of one address is logged.
	refusalEvery = time.Minute
	// refusalsKept bounds the addresses of which that is known.
	refusalsKept = 1024
)

// Why a publisher that dialled us was refused. The words label metrics.
const (
	refusedLimit     = "too many connections"
	refusedHandshake = "handshake"
	refusedUnknown   = "unknown pod"
	refusedRank      = "unknown rank"
)

// claim is one pod's expectation that its publishers dial us.
type claim struct {
	addr  atomic.Pointer[netip.AddrPort] // of the pod; nil while its name is not resolved
	names []string                       // what its topic may call it, besides the address
	ranks []*inbox                       // one per rank
}

func newClaim(s pod.Spec, a netip.AddrPort, ranks int) *claim {
	c := &claim{names: []string{s.Name, s.Address}, ranks: make([]*inbox, ranks)}
	for i := range c.ranks {
		c.ranks[i] = newInbox()
	}
	c.at(a)
	return c
}

// at tells the pod's resolved address.
func (c *claim) at(a netip.AddrPort) {
	if a.IsValid() {
		c.addr.Store(&a)
	}
}

// from reports whether the pod has this address.
func (c *claim) from(ip netip.Addr) bool {
	a := c.addr.Load()
	return a != nil && a.Addr().Unmap() == ip
}

// called reports whether a topic's pod id means this pod.
func (c *claim) called(id string) bool {
	a := c.addr.Load()
	return slices.Contains(c.names, id) || a != nil && (a.String() == id || a.Addr().String() == id)
}

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

	mu     sync.Mutex
	claims []*claim
	conns  map[netip.Addr]int
	idle   map[netip.Addr][]waiting // connections without an owner, the oldest first
	told   map[refusal]*refusals
}

// waiting is a connection that has not told yet whose it is.
type waiting struct {
	src   *accepted
	since time.Time
}

// refusal is what is logged once in a while, refusals when and how often.
type refusal struct {
	from netip.Addr
	why  string
}

type refusals struct {
	logged time.Time
	since  int // refusals not logged
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
	g := &gate{dialer: d, log: log.With("listener", ln.Addr().String()), refused: refused, ln: ln, conns: map[netip.Addr]int{}, idle: map[netip.Addr][]waiting{}, told: map[refusal]*refusals{}}
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

// refuse counts and logs a refusal, and tells the members that have this address.
func (g *gate) refuse(from netip.Addr, why string, err error) {
	g.refused(why)
	for _, c := range g.claimants(from) {
		for _, box := range c.ranks {
			box.refuse(why)
		}
	}
	if n, due := g.due(refusal{from, why}, time.Now()); due {
		g.log.Warn("refused an event publisher", "from", from, "why", why, "err", err, "more_since_the_last", n)
	}
}

// due reports whether a refusal is to be logged, and how many were not.
func (g *gate) due(what refusal, now time.Time) (n int, due bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.told[what]
	if r == nil {
		if len(g.told) >= refusalsKept {
			clear(g.told)
		}
		r = &refusals{}
		g.told[what] = r
	}
	if now.Sub(r.logged) < refusalEvery {
		r.since++
		return 0, false
	}
	n, r.logged, r.since = r.since, now, 0
	return n, true
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

// owner finds the member a connection belongs to; why is empty when the
// connection ended by itself.
func (g *gate) owner(from netip.Addr, src *accepted) (box *inbox, why string, err error) {
	here := g.claimants(from)
	if len(here) == 1 && len(here[0].ranks) == 1 {
		return here[0].ranks[0], "", nil
	}
	var topic string
	var payload []byte
	for {
		frames, err := src.link.Recv()
		if err != nil {
			return nil, "", nil
		}
		// Commands and other shapes tell nothing; the subscriber counts them.
		if topic, _, payload, err = event.ParseFrames(frames); err == nil {
			src.first = frames
			break
		}
	}
	c := here
	if len(c) != 1 {
		c = named(g.claimants(netip.Addr{}), here, topic)
	}
	if len(c) != 1 {
		return nil, refusedUnknown, fmt.Errorf("%d pods have this address, %d fit its topic", len(here), len(c))
	}
	rank := 0
	if n := len(c[0].ranks); n > 1 {
		var d event.Decoder
		var b event.Batch
		if err := d.Decode(payload, &b); err != nil || b.Rank < 0 || b.Rank >= n {
			return nil, refusedRank, fmt.Errorf("batch of rank %d, %d are configured", b.Rank, n)
		}
		rank = b.Rank
	}
	return c[0].ranks[rank], "", nil
}

// claimants returns the claims of an address, all for the zero one.
func (g *gate) claimants(from netip.Addr) (out []*claim) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.claims {
		if !from.IsValid() || c.from(from) {
			out = append(out, c)
		}
	}
	return out
}

// named returns the claims a topic kv@<pod>@<model> names, among those here if
// there are any. Pods are written ip:port, ip or by name; models may hold an @.
func named(all, here []*claim, topic string) (out []*claim) {
	parts := strings.SplitN(topic, "@", 3)
	if len(parts) < 3 || parts[0] != "kv" {
		return nil
	}
	if len(here) > 0 {
		all = here
	}
	for _, c := range all {
		if c.called(parts[1]) {
			out = append(out, c)
		}
	}
	return out
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
