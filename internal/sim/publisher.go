package sim

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

// publisher sends an engine's batches: live over PUB, and again on demand over
// the replay ROUTER. Sequence numbers start at 0 with each process.
type publisher struct {
	topic  string
	size   int
	sglang bool
	live   *zmtp.Publisher
	replay *zmtp.Replay

	mu  sync.Mutex
	seq uint64
}

func newPublisher(o *EngineOptions, addr string) (*publisher, error) {
	p := &publisher{topic: "kv@" + addr + "@" + o.Model, size: o.BlockSize, sglang: o.Kind == pod.EngineSGLang}
	var err error
	if p.replay, err = zmtp.ListenReplay(o.ReplayAddr, zmtp.ReplayOptions{}); err != nil {
		return nil, fmt.Errorf("replay socket: %w", err)
	}
	// vLLM's hwm is 100,000; a batch here is small and a test must not lose one.
	q := zmtp.Options{Queue: 100_000}
	if o.EventsTo != "" {
		p.live = zmtp.Dial(o.EventsTo, q)
	} else if p.live, err = zmtp.Listen(o.EventsAddr, q); err != nil {
		p.replay.Close()
		return nil, fmt.Errorf("event socket: %w", err)
	}
	return p, nil
}

func (p *publisher) send(events []kvEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	unix := float64(time.Now().UnixNano()) / 1e9
	batch := encodeBatch(nil, unix, events, p.size, p.sglang)
	// Recorded first: a subscriber that finds a gap must be able to get it.
	p.replay.Record(p.seq, p.topic, batch)
	p.live.Send(p.topic, p.seq, batch)
	p.seq++
}

func (p *publisher) sent() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seq
}

func (p *publisher) close() {
	p.live.Close()
	p.replay.Close()
}

// port is the port of a bound address, for the pages that tell of it.
func port(addr string) string {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return ""
	}
	return port
}

// EventsEndpoint is where a subscriber connects; "" without events or when the
// publisher dials out.
func (e *Engine) EventsEndpoint() string {
	if e.pub == nil || e.opt.EventsTo != "" {
		return ""
	}
	return "tcp://" + e.pub.live.Addr()
}

// Published counts the batches of events so far.
func (e *Engine) Published() uint64 {
	if e.pub == nil {
		return 0
	}
	return e.pub.sent()
}

// ReplayEndpoint is where history can be asked for; "" without events.
func (e *Engine) ReplayEndpoint() string {
	if e.pub == nil {
		return ""
	}
	return "tcp://" + e.pub.replay.Addr()
}
