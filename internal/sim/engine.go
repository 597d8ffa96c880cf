package sim

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// EngineOptions describe one engine. Zero values give a vLLM on a free port of
// 127.0.0.1 with the time model of two H100s.
type EngineOptions struct {
	Name        string
	Kind        pod.Engine // EngineVLLM or EngineSGLang
	Addr        string     // listen address; port 0 takes a free one
	Model       string
	Adapters    []string // LoRA names it serves beside the model
	MaxAdapters int      // adapters active at once, for the metrics page only
	MaxModelLen int      // prompt and answer, tokens
	BlockSize   int      // tokens per block: vLLM 32, SGLang 16 by default
	Blocks      int      // blocks of the pool, as the engine reports them
	MaxQueued   int      // further requests are refused with 503; 0 = no limit
	Profile     Profile
	Speedup     float64 // divides every step's time; 0 = 1
	// EventsAddr and ReplayAddr are where KV events are published and replayed;
	// port 0 takes a free one. EventsTo makes the publisher dial a subscriber
	// instead. NoEvents switches both off.
	EventsAddr, ReplayAddr, EventsTo string
	NoEvents                         bool
	// NoTokenize leaves /tokenize out: it answers 404.
	NoTokenize bool
	// Encoder makes the ids of texts and chats; nil = the simulator's own tokenizer.
	Encoder tokenizer.Provider
	// Tokenizer is the folder of tokenizer files that a picker is told of; the
	// simulator reads none. Generates: it is told to compare its ids with those of
	// requests that the engine computes.
	Tokenizer string
	Generates bool
}

func (o *EngineOptions) defaults() error {
	if o.Kind == pod.EngineUnknown {
		o.Kind = pod.EngineVLLM
	}
	if o.Kind != pod.EngineVLLM && o.Kind != pod.EngineSGLang {
		return fmt.Errorf("engine %q: the simulator knows vllm and sglang", o.Kind)
	}
	set(&o.Addr, "127.0.0.1:0")
	host, _, err := net.SplitHostPort(o.Addr)
	if err != nil {
		return fmt.Errorf("engine address %q: %w", o.Addr, err)
	}
	set(&o.EventsAddr, net.JoinHostPort(host, "0"))
	set(&o.ReplayAddr, net.JoinHostPort(host, "0"))
	set(&o.Model, "sim")
	set(&o.MaxModelLen, 131072)
	if o.Kind == pod.EngineSGLang {
		set(&o.BlockSize, 16)
	}
	set(&o.BlockSize, 32)
	set(&o.Blocks, 282_000/o.BlockSize) // the KV pool of H100x2, in tokens
	set(&o.Speedup, 1)
	set(&o.Profile, H100x2)
	return nil
}

func set[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// Engine is one running simulated engine. Its methods may be called from any
// goroutine.
type Engine struct {
	opt     EngineOptions
	addr    string
	started time.Time
	cancel  context.CancelFunc
	ctx     context.Context
	wake    chan struct{}
	server  *http.Server
	conns   connSet
	pub     *publisher // nil without events
	room    int        // tokens of the pool
	wg      sync.WaitGroup

	mu      sync.Mutex
	sched   scheduler
	live    map[*exchange]struct{}
	refused int
	dead    bool
	slow    float64
	stalled chan struct{} // closed when not stalled
	ttft    histogram
	e2e     histogram
}

// Start runs an engine until Close or Kill.
func Start(o EngineOptions) (*Engine, error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("engine %q: %w", o.Name, err)
	}
	e := &Engine{opt: o, addr: l.Addr().String(), started: time.Now(), wake: make(chan struct{}, 1),
		live: make(map[*exchange]struct{}), slow: 1, stalled: make(chan struct{}),
		ttft: newHistogram(), e2e: newHistogram()}
	close(e.stalled)
	set(&e.opt.Name, e.addr)
	usable := o.Blocks
	if o.Kind == pod.EngineVLLM {
		usable-- // vLLM keeps a null block
	}
	e.sched = scheduler{prof: o.Profile, size: o.BlockSize, pool: newPool(usable), sglang: o.Kind == pod.EngineSGLang}
	e.room = usable * o.BlockSize
	if !o.NoEvents {
		if e.pub, err = newPublisher(&e.opt, e.addr); err != nil {
			l.Close()
			return nil, fmt.Errorf("engine %q: %w", e.opt.Name, err)
		}
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.server = &http.Server{Handler: e.handler(), ConnState: e.conns.track, ReadHeaderTimeout: 10 * time.Second}
	if e.sched.sglang {
		// SGLang announces an empty cache when it starts.
		e.sched.reset()
		e.publish(e.sched.finish())
	}
	e.wg.Go(func() { e.server.Serve(l) })
	e.wg.Go(e.run)
	return e, nil
}

// run is the scheduler's loop: the only caller of plan and finish.
func (e *Engine) run() {
	for e.ctx.Err() == nil {
		e.mu.Lock()
		d, busy := e.sched.plan()
		d = time.Duration(float64(d) * e.slow / e.opt.Speedup)
		gate := e.stalled
		e.mu.Unlock()
		if !busy {
			select {
			case <-e.ctx.Done():
			case <-e.wake:
			}
			continue
		}
		wait(e.ctx, d)
		select {
		case <-e.ctx.Done():
			return
		case <-gate:
		}
		e.mu.Lock()
		e.publish(e.sched.finish()) // who sees it idle finds all published
		e.mu.Unlock()
	}
}

func (e *Engine) publish(events []kvEvent) {
	if e.pub != nil && len(events) > 0 {
		e.pub.send(events)
	}
}

// nudge wakes an idle scheduler.
func (e *Engine) nudge() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Close stops the engine; running requests are cut.
func (e *Engine) Close() error {
	e.cancel()
	err := e.server.Close()
	if e.pub != nil {
		e.pub.close()
	}
	e.wg.Wait()
	return err
}

// Name is the engine's name, which it puts into the x-served-by header.
func (e *Engine) Name() string { return e.opt.Name }

// Addr is the ip:port it serves on.
func (e *Engine) Addr() string { return e.addr }

// URL is the address as a client writes it.
func (e *Engine) URL() string { return "http://" + e.addr }

// Refused counts the requests turned away because the queue was full.
func (e *Engine) Refused() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refused
}

// Load tells how many requests run and wait.
func (e *Engine) Load() (running, waiting int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.sched.running), len(e.sched.waiting)
}

// Options returns the options with every default and port filled in, so that
// Start with them is a restart of the same engine.
func (e *Engine) Options() EngineOptions {
	o := e.opt
	o.Addr = e.addr
	if e.pub != nil {
		if o.EventsTo == "" {
			o.EventsAddr = e.pub.live.Addr()
		}
		o.ReplayAddr = e.pub.replay.Addr()
	}
	return o
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
