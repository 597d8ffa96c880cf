package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/view"
)

// subscriber keeps one member's event stream alive: a reader goroutine that owns
// the connection and an applier goroutine that owns the sequence and the
// member's part of the index, with a bounded queue between them. run starts
// both; identify and setReplay may be called from anywhere while it runs.
type subscriber struct {
	member pod.Member
	from   opener
	sink   sink
	board  *view.SyncBoard
	replay *replayer
	log    *slog.Logger
	count  *counts
	queue  *queue
	wait   backoff // the reader's

	replayAt  atomic.Pointer[string]   // endpoint, nil = none
	seen      atomic.Pointer[identity] // latest
	malformed atomic.Pointer[string]   // shape of the newest message, nil when it is right
	nudge     chan struct{}            // capacity 1: one of these has changed
	observer  *observer                // nil = nobody can look on

	// routed counts the requests whose end must have made the engine publish;
	// nil = nobody counts them. The last of them that the stream answered is the
	// applier's.
	routed func() uint64

	// emptied hears that the engine's cache is empty, from the applier's goroutine:
	// it was cleared, or the engine is a new process. That we lost sight of its
	// blocks is not that. nil = nobody asks.
	emptied func()

	applier
}

// identity tells one process of an engine from the next.
type identity struct {
	// id is the start time of the process (Unix seconds by its own clock), or,
	// where the engine does not tell, the number of restarts guessed from what
	// it counts.
	id      float64
	guessed bool
	at      int64 // ns: when it was seen
}

func newSubscriber(name string, rank int, m pod.Member, from opener, s sink, b *view.SyncBoard, r *replayer, log *slog.Logger) *subscriber {
	sub := &subscriber{
		member: m, from: from, sink: s, board: b, replay: r,
		log:   log.With("pod", name, "rank", rank),
		count: &counts{c: Counters{Pod: name, Rank: rank, Member: m}},
		queue: newQueue(),
		nudge: make(chan struct{}, 1),

		applier: applier{decoder: &event.Decoder{}},
	}
	if from != nil && from.passive() {
		sub.order.cut = "no publisher has dialled in that is known to be this rank's"
	}
	return sub
}

// run serves the stream until ctx ends. The member's blocks stay; whoever
// removes the member purges them.
func (s *subscriber) run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { s.read(ctx) })
	wg.Go(func() { s.applyAll(ctx) })
	wg.Wait()
}

// setReplay tells where missed batches can be had.
func (s *subscriber) setReplay(endpoint string) {
	s.replayAt.Store(&endpoint)
	signal(s.nudge)
}

// identify tells which process the last scrape came from.
func (s *subscriber) identify(id identity) {
	s.seen.Store(&id)
	signal(s.nudge)
}

// read connects, receives and queues, for as long as ctx lives. It waits for
// nothing but the socket and, a short time, for room in the queue.
func (s *subscriber) read(ctx context.Context) {
	for ctx.Err() == nil {
		src, err := s.from.open(ctx)
		apart := reason.Unreachable
		if err == nil {
			apart = reason.Disconnected
			start := time.Now()
			err = s.receive(ctx, src)
			if time.Since(start) >= healthy {
				s.wait.reset()
			}
		}
		if ctx.Err() != nil {
			return
		}
		s.count.add(func(c *Counters) { inc(&c.Faults, string(faultOf(err))) })
		s.log.Debug("event connection ended", "err", err)
		s.queue.put(ctx, item{kind: itemDown, at: Now(), apart: apart, why: printable(err.Error(), 200)})
		if !s.from.passive() {
			_ = sleep(ctx, s.wait.next()) // the loop looks at ctx
		}
	}
}

// receive queues one connection's batches until it ends.
func (s *subscriber) receive(ctx context.Context, src FrameSource) error {
	defer src.Close()
	// A connection that was accepted does not know our context.
	stop := context.AfterFunc(ctx, func() { src.Close() })
	defer stop()
	session, cancel := context.WithCancel(ctx)
	defer cancel()
	s.count.add(func(c *Counters) {
		c.Connections++
		c.Peer = version(src.Peer())
	})
	s.queue.put(ctx, item{kind: itemUp, session: session, how: "ZMTP " + version(src.Peer())})
	for {
		frames, err := src.Recv()
		if err != nil {
			return err
		}
		if frames == nil {
			s.count.add(func(c *Counters) { c.Commands++ })
			continue
		}
		_, seq, payload, err := event.ParseFrames(frames)
		s.count.add(func(c *Counters) {
			c.Bytes += uint64(sizeOf(frames))
			if err != nil {
				inc(&c.WrongShape, shape(err))
			} else {
				c.Batches++
			}
		})
		if err != nil {
			s.misread(err)
			if s.observer.watched() {
				s.queue.put(ctx, item{kind: itemOdd, frames: frames, at: Now()})
			}
			continue
		}
		if s.malformed.Load() != nil {
			s.malformed.Store(nil)
		}
		it := item{seq: seq, payload: payload, at: Now()}
		if s.observer.watched() {
			it.frames = frames
		}
		if !s.queue.put(ctx, it) {
			s.count.add(func(c *Counters) { c.QueueDrops++ })
		}
	}
}

func sizeOf(frames [][]byte) (n int) {
	for _, f := range frames {
		n += len(f)
	}
	return n
}

// misread tells the applier that messages of another shape have begun to come.
func (s *subscriber) misread(err error) {
	if s.malformed.Load() == nil {
		why := "message of " + shape(err)
		s.malformed.Store(&why)
		signal(s.nudge)
	}
}

// shape names what was wrong with a message's frames.
func shape(err error) string {
	var fe *event.FramingError
	if !errors.As(err, &fe) {
		return "other"
	}
	if fe.Frames == 3 {
		return fmt.Sprintf("sequence of %d bytes", min(fe.SeqBytes, 16))
	}
	return fmt.Sprintf("%d frames", fe.Frames)
}
