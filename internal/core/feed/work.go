package feed

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"sync"

	"github.com/eppctl/eppctl/internal/core/pod"
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
	again    chan struct{} // capacity 1: the engine restarted, ask it again

	page      page   // what the scraper reads
	endScrape func() // ends it; nil while there is none
	subs      []*subscriber
	claim     *claim // of a pod whose publishers dial us, else nil
}

// begin starts what needs no answer from the engine.
func (w *work) begin() {
	k := w.keeper
	w.resolved, w.told, w.again = make(chan netip.AddrPort), make(chan told), make(chan struct{}, 1)
	spec, engine, addr := k.spec, k.base.Engine, k.addr // read here: the fields are this goroutine's
	if isName(spec.Address) {
		w.wg.Go(func() { k.resolve(w.ctx, w.resolved, spec.Address, addr) })
	}
	w.wg.Go(func() { k.discover(w.ctx, spec.Address, engine, w.told, w.again) })
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
	if !w.streaming() && (len(s.Events) > 0 || s.Bind != "") && (s.Model != "" || about == notOffered) {
		w.stream(s)
	}
	for rank, sub := range w.subs {
		if at := endpointOf(s.Replay, rank); sub != nil && at != "" && sub.replayAt.Load() == nil {
			sub.setReplay(at)
		}
	}
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
				signal(w.again)
			}
		},
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
		sub := newSubscriber(s.Name, rank, k.pod.Members[rank], o, f.fleet.Index, f.fleet.Sync, f.replayer, f.opts.Log)
		w.subs[rank] = sub
		// Known before the first connection, or its first batch would be taken
		// for one that cannot be completed.
		if at := endpointOf(s.Replay, rank); at != "" {
			sub.setReplay(at)
		}
		w.wg.Go(func() { sub.run(w.ctx) })
	}
	k.mu.Lock()
	k.subs = w.subs
	k.mu.Unlock()
	if w.claim != nil {
		w.wg.Go(func() { w.join(s.Bind, w.claim) })
	}
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
func (w *work) wait() { w.wg.Wait() }
