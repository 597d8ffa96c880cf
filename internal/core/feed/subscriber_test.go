package feed

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

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
		addr := free(t)
		p := publisher(t, addr, zmtp.Options{})
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
		a, b := publisher(t, free(t), zmtp.Options{}), publisher(t, "127.0.0.1:0", zmtp.Options{})
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
		p, r := following(t)
		p.SendFrames(nil)
		p.SendFrames(nil, seq(0))
		p.SendFrames(nil, seq(0), nil, nil)
		p.SendFrames(nil, []byte{0, 0, 0, 0}, stored(9))
		p.SendRaw(zmtp.AppendCommand(nil, "NONSENSE", []byte("x")))
		p.Send("", 0, []byte("no msgpack"))
		p.Send("", 1, stored(1))
		r.waitOps("purge +1") // a batch that is none may have been a removal
		r.waitState(view.Partial)
		eventually(t, "counted", func() bool { return r.counters().Stored == 1 }, nil) // behind what is applied
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
		p, r := following(t)
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
	p := publisher(t, free(t), zmtp.Options{})
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
	eventually(t, "counted", func() bool { return r.counters().Purges[purgeIdentity] == 1 }, func() string { return fmt.Sprint(r.counters().Purges) })
}

var _ io.Closer = FrameSource(nil)
