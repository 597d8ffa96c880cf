package feed

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

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
		subscribed(t, p)
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
		eventually(t, "the live batch is here", func() bool { return r.counters().Batches == 1 }, nil)
		close(reached)
		r.waitOps("+0 +1 -1")
		r.waitState(view.Live)
	})
	t.Run("ZF-34 no progress", func(t *testing.T) {
		p := publisher(t, "127.0.0.1:0", zmtp.Options{})
		rp := replayServer(t, zmtp.ReplayOptions{Keep: func(_ int, seq uint64) bool { return false }})
		r := subscribe(t, to(p), rp.Addr()).start()
		r.waitState(view.Live) // an engine that has published nothing
		subscribed(t, p)
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
		eventually(t, "failed", func() bool { return r.counters().Replays["failed"] == 1 }, nil)
		subscribed(t, p)
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
	eventually(t, "replaying", func() bool { return r.sink.String() != "" }, nil)
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
	eventually(t, "replayed", func() bool { return r.counters().Replays["filled"] == 1 }, nil)
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
