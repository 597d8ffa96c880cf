package serve

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/stats"
)

// Constants of the drain. Envoy looks at health every few seconds and goes on
// sending until it has looked; a proxy that has sent nothing for quiet has
// looked, or is idle. pickGrace is for picks under way when that ends.
const (
	drainPoll = 20 * time.Millisecond
	quiet     = 2 * time.Second
	pickGrace = time.Second
)

// drain ends serving without losing a request: health turns NOT_SERVING at once,
// streams are served on until none has come for a while or the time is up, then
// every stream past its pick is closed with OK, which lets Envoy finish the
// response alone, and the rest get their pick first.
func (s *server) drain() {
	began := time.Now()
	s.log.Info("draining", "open_streams", s.processor.open.Load())
	s.ready.Store(true) // housekeeping must not turn it back
	s.health.Ready(false)
	seen, since := s.processor.opened.Load(), began
	for time.Since(began) < s.config.Drain && s.conns.open.Load() > 0 {
		if n := s.processor.opened.Load(); n != seen {
			seen, since = n, time.Now()
		} else if time.Since(since) >= quiet {
			break
		}
		time.Sleep(drainPoll)
	}
	stopped := make(chan struct{})
	go func() { s.grpc.GracefulStop(); close(stopped) }() // no stream is new from here on
	s.processor.Shutdown()
	select {
	case <-stopped:
	case <-time.After(s.picker.deadline() + pickGrace):
		s.grpc.Stop()
		<-stopped
	}
	s.log.Info("drained", "took", time.Since(began).Round(time.Millisecond))
}

// connCount counts the open connections of a server.
type connCount struct{ open atomic.Int64 }

func (c *connCount) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (c *connCount) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (c *connCount) HandleRPC(context.Context, stats.RPCStats)                         {}

func (c *connCount) HandleConn(_ context.Context, s stats.ConnStats) {
	switch s.(type) {
	case *stats.ConnBegin:
		c.open.Add(1)
	case *stats.ConnEnd:
		c.open.Add(-1)
	}
}
