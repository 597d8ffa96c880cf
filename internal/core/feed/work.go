package feed

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"sync"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// work is what runs for one registered pod. Its methods are called by the
// keeper's goroutine only; ctx ends its goroutines and wait waits for them.
type work struct {
	keeper   *keeper
	ctx      context.Context
	wg       sync.WaitGroup
	resolved chan netip.AddrPort
	told     chan told
	silent   chan error    // the engine does not answer, and why
	again    chan struct{} // capacity 1: the engine restarted, ask it again

	page      page   // what the scraper reads
	endScrape func() // ends it; nil while there is none
	subs      []*subscriber
	alone     bool      // the engine did not answer: what is configured has to do
	missing   *observer // tells why there is no stream; nil while there is one
	spared    bool      // it was said that its events are left alone
	unheard   bool      // it was said that the engine does not answer
	claim     *claim    // of a pod whose publishers dial us, else nil
}

// begin starts what needs no answer from the engine.
func (w *work) begin() {
	k := w.keeper
	w.resolved, w.told, w.silent, w.again = make(chan netip.AddrPort), make(chan told), make(chan error), make(chan struct{}, 1)
	spec, engine, addr := k.spec, k.base.Engine, k.addr // read here: the fields are this goroutine's
	if isName(spec.Address) {
		w.wg.Go(func() { k.resolve(w.ctx, w.resolved, spec.Address, addr) })
	}
	w.wg.Go(func() { k.discover(w.ctx, spec.Address, engine, w.told, w.silent, w.again) })
	w.advance()
}

// advance starts what the spec has become complete enough for. A stream waits
// for the model, which is part of its blocks' identity, until the engine has
// told it or has no list of models.
func (w *work) advance() {
	s, about := w.keeper.spec, w.keeper.known.aboutModels.outcome
	if s.Metrics != "" || s.Engine != pod.EngineUnknown {
		w.scrape(s)
	}
	if !w.streaming() && w.mayFollow(&s) && (s.Model != "" || about == notOffered || w.alone) {
		w.missing.close("")
		w.missing = nil
		if s.Pull > 0 {
			w.pull(s)
		} else {
			w.stream(s)
		}
	}
	for rank, sub := range w.subs {
		if at := w.replayOf(s, rank); sub != nil && at != "" && sub.replayAt.Load() == nil {
			sub.setReplay(at)
		}
	}
}

// unanswered takes note that the engine cannot be asked. Who only looks on follows
// the event ports that are configured all the same: it needs no model.
func (w *work) unanswered(err error) {
	w.alone = w.keeper.feed.opts.Discard
	w.advance()
	why := inWords(err)
	if !w.unheard && !w.keeper.feed.opts.Discard { // who looks on is told by the streams
		w.unheard = true
		w.keeper.log.Warn("the engine does not answer; it is asked again until it does", "address", w.keeper.spec.Address, "why", why)
	}
	w.mute(why)
	w.absent(why)
}

// answered takes note that the engine was heard.
func (w *work) answered() {
	if w.unheard {
		w.unheard = false
		w.keeper.log.Info("the engine answers", "address", w.keeper.spec.Address)
	}
}

// mute puts it on the board that nothing answers at a pod which has told no page to
// scrape yet: else one that is dead from the start looks like one that is well, and
// gets requests. The first scrape takes it back; until then nobody else writes there.
func (w *work) mute(why string) {
	if w.endScrape != nil {
		return
	}
	k, f, now := w.keeper, w.keeper.feed, Now()
	f.fleet.Telemetry.FailMute(k.pod.ID, why, now)
	if hub := f.opts.Hub; hub != nil && f.opts.Pages && hub.Watched() {
		hub.Publish(&recording.Record{Type: recording.TypePage, At: now, Pod: k.as, Status: recording.PageMute, Body: []byte(why)})
	}
}

// waitsFor is what an engine that answers has not told.
func waitsFor(s *pod.Spec) string {
	if s.HasEvents() {
		return "it does not tell its model"
	}
	return "no event port is configured, and it tells of none"
}

// absent tells whoever looks on why the pod has no stream.
func (w *work) absent(why string) {
	hub, s := w.keeper.feed.opts.Hub, w.keeper.spec
	if hub == nil || w.streaming() || w.spared {
		return
	}
	if w.missing == nil {
		w.missing = observe(hub, recording.Pod{Name: s.Name, Addr: s.Address, Engine: s.Engine.String(), Model: s.Model, Direction: recording.Dial})
	}
	w.missing.down("not followed: "+printable(why, 200), Now())
}

// replayOf returns the replay endpoint of a rank, "" when there is none to ask.
func (w *work) replayOf(s pod.Spec, rank int) string {
	if w.keeper.feed.opts.NoReplay {
		return ""
	}
	return endpointOf(s.Replay, rank)
}

// mayFollow reports whether there are events to follow. Who only looks on does not
// pull: it would take the events from the one that routes by them.
func (w *work) mayFollow(s *pod.Spec) bool {
	if s.Pull > 0 && w.keeper.feed.opts.Discard {
		if !w.spared {
			w.spared = true
			w.keeper.log.Warn("events of this pod are not read: who reads takes them away from serve, which shows what it read")
		}
		return false
	}
	return s.HasEvents()
}

// endpointOf returns the endpoint of a rank, "" when there is none. A single
// one is rank 0's: engines add the rank to the port.
func endpointOf(list []string, rank int) string {
	switch {
	case rank < len(list):
		return list[rank]
	case len(list) == 1 && list[0] != "":
		return shifted(list[0], rank)
	}
	return ""
}

// page is where a scraper reads and how it understands what it reads.
type page struct {
	url   string
	parse telemetry.ParseOptions
}

// scrape starts the pod's scraper, in place of one that was told of another page
// or engine.
func (w *work) scrape(s pod.Spec) {
	k, f := w.keeper, w.keeper.feed
	url := s.Metrics
	if url == "" {
		host, _, _ := net.SplitHostPort(s.Address)
		url = metricsURL(s.Engine, s.Address, host)
	}
	now := page{url, telemetry.ParseOptions{Engine: s.Engine, Model: s.Model}}
	if w.endScrape != nil {
		if now == w.page {
			return
		}
		w.endScrape()
	}
	w.page = now
	sc := &scraper{
		id: k.pod.ID, url: url, own: hostOf(url) == s.Address, parse: now.parse,
		board: f.fleet.Telemetry, client: f.opts.HTTP,
		every: f.opts.ScrapeInterval, timeout: f.opts.ScrapeTimeout, maxBytes: f.opts.ScrapeBytes, carry: f.opts.Carry,
		now: Now, counters: &f.scrapes,
		device: func() telemetry.Device { return f.devices.Of(s.Device) },
		sampled: func(s *telemetry.Sample, restart string) {
			k.sampled(s, restart)
			if restart != "" {
				f.fleet.Affinity.Forget(k.pod.ID)
				signal(w.again)
			}
		},
	}
	if f.opts.Pages {
		sc.hub, sc.as = f.opts.Hub, k.as
	}
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan struct{})
	w.endScrape = func() { cancel(); <-done } // the board's row has one writer
	w.wg.Go(func() {
		defer close(done)
		sc.run(ctx)
	})
}

// hostOf is the host and port of a URL, "" when it has none.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Host
}

func (w *work) streaming() bool { return w.subs != nil }

// subscriber makes the one of a rank; from is nil where events are pulled.
func (w *work) subscriber(s pod.Spec, rank int, from opener) *subscriber {
	f, p := w.keeper.feed, w.keeper.pod
	sub := newSubscriber(s.Name, rank, p.Members[rank], from, f.sink(), f.fleet.Sync, f.replayer, f.opts.Log)
	sub.order.begin = f.opts.ReplayFrom
	sub.observer = observe(f.opts.Hub, published(s, rank, len(p.Members)))
	sub.routed = func() uint64 { return f.fleet.Load.Caused(p, rank) }
	sub.emptied = func() { f.fleet.Affinity.Forget(p.ID) }
	return sub
}

// stream starts a subscriber per rank.
func (w *work) stream(s pod.Spec) {
	k, f := w.keeper, w.keeper.feed
	openers := make([]opener, len(k.pod.Members))
	if s.Bind != "" {
		w.claim = newClaim(s, k.addr, len(openers))
		for i, box := range w.claim.ranks {
			openers[i] = box
		}
	} else {
		for rank := range openers {
			if at := endpointOf(s.Events, rank); at != "" {
				openers[rank] = dialled{f.replayer.dialer, at}
			}
		}
	}
	w.subs = make([]*subscriber, len(openers))
	for rank, o := range openers {
		if o == nil {
			continue
		}
		sub := w.subscriber(s, rank, o)
		w.subs[rank] = sub
		// Known before the first connection, or its first batch would be taken
		// for one that cannot be completed.
		if at := w.replayOf(s, rank); at != "" {
			sub.setReplay(at)
		}
	}
	// Known before they run too: what they count and what the engine is are asked for by
	// others, who would see a connection of nobody.
	k.mu.Lock()
	k.subs = w.subs
	k.mu.Unlock()
	for _, sub := range w.subs {
		if sub != nil {
			w.wg.Go(func() {
				defer sub.observer.close("no longer followed")
				sub.run(w.ctx)
			})
		}
	}
	if w.claim != nil {
		w.wg.Go(func() { w.join(s.Bind, w.claim) })
	}
}

// published names a stream for whoever looks on.
func published(s pod.Spec, rank, ranks int) recording.Pod {
	p := recording.Pod{Name: s.Name, Rank: rank, Ranks: ranks, Engine: s.Engine.String(), Model: s.Model, Direction: recording.Dial}
	if s.Bind != "" {
		p.Addr, p.Direction = s.Address, recording.Listen
	} else if s.Pull > 0 {
		p.Addr = s.Address
	} else if at, err := tcpAddress(endpointOf(s.Events, rank)); err == nil {
		p.Addr = at
	}
	return p
}

// join enters the claim, again and again while the address cannot be listened
// at, and withdraws it in the end.
func (w *work) join(endpoint string, c *claim) {
	gates := &w.keeper.feed.gates
	var wait backoff
	for {
		err := gates.join(endpoint, c)
		if err == nil {
			break
		}
		w.keeper.log.Error("cannot listen for the event publisher", "err", err)
		if sleep(w.ctx, backoffMax/2+wait.next()/2) != nil {
			return
		}
	}
	<-w.ctx.Done()
	gates.leave(endpoint, c)
	for _, box := range c.ranks {
		box.close()
	}
}

// claimAgain tells the gate the pod's resolved address.
func (w *work) claimAgain() {
	if w.claim != nil {
		w.claim.at(w.keeper.addr)
	}
}

// wait returns when everything has ended. ctx has.
func (w *work) wait() {
	w.wg.Wait()
	w.missing.close("")
}
