package feed

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

// stored, removed and cleared are batches of one event, as vLLM writes them.
func stored(hash uint64) []byte {
	b := batchOf(0)
	b = msgp.AppendArrayHeader(b, 6)
	b = msgp.AppendString(b, "BlockStored")
	b = msgp.AppendUint64(msgp.AppendArrayHeader(b, 1), hash)
	b = msgp.AppendNil(b)
	b = msgp.AppendArrayHeader(b, 2)
	b = msgp.AppendUint64(msgp.AppendUint64(b, hash), 7)
	b = msgp.AppendInt(b, 2)
	b = msgp.AppendNil(b)
	return msgp.AppendInt(b, 0)
}

func removed(hash uint64) []byte {
	b := msgp.AppendString(msgp.AppendArrayHeader(batchOf(0), 2), "BlockRemoved")
	b = msgp.AppendUint64(msgp.AppendArrayHeader(b, 1), hash)
	return msgp.AppendInt(b, 0)
}

func cleared() []byte {
	b := msgp.AppendString(msgp.AppendArrayHeader(batchOf(0), 1), "AllBlocksCleared")
	return msgp.AppendInt(b, 0)
}

// batchOf begins a batch of one event; the rank comes behind it.
func batchOf(at float64) []byte {
	return msgp.AppendArrayHeader(msgp.AppendFloat64(msgp.AppendArrayHeader(nil, 3), at), 1)
}

// tape is a sink that writes down what it is told: "+hash", "-hash", "clear" and
// "purge". hold makes it as slow as a busy index.
type tape struct {
	mu   sync.Mutex
	ops  []string
	hold chan struct{} // when not nil, ApplyBatch waits for it
}

func (l *tape) ApplyBatch(_ pod.Member, events []event.Event, _ int64) (inflated bool) {
	if l.hold != nil {
		<-l.hold
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range events {
		switch e := &events[i]; e.Kind {
		case event.Stored:
			l.ops = append(l.ops, fmt.Sprintf("+%d", e.Hashes[0]))
		case event.Removed:
			l.ops = append(l.ops, fmt.Sprintf("-%d", e.Hashes[0]))
		case event.Cleared:
			l.ops = append(l.ops, "clear")
		}
	}
	return false
}

func (l *tape) Purge(pod.Member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ops = append(l.ops, "purge")
}

func (l *tape) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ops)
}

func (l *tape) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.ops, " ")
}

// rig is one subscriber under test.
type rig struct {
	t    *testing.T
	sub  *subscriber
	sink *tape
	stop func()
}

func subscribe(t *testing.T, from opener, replay string) *rig {
	t.Helper()
	r := &rig{t: t, sink: &tape{}}
	r.sub = newSubscriber("p", 0, 3, from, r.sink, &view.SyncBoard{}, newReplayer(dialer{}), slog.New(slog.DiscardHandler))
	r.sub.wait.max = 200 * time.Millisecond
	if replay != "" {
		r.sub.setReplay("tcp://" + replay)
	}
	return r
}

// start runs the subscriber until the test ends.
func (r *rig) start() *rig {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); r.sub.run(ctx) }()
	r.stop = sync.OnceFunc(func() { cancel(); <-done })
	r.t.Cleanup(r.stop)
	return r
}

func (r *rig) state() view.SyncState { return r.sub.board.Get(r.sub.member).State }

func (r *rig) waitState(want view.SyncState) {
	r.t.Helper()
	eventually(r.t, "state "+want.String(), func() bool { return r.state() == want }, func() string {
		s := r.sub.board.Get(r.sub.member)
		return fmt.Sprintf("state %v (%s: %s), %v", s, s.Why, s.Detail, r.sink)
	})
}

func (r *rig) waitOps(want string) {
	r.t.Helper()
	eventually(r.t, want, func() bool { return r.sink.String() == want }, r.sink.String)
}

func (r *rig) counters() Counters { return r.sub.count.snapshot() }

func eventually(t *testing.T, what string, ok func() bool, got func() string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s; got %s", what, got())
		}
	}
}

func publisher(t *testing.T, addr string, o zmtp.Options) *zmtp.Publisher {
	t.Helper()
	p, err := zmtp.Listen(addr, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func replayServer(t *testing.T, o zmtp.ReplayOptions) *zmtp.Replay {
	t.Helper()
	r, err := zmtp.ListenReplay("127.0.0.1:0", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func to(p *zmtp.Publisher) opener { return dialled{dialer{}, "tcp://" + p.Addr()} }

func subscribed(t *testing.T, p *zmtp.Publisher) {
	t.Helper()
	eventually(t, "a subscriber", func() bool { return p.Subscribers() > 0 }, func() string { return "none" })
}

// free returns an address nobody listens at.
func free(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// The publisher comes, goes and comes back, and every time is subscribed to
// again. The engine's process is known, so that numbers alone tell.
func TestPublisherComesAndGoes(t *testing.T) {
	start := func(t *testing.T, addr string) *rig {
		r := subscribe(t, dialled{dialer{}, "tcp://" + addr}, "")
		r.sub.wait.max = 20 * time.Millisecond
		r.start()
		r.sub.identify(identity{id: 1, at: Now()})
		return r
	}
	// failing waits for attempts that find nobody.
	failing := func(t *testing.T, r *rig, attempts uint64) {
		t.Helper()
		from := r.counters().Faults["dial"]
		eventually(t, "failed attempts", func() bool { return r.counters().Faults["dial"] >= from+attempts },
			func() string { return fmt.Sprint(r.counters().Faults) })
	}
	send := func(t *testing.T, r *rig, p *zmtp.Publisher, seq uint64) {
		t.Helper()
		subscribed(t, p)
		p.Send("", seq, stored(seq))
		r.waitOps(contiguous(0, seq+1))
	}
	t.Run("ZF-01 the publisher binds late", func(t *testing.T) {
		addr := free(t)
		r := start(t, addr)
		failing(t, r, 3)
		if r.state() != view.Connecting {
			t.Errorf("state %v", r.state())
		}
		send(t, r, publisher(t, addr, zmtp.Options{}), 0)
	})
	t.Run("ZF-05 away for a while", func(t *testing.T) {
		p := publisher(t, "127.0.0.1:0", zmtp.Options{})
		addr := p.Addr()
		r := start(t, addr)
		send(t, r, p, 0)
		for i, attempts := range []uint64{1, 10, 100} {
			p.Close()
			failing(t, r, attempts)
			p = publisher(t, addr, zmtp.Options{})
			send(t, r, p, uint64(i)+1)
		}
	})
	t.Run("ZF-41 restarted fifty times", func(t *testing.T) {
		addr := free(t)
		r := start(t, addr)
		for i := range uint64(50) {
			p, err := zmtp.Listen(addr, zmtp.Options{})
			if err != nil {
				t.Fatal(err)
			}
			send(t, r, p, i)
			p.Close()
		}
		if c := r.counters(); c.Connections != 50 || c.Faults["eof"]+c.Faults["reset"] < 49 || c.Lost != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// No storm against a peer that accepts and closes.
func TestBackoff(t *testing.T) {
	t.Run("ZF-03 accept and close for seconds", func(t *testing.T) {
		var accepted atomic.Int64
		at := peer(t, func(net.Conn) { accepted.Add(1) })
		r := subscribe(t, dialled{dialer{}, at}, "")
		r.sub.wait.max = 0 // as in production
		r.start()
		time.Sleep(5 * time.Second)
		r.stop()
		if n := accepted.Load(); n > 50 { // unbounded it would be thousands
			t.Errorf("%d attempts in five seconds", n)
		}
		if c := r.counters(); c.Faults["handshake"]+c.Faults["reset"] == 0 || c.Connections != 0 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("steps", func(t *testing.T) {
		var b backoff
		for i := range 10 {
			if d := b.next(); d < 0 || d > min(backoffFirst<<i, backoffMax) {
				t.Errorf("attempt %d waits %v", i, d)
			}
		}
	})
}

// Two pods, one restarts.
func TestTwoPods(t *testing.T) {
	t.Run("ZF-06 one of two restarts", func(t *testing.T) {
		a, b := publisher(t, "127.0.0.1:0", zmtp.Options{}), publisher(t, "127.0.0.1:0", zmtp.Options{})
		ra, rb := subscribe(t, to(a), "").start(), subscribe(t, to(b), "").start()
		subscribed(t, a)
		subscribed(t, b)
		a.Send("", 0, stored(1))
		b.Send("", 0, stored(2))
		ra.waitOps("+1")
		a.Close()
		a = publisher(t, a.Addr(), zmtp.Options{})
		subscribed(t, a)
		a.Send("", 0, stored(3))
		b.Send("", 1, stored(4))
		ra.waitOps("+1 purge +3")
		rb.waitOps("+2 +4")
		if c := ra.counters(); c.Purges["reconnect"] != 1 {
			t.Errorf("%v", c.Purges)
		}
	})
}

func TestWrongShapes(t *testing.T) {
	seq := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	t.Run("ZF-14 other frames, unknown commands", func(t *testing.T) {
		p := publisher(t, "127.0.0.1:0", zmtp.Options{})
		r := subscribe(t, to(p), "").start()
		subscribed(t, p)
		p.SendFrames(nil)
		p.SendFrames(nil, seq(0))
		p.SendFrames(nil, seq(0), nil, nil)
		p.SendFrames(nil, []byte{0, 0, 0, 0}, stored(9))
		p.SendRaw(zmtp.AppendCommand(nil, "NONSENSE", []byte("x")))
		p.Send("", 0, []byte("no msgpack"))
		p.Send("", 1, stored(1))
		r.waitOps("purge +1") // a batch that is none may have been a removal
		r.waitState(view.Partial)
		c := r.counters()
		for _, s := range []string{"1 frames", "2 frames", "4 frames", "sequence of 4 bytes"} {
			if c.WrongShape[s] != 1 {
				t.Errorf("%s: %v", s, c.WrongShape)
			}
		}
		if c.Undecodable != 1 || c.Commands == 0 || c.Connections != 1 || c.Peer != "3.1" || c.Batches != 2 || c.Stored != 1 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("ZF-39 every topic, one with a suffix", func(t *testing.T) {
		p := publisher(t, "127.0.0.1:0", zmtp.Options{})
		r := subscribe(t, to(p), "").start()
		subscribed(t, p)
		topics := []string{"", "kv@10.0.0.1:8000@org/model", "kv@x@y\x00sgl-kv-epoch=0a"}
		for i, topic := range topics {
			p.Send(topic, uint64(i), stored(uint64(i)))
		}
		r.waitOps("+0 +1 +2")
		topic, _, _, err := event.ParseFrames([][]byte{[]byte(topics[2]), seq(0), nil})
		if err != nil || topic != "kv@x@y" {
			t.Errorf("topic %q, %v", topic, err)
		}
	})
}

// stream publishes n batches that store their own number and records them.
func stream(p *zmtp.Publisher, r *zmtp.Replay, from, to uint64) {
	for i := from; i < to; i++ {
		r.Record(i, "t", stored(i))
		if p != nil {
			p.Send("t", i, stored(i))
		}
	}
}

func contiguous(from, to uint64) string {
	var ops []string
	for i := from; i < to; i++ {
		ops = append(ops, fmt.Sprintf("+%d", i))
	}
	return strings.Join(ops, " ")
}

func TestReplay(t *testing.T) {
	t.Run("ZF-25 joined late, before any live event", func(t *testing.T) {
		p, rp := publisher(t, "127.0.0.1:0", zmtp.Options{}), replayServer(t, zmtp.ReplayOptions{})
		stream(nil, rp, 0, 100)
		r := subscribe(t, to(p), rp.Addr()).start()
		r.waitState(view.Live)
		stream(p, rp, 100, 103)
		r.waitOps(contiguous(0, 103))
	})
	t.Run("ZF-33 our request has the delimiter", func(t *testing.T) {
		p, rp := publisher(t, "127.0.0.1:0", zmtp.Options{}), replayServer(t, zmtp.ReplayOptions{})
		stream(nil, rp, 0, 3)
		r := subscribe(t, to(p), rp.Addr()).start()
		r.waitState(view.Live)
		if rp.Ignored() != 0 || rp.Requests() != 1 {
			t.Errorf("%d requests without delimiter, %d with it", rp.Ignored(), rp.Requests())
		}
	})
	for _, bare := range []bool{false, true} {
		t.Run(fmt.Sprintf("ZF-19 gap, ZF-30 bare %v", bare), func(t *testing.T) {
			p, rp := publisher(t, "127.0.0.1:0", zmtp.Options{}), replayServer(t, zmtp.ReplayOptions{Bare: bare})
			r := subscribe(t, to(p), rp.Addr()).start()
			subscribed(t, p)
			stream(p, rp, 0, 11)
			r.waitOps(contiguous(0, 11))
			stream(nil, rp, 11, 15)
			stream(p, rp, 15, 17)
			r.waitOps(contiguous(0, 17))
			r.waitState(view.Live)
			if c := r.counters(); c.Missed != 4 || c.Lost != 0 || c.Replays["filled"] == 0 {
				t.Errorf("%+v", c)
			}
		})
	}
	t.Run("ZF-28 holes at every 1000th", func(t *testing.T) {
		p := publisher(t, "127.0.0.1:0", zmtp.Options{})
		rp := replayServer(t, zmtp.ReplayOptions{Keep: func(request int, seq uint64) bool {
			return seq%1000 != 999 || seq < uint64(request)*1000-1
		}})
		stream(nil, rp, 0, 5500)
		r := subscribe(t, to(p), rp.Addr()).start()
		r.waitState(view.Live)
		r.waitOps(contiguous(0, 5500))
		if c := r.counters(); c.ReplayRounds != 6 || rp.Requests() != 6 {
			t.Errorf("%d rounds, %d requests", c.ReplayRounds, rp.Requests())
		}
	})
	t.Run("ZF-29 no end marker", func(t *testing.T) {
		p, rp := publisher(t, "127.0.0.1:0", zmtp.Options{}), replayServer(t, zmtp.ReplayOptions{NoEnd: true})
		stream(nil, rp, 0, 10)
		r := subscribe(t, to(p), rp.Addr()).start()
		r.waitState(view.Live)
		if c := r.counters(); c.ReplayRounds != 2 || c.Replays["filled"] != 1 || r.sink.String() != contiguous(0, 10) {
			t.Errorf("%+v, %v", c, r.sink)
		}
	})
	t.Run("ZF-26 history gone", func(t *testing.T) {
		p, rp := publisher(t, "127.0.0.1:0", zmtp.Options{}), replayServer(t, zmtp.ReplayOptions{Size: 40})
		stream(nil, rp, 0, 100)
		r := subscribe(t, to(p), rp.Addr()).start()
		r.waitState(view.Partial)
		r.waitOps("purge " + contiguous(60, 100))
	})
	t.Run("ZF-32 removal arrives live during the replay", func(t *testing.T) {
		p := publisher(t, "127.0.0.1:0", zmtp.Options{})
		reached := make(chan struct{})
		rp := replayServer(t, zmtp.ReplayOptions{Keep: func(_ int, seq uint64) bool {
			if seq == 0 {
				<-reached
			}
			return seq < 2
		}})
		stream(nil, rp, 0, 2)
		rp.Record(2, "", removed(1))
		r := subscribe(t, to(p), rp.Addr()).start()
		subscribed(t, p)
		p.Send("", 2, removed(1))
		eventually(t, "the live batch is here", func() bool { return r.counters().Batches == 1 }, func() string { return "" })
		close(reached)
		r.waitOps("+0 +1 -1")
		r.waitState(view.Live)
	})
	t.Run("ZF-34 no progress", func(t *testing.T) {
		p := publisher(t, "127.0.0.1:0", zmtp.Options{})
		rp := replayServer(t, zmtp.ReplayOptions{Keep: func(_ int, seq uint64) bool { return false }})
		r := subscribe(t, to(p), rp.Addr()).start()
		r.waitState(view.Live) // an engine that has published nothing
		stream(p, rp, 5, 8)
		r.waitOps(contiguous(5, 8))
		r.waitState(view.Partial)
		stream(p, rp, 9, 10) // cooling down: not asked again
		r.waitOps(contiguous(5, 8) + " purge +9")
		if c := r.counters(); c.ReplayRounds != 1+replayStuck || c.Replays["failed"] != 1 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("replay port refuses", func(t *testing.T) {
		p := publisher(t, "127.0.0.1:0", zmtp.Options{})
		r := subscribe(t, to(p), free(t)).start()
		eventually(t, "failed", func() bool { return r.counters().Replays["failed"] == 1 }, func() string { return "" })
		p.Send("", 7, stored(7))
		p.Send("", 8, cleared())
		r.waitOps("+7 clear")
		r.waitState(view.Live) // what was lost before is gone in the engine too
	})
}

func TestReplaysAtOnce(t *testing.T) {
	t.Run("ZF-35 fifty at once", func(t *testing.T) {
		var mu sync.Mutex
		var running, most int
		rep := newReplayer(dialer{})
		at := peerAtOnce(t, func(nc net.Conn) {
			c, err := zmtp.Handshake(nc, "ROUTER", 1)
			if err != nil {
				return
			}
			c.Recv()
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(20 * time.Millisecond)
			mu.Lock()
			running--
			mu.Unlock()
			c.Send(nil, nil, endMarker, nil)
		})
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				end, _, err := rep.run(t.Context(), at, 0, &machine{t: t, q: &sequence{}})
				if end != replayFilled {
					t.Errorf("%v, %v", end, err)
				}
			})
		}
		wg.Wait()
		if most > 8 || most < 2 {
			t.Errorf("%d replays at once", most)
		}
	})
}

// peerAtOnce is peer with all its connections served at the same time.
func peerAtOnce(t *testing.T, script func(net.Conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { defer nc.Close(); script(nc) })
		}
	})
	t.Cleanup(func() { ln.Close(); wg.Wait() })
	return "tcp://" + ln.Addr().String()
}

// An index that stops costs batches, counted, and not the socket.
func TestSlowIndex(t *testing.T) {
	t.Run("ZF-36 the index stops", func(t *testing.T) {
		p, rp := publisher(t, "127.0.0.1:0", zmtp.Options{Queue: 1 << 20}), replayServer(t, zmtp.ReplayOptions{Size: 1 << 20})
		r := subscribe(t, to(p), rp.Addr())
		r.sink.hold = make(chan struct{})
		r.sub.queue.grace = 50 * time.Millisecond
		r.start()
		subscribed(t, p)
		const n = 4 * queueBatches
		stream(p, rp, 0, n)
		eventually(t, "everything read", func() bool { return r.counters().Batches == n }, func() string { return fmt.Sprint(r.counters().Batches) })
		r.sub.queue.mu.Lock()
		waiting := len(r.sub.queue.items)
		r.sub.queue.mu.Unlock()
		if waiting > queueBatches+1 || r.counters().QueueDrops < n-2*queueBatches {
			t.Errorf("%d wait, %d dropped", waiting, r.counters().QueueDrops)
		}
		close(r.sink.hold)
		// The engine is silent from here: the mark of the drop alone leads to the replay.
		eventually(t, "all applied", func() bool { return r.sink.len() >= n }, func() string { return fmt.Sprintf("%d, %+v", r.sink.len(), r.counters()) })
		r.waitState(view.Live)
		if r.sink.String() != contiguous(0, n) {
			t.Error("not contiguous")
		}
		if c := r.counters(); c.Missed == 0 || c.Lost != 0 {
			t.Errorf("missed %d, lost %d", c.Missed, c.Lost)
		}
	})
}

// The engine's process changed: its blocks go at once, without an event.
func TestIdentityChange(t *testing.T) {
	p := publisher(t, "127.0.0.1:0", zmtp.Options{})
	r := subscribe(t, to(p), "").start()
	subscribed(t, p)
	r.sub.identify(identity{id: 100, at: Now()})
	p.Send("", 0, stored(1))
	r.waitOps("+1")
	p.Close()
	p = publisher(t, p.Addr(), zmtp.Options{})
	subscribed(t, p)
	r.sub.identify(identity{id: 200, at: Now()})
	r.waitOps("+1 purge")
	if c := r.counters(); c.Purges[purgeIdentity] != 1 {
		t.Errorf("%v", c.Purges)
	}
}

// A replay of a dying engine ends with the live connection.
func TestDisconnectAbortsReplay(t *testing.T) {
	p := publisher(t, "127.0.0.1:0", zmtp.Options{})
	at := peerAtOnce(t, func(nc net.Conn) {
		c, err := zmtp.Handshake(nc, "ROUTER", 1)
		if err != nil {
			return
		}
		for i := uint64(0); ; i++ { // never ends by itself
			if c.Send(nil, nil, binary.BigEndian.AppendUint64(nil, i), stored(i)) != nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
	r := subscribe(t, to(p), strings.TrimPrefix(at, "tcp://")).start()
	eventually(t, "replaying", func() bool { return r.sink.String() != "" }, func() string { return "" })
	if r.state() != view.Syncing {
		t.Errorf("state %v", r.state())
	}
	p.Close()
	eventually(t, "aborted", func() bool { return r.counters().Replays["aborted"] == 1 }, func() string { return fmt.Sprint(r.counters()) })
	r.waitState(view.Connecting)
}

// What is still queued of a connection that has ended starts no replays; the
// next connection's brings it.
func TestDeadSessionStartsNoReplay(t *testing.T) {
	rp := replayServer(t, zmtp.ReplayOptions{})
	stream(nil, rp, 0, 3)
	r := subscribe(t, nil, rp.Addr())
	ctx, stop := context.WithCancel(t.Context())
	var applier sync.WaitGroup
	applier.Go(func() { r.sub.applyAll(ctx) })
	defer applier.Wait()
	defer stop()
	session, end := context.WithCancel(t.Context())
	r.sub.queue.put(ctx, item{kind: itemUp, session: session})
	r.waitOps("+0 +1 +2")
	eventually(t, "replayed", func() bool { return r.counters().Replays["filled"] == 1 }, func() string { return "" })
	stream(nil, rp, 3, 100)
	end()
	for i := uint64(5); i < 100; i++ { // behind a hole
		r.sub.queue.put(ctx, item{seq: i, payload: stored(i), at: Now()})
	}
	r.sub.queue.put(ctx, item{kind: itemDown, at: Now()})
	eventually(t, "down", func() bool { return r.state() == view.Connecting && r.counters().Missed > 0 }, func() string { return fmt.Sprint(r.state()) })
	if c := r.counters(); rp.Requests() != 1 || len(c.Replays) != 1 || c.Replays["filled"] != 1 || r.sink.String() != contiguous(0, 3) {
		t.Errorf("%d requests, %v, %v", rp.Requests(), c.Replays, r.sink)
	}
	r.sub.identify(identity{id: 1, at: Now()})
	r.sub.queue.put(ctx, item{kind: itemUp, session: ctx})
	r.waitOps(contiguous(0, 3) + " purge " + contiguous(0, 100))
}

// Lag counts from the promptest batch, whatever the clocks say.
func TestLag(t *testing.T) {
	r := subscribe(t, nil, "")
	r.sub.order.connected, r.sub.order.confirmed, r.sub.order.history = true, true, whole
	at := int64(5000) // s
	comes := func(skew, late float64, want view.SyncState) {
		t.Helper()
		at += 10
		now := at * int64(time.Second)
		r.sub.lag(float64(at)-skew-late, now, now)
		if st := r.sub.order.state(at * int64(time.Second)); st.State != want {
			t.Errorf("%v s late, clock %v s behind: %+v", late, skew, st)
		}
	}
	comes(1000, 1, view.Live)
	comes(1000, 0, view.Live)
	comes(1000, 3, view.Live)
	comes(1000, 8, view.Stale)
	comes(1000, 0, view.Live)
	comes(2000, 0, view.Live) // the engine's clock is set back
	comes(2000, 8, view.Stale)
	comes(100, 0, view.Live) // and forward
	comes(100, 8, view.Stale)

	// A clock that drifts away by 8 s and stays there is late for some minutes.
	for drift := range 6 {
		comes(100+float64(drift), 0, view.Live)
	}
	comes(100+8, 0, view.Stale)
	for range 2 * promptestFor / (10 * time.Second) {
		at += 10
		r.sub.lag(float64(at)-108, at*int64(time.Second), at*int64(time.Second))
	}
	comes(100+8, 0, view.Live)
	comes(100+8, 6, view.Stale)

	// What has waited in our own queue is late by that.
	at += 10
	r.sub.lag(float64(at)-108, at*int64(time.Second), (at+6)*int64(time.Second))
	if st := r.sub.order.state(at); st.Why != reason.EventsLate {
		t.Errorf("6 s in the queue: %+v", st)
	}
	// A stamp can say anything.
	r.sub.lag(1e18, at*int64(time.Second), at*int64(time.Second))
	r.sub.lag(1, at*int64(time.Second), at*int64(time.Second))
	r.sub.lag(0.5, at*int64(time.Second), at*int64(time.Second))
	if l := r.sub.order.late; l < 0 || l > maxLag {
		t.Errorf("late by %v", l)
	}
}

func TestQueueMarksDrops(t *testing.T) {
	q := newQueue()
	q.grace = time.Millisecond
	ctx := t.Context()
	var puts []bool
	for i := range uint64(queueBatches + 3) {
		puts = append(puts, q.put(ctx, item{seq: i}))
	}
	if slices.Index(puts, false) != queueBatches || slices.Contains(puts[queueBatches:], true) {
		t.Errorf("kept %d of %d", slices.Index(puts, false), len(puts))
	}
	q.put(ctx, item{kind: itemDown})
	for i := range queueBatches {
		it, ok := q.take()
		want := item{seq: uint64(i)}
		if i == queueBatches-1 {
			want.dropped, want.last = 3, queueBatches+2
		}
		if !ok || it.seq != want.seq || it.dropped != want.dropped || it.last != want.last {
			t.Fatalf("item %d: %+v, want %+v", i, it, want)
		}
	}
	if it, ok := q.take(); !ok || it.kind != itemDown {
		t.Errorf("%+v: the end of the connection was dropped", it)
	}
	if _, ok := q.take(); ok || q.bytes != 0 {
		t.Errorf("%d bytes left", q.bytes)
	}
	// By bytes, but never less than one.
	if !q.put(ctx, item{payload: make([]byte, queueBytes+1)}) || q.put(ctx, item{payload: []byte{1}}) {
		t.Error("bound by bytes")
	}
}

var _ io.Closer = FrameSource(nil)
