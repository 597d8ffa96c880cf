package feed

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

func gateFor(t *testing.T, lim Limits) (g *gate, refused func() map[string]int) {
	t.Helper()
	var mu sync.Mutex
	counts := map[string]int{}
	g, err := openGate("tcp://127.0.0.1:0", dialer{lim: lim}, slog.New(slog.DiscardHandler), func(why string) {
		mu.Lock()
		defer mu.Unlock()
		counts[why]++
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.close)
	return g, func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(counts)
	}
}

func claimOf(t *testing.T, g *gate, name, addr string, ranks int) *claim {
	t.Helper()
	a, _ := netip.ParseAddrPort(addr)
	c := newClaim(pod.Spec{Name: name, Address: addr}, a, ranks)
	g.join(c)
	t.Cleanup(func() {
		for _, b := range c.ranks {
			b.close()
		}
	})
	return c
}

// dialIn is a publisher that dials the gate.
func dialIn(t *testing.T, g *gate) *zmtp.Publisher {
	t.Helper()
	p := zmtp.Dial(g.ln.Addr().String(), zmtp.Options{})
	t.Cleanup(func() { p.Close() })
	subscribed(t, p)
	return p
}

func waitRefused(t *testing.T, refused func() map[string]int, why string) {
	t.Helper()
	eventually(t, "refused: "+why, func() bool { return refused()[why] > 0 }, func() string { return "none" })
}

func TestGate(t *testing.T) {
	t.Run("ZF-37 closes and comes back", func(t *testing.T) {
		g, _ := gateFor(t, Limits{})
		r := subscribe(t, claimOf(t, g, "p", "127.0.0.1:8000", 1).ranks[0], "").start()
		for i, want := range []string{"+0", "+0 purge +1", "+0 purge +1 purge +2"} {
			p := dialIn(t, g)
			p.Send("", uint64(i), stored(uint64(i)))
			r.waitOps(want)
			p.Close()
		}
	})
	t.Run("ZF-37 unknown address, no topic", func(t *testing.T) {
		g, refused := gateFor(t, Limits{})
		claimOf(t, g, "p", "10.0.0.1:8000", 1)
		dialIn(t, g).Send("", 0, stored(1))
		waitRefused(t, refused, refusedUnknown)
	})
	t.Run("one address, two pods: the topic tells", func(t *testing.T) {
		g, refused := gateFor(t, Limits{})
		a := subscribe(t, claimOf(t, g, "a", "127.0.0.1:8000", 1).ranks[0], "").start()
		b := subscribe(t, claimOf(t, g, "b", "127.0.0.1:8001", 1).ranks[0], "").start()
		dialIn(t, g).Send("kv@127.0.0.1:8001@org/model@v1", 0, stored(1))
		dialIn(t, g).Send("kv@a@m", 0, stored(2))
		b.waitOps("+1")
		a.waitOps("+2")
		dialIn(t, g).Send("kv@127.0.0.1@m", 0, stored(3)) // both have that address
		waitRefused(t, refused, refusedUnknown)
	})
	t.Run("no pod has the address: the topic tells", func(t *testing.T) {
		g, _ := gateFor(t, Limits{})
		r := subscribe(t, claimOf(t, g, "behind-nat", "10.0.0.1:8000", 1).ranks[0], "").start()
		dialIn(t, g).Send("kv@behind-nat@m", 0, stored(1))
		r.waitOps("+1")
	})
	t.Run("ranks by their batches", func(t *testing.T) {
		g, refused := gateFor(t, Limits{})
		c := claimOf(t, g, "p", "127.0.0.1:8000", 2)
		r := subscribe(t, c.ranks[1], "").start()
		ofRank := func(rank int, b []byte) []byte { return msgp.AppendInt(b[:len(b)-1], rank) }
		dialIn(t, g).Send("", 0, ofRank(1, stored(1)))
		r.waitOps("+1")
		dialIn(t, g).Send("", 0, ofRank(2, stored(1)))
		waitRefused(t, refused, refusedRank)
	})
	t.Run("handshake", func(t *testing.T) {
		g, refused := gateFor(t, Limits{Handshake: 200 * time.Millisecond})
		nc, err := net.Dial("tcp", g.ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		waitRefused(t, refused, refusedHandshake) // silent
	})
	t.Run("connections per address", func(t *testing.T) {
		g, refused := gateFor(t, Limits{Handshake: time.Minute}) // they stay
		for range perPeer + 1 {
			nc, err := net.Dial("tcp", g.ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
		}
		waitRefused(t, refused, refusedLimit)
		if n := refused()[refusedLimit]; n != 1 {
			t.Errorf("%d refused", n)
		}
	})
	t.Run("idle connections make room", func(t *testing.T) {
		g, refused := gateFor(t, Limits{})
		a := subscribe(t, claimOf(t, g, "a", "127.0.0.1:8000", 1).ranks[0], "").start()
		b := subscribe(t, claimOf(t, g, "b", "127.0.0.1:8001", 1).ranks[0], "").start()
		for range perPeer {
			dialIn(t, g) // and says nothing
		}
		p := zmtp.Dial(g.ln.Addr().String(), zmtp.Options{})
		t.Cleanup(func() { p.Close() })
		waitRefused(t, refused, refusedLimit) // until one has kept its place for a while
		for _, r := range []*rig{a, b} {
			eventually(t, "told why", func() bool { return r.sub.board.Get(3).Detail == "refused: too many connections" },
				func() string { return fmt.Sprintf("%+v", r.sub.board.Get(3)) })
		}
		subscribed(t, p)
		p.Send("kv@a@m", 0, stored(1))
		a.waitOps("+1")
	})
	t.Run("one address of many publishers", func(t *testing.T) {
		g, refused := gateFor(t, Limits{})
		for i := range 2 * perPeer {
			name := string(rune('a' + i))
			r := subscribe(t, claimOf(t, g, name, "10.0.0.1:8000", 1).ranks[0], "").start()
			dialIn(t, g).Send("kv@"+name+"@m", 0, stored(1))
			r.waitOps("+1")
		}
		if n := refused(); len(n) > 0 {
			t.Errorf("refused %v", n)
		}
	})
	t.Run("a new connection replaces the old one", func(t *testing.T) {
		g, _ := gateFor(t, Limits{})
		r := subscribe(t, claimOf(t, g, "p", "127.0.0.1:8000", 1).ranks[0], "").start()
		old := dialIn(t, g)
		old.Send("", 0, stored(1))
		r.waitOps("+1")
		p := dialIn(t, g)
		p.Send("", 0, stored(2))
		r.waitOps("+1 purge +2")
	})
}

// The same refusal is logged once a minute, with the number of those between.
func TestRefusalsLogged(t *testing.T) {
	var said refusals
	at := time.Now()
	what := refusal{why: refusedLimit}
	for i, want := range []bool{true, false, false, true} {
		if i == 3 {
			at = at.Add(refusalEvery)
		}
		n, due := said.due(what, at)
		if due != want || due && n != []int{0, 0, 0, 2}[i] {
			t.Errorf("%d: %v, %d not logged", i, due, n)
		}
	}
	for i := range 2 * refusalsKept {
		said.due(refusal{why: strconv.Itoa(i)}, at)
	}
	if n := len(said.last); n > refusalsKept {
		t.Errorf("%d kept", n)
	}
}

// An inbox that nobody opens any more closes what it is given.
func TestInboxClosed(t *testing.T) {
	b := newInbox()
	b.close()
	if b.offer(nil) {
		t.Error("took a connection")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.open(ctx); faultOf(err) != FaultClosed {
		t.Error(err)
	}
}
