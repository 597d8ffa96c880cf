package feed

import (
	"context"
	"log/slog"
	"sync"

	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/core/view"
)

// Publisher is an event stream to follow of which nothing else is known.
type Publisher struct {
	Name     string // "" = the endpoint's host:port
	Endpoint string // at which it listens: tcp://host:port or host:port
	Replay   string // the same of its replay port, "" = none
}

// Watch follows event streams and nothing else: no pod is known, none is asked or
// scraped, no index is kept.
type Watch struct {
	Publishers []Publisher
	Listen     []string          // local endpoints for publishers that dial us: any may
	Listening  func(addr string) // is told of each address listened at; nil = nobody
	ReplayFrom uint64            // the first batch that replay ports are asked for
	Hub        *recording.Hub
	Limits     Limits
	Log        *slog.Logger // nil = nothing
}

// watchedPerPeer bounds the publishers of one address that dial us.
const watchedPerPeer = 64

// Run follows the streams until ctx ends. It returns an error at once when an
// endpoint is none or cannot be listened at.
func (w *Watch) Run(ctx context.Context) error {
	if w.Log == nil {
		w.Log = slog.New(slog.DiscardHandler)
	}
	r := &watching{Watch: w, dialer: dialer{lim: w.Limits.withDefaults()}, ctx: ctx}
	r.replayer = newReplayer(r.dialer)
	for _, p := range w.Publishers {
		if _, err := tcpAddress(p.Endpoint); err != nil {
			return err
		}
		if _, err := tcpAddress(p.Replay); err != nil && p.Replay != "" {
			return err
		}
	}
	var gates []*gate
	defer func() {
		for _, g := range gates {
			g.close()
		}
		r.wg.Wait()
	}()
	for _, at := range w.Listen {
		g, err := newGate(at, r.dialer, w.Log, func(string) {})
		if err != nil {
			return err
		}
		g.adopt = r.adopt
		g.serve()
		gates = append(gates, g)
		if w.Listening != nil {
			w.Listening(g.ln.Addr().String())
		}
	}
	for _, p := range w.Publishers {
		r.dial(p)
	}
	<-ctx.Done()
	return nil
}

// watching is a running Watch.
type watching struct {
	*Watch
	dialer   dialer
	replayer *replayer
	board    view.SyncBoard
	ctx      context.Context
	wg       sync.WaitGroup
}

func (w *watching) dial(p Publisher) {
	addr, _ := tcpAddress(p.Endpoint) // checked
	if p.Name == "" {
		p.Name = addr
	}
	s := w.subscriber(dialled{w.dialer, p.Endpoint}, recording.Pod{Name: p.Name, Addr: addr, Direction: recording.Dial})
	if p.Replay != "" {
		s.setReplay(p.Replay)
	}
	// A publisher that cannot be asked who it is counts as the same until its
	// numbers go back: a loss over a reconnect shows as what it is.
	s.identify(identity{id: 1, at: Now()})
	w.start(w.ctx, s)
}

// adopt follows a publisher that dialled us, for as long as its connection lasts.
func (w *watching) adopt(src FrameSource, from string) {
	ctx, cancel := context.WithCancel(w.ctx)
	s := w.subscriber(&once{src: src}, recording.Pod{Name: from, Addr: from, Direction: recording.Listen})
	s.observer.gone = cancel // not before what came is dealt with
	w.start(ctx, s)
}

func (w *watching) subscriber(from opener, p recording.Pod) *subscriber {
	s := newSubscriber(p.Name, 0, 0, from, void{}, &w.board, w.replayer, w.Log)
	s.order.begin = w.ReplayFrom
	s.observer = observe(w.Hub, p)
	return s
}

func (w *watching) start(ctx context.Context, s *subscriber) {
	w.wg.Go(func() {
		defer s.observer.close("no longer followed")
		s.run(ctx)
	})
}
