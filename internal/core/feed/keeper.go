package feed

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"reflect"
	"sync"

	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// keeper does everything for one configured pod: its place in the table, its
// address, what its engine tells, its scraper and its subscribers. Its run
// goroutine owns the fields that have no lock.
//
// When the pod turns out to be another one than it was registered as (its name
// moved to another address, its engine serves another model or number of ranks)
// it is taken out and registered anew, so that no block, counter or sample of
// the old one is taken for the new one's.
type keeper struct {
	feed       *Feed
	log        *slog.Logger
	configured pod.Spec // Feed.Apply's: only it reads and writes this
	changes    chan pod.Spec
	cancel     context.CancelFunc
	done       chan struct{}

	base pod.Spec // as configured now
	spec pod.Spec // completed by what the engine told
	pod  *pod.Pod
	addr netip.AddrPort

	mu       sync.Mutex
	subs     []*subscriber // by rank; nil until an event source is known
	owner    index.Owner
	restarts float64 // guessed from the engine's counters
	findings []Finding
}

// keep registers a pod and starts its keeper; nil when the fleet is full.
func (f *Feed) keep(spec pod.Spec) *keeper {
	k := &keeper{
		feed: f, log: f.opts.Log.With("pod", spec.Name), configured: spec, base: spec, spec: spec,
		changes: make(chan pod.Spec, 1), done: make(chan struct{}),
	}
	if !isName(spec.Address) { // no look-up, so no waiting
		k.addr, _ = Resolve(f.ctx, f.opts.Resolver, spec.Address, netip.AddrPort{})
	}
	if !k.register() {
		return nil
	}
	var ctx context.Context
	ctx, k.cancel = context.WithCancel(f.ctx)
	go k.run(ctx)
	return k
}

func isName(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = netip.ParseAddr(host)
	return err != nil
}

// change takes over what may change of a running pod. Only the latest counts.
func (k *keeper) change(s pod.Spec) {
	if reflect.DeepEqual(k.configured, s) {
		return
	}
	k.configured = s
	select {
	case <-k.changes:
	default:
	}
	k.changes <- s
}

func (k *keeper) run(ctx context.Context) {
	defer close(k.done)
	for {
		k.live(ctx)
		if ctx.Err() != nil || !k.register() {
			return
		}
	}
}

func (k *keeper) register() bool {
	p, err := k.feed.fleet.Pods.Add(k.spec, k.addr)
	if err != nil {
		k.log.Error("pod left out", "err", err)
		return false
	}
	k.pod = p
	return true
}

// live serves the registered pod until ctx ends or it is another one, and takes
// it out: first from the table, so that nothing is sent there any more; its
// number is free again only when its blocks are gone.
func (k *keeper) live(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	work := &work{keeper: k, ctx: ctx}
	defer func() {
		f := k.feed.fleet
		f.Pods.Remove(k.pod.ID)
		cancel()
		work.wait()
		for _, m := range k.pod.Members {
			f.Index.Purge(m)
			f.Sync.Drop(m)
		}
		f.Telemetry.Drop(k.pod.ID)
		f.Pods.Free(k.pod)
	}()
	k.mu.Lock()
	k.subs, k.owner = nil, index.Owner{}
	k.mu.Unlock()
	k.enlist(nil)
	work.begin()
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-k.changes:
			k.takeOver(s)
		case a := <-work.resolved:
			if k.moved(a, work) {
				return
			}
		case s := <-work.told:
			if k.learned(s, work) {
				return
			}
		}
	}
}

// takeOver changes the pod in place.
func (k *keeper) takeOver(s pod.Spec) {
	k.base = s
	k.settle()
	k.feed.fleet.Pods.Update(k.pod.ID, func(p *pod.Pod) { p.Spec = k.spec })
}

// settle puts what may change under way, as configured now, over what the
// engine was asked with.
func (k *keeper) settle() {
	k.spec.Role = k.base.Role
	if k.base.Adapters != nil {
		k.spec.Adapters = k.base.Adapters
	}
	if k.base.MaxContext > 0 {
		k.spec.MaxContext = k.base.MaxContext
	}
}

// moved takes a resolved address and reports whether it is another pod's now.
func (k *keeper) moved(a netip.AddrPort, w *work) (another bool) {
	before := k.addr
	k.addr = a
	switch {
	case before == a:
		return false
	case before.IsValid():
		k.log.Info("address changed", "from", before, "to", a)
		return true
	}
	k.feed.fleet.Pods.Update(k.pod.ID, func(p *pod.Pod) { p.Addr = a })
	w.claimAgain()
	return false
}

// learned takes a spec completed by the engine and reports whether that is
// another pod than the one registered.
func (k *keeper) learned(s pod.Spec, w *work) (another bool) {
	old := k.spec
	k.spec = s
	k.settle()
	if old.Ranks != s.Ranks {
		return true
	}
	if w.streaming() && (old.Model != s.Model || old.Engine != s.Engine || !reflect.DeepEqual(old.Events, s.Events)) {
		return true
	}
	k.feed.fleet.Pods.Update(k.pod.ID, func(p *pod.Pod) { p.Spec = k.spec })
	k.enlist(nil)
	w.advance(true)
	return false
}

// enlist tells the index about the pod's members, again when a sample tells
// more.
func (k *keeper) enlist(s *telemetry.Sample) {
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.owner
	if s == nil {
		o.Model, o.Engine = k.spec.Model, k.spec.Engine
	} else {
		if s.KVBlocks.Known {
			o.Blocks = int(s.KVBlocks.V)
		}
		if s.KVBlockSize.Known {
			o.BlockSize = int(s.KVBlockSize.V)
		}
	}
	if o == k.owner && s != nil {
		return
	}
	k.owner = o
	for _, m := range k.pod.Members {
		k.feed.fleet.Index.Register(m, o)
	}
}

// sampled hears of every good scrape, on the scraper's goroutine.
func (k *keeper) sampled(s *telemetry.Sample, restart string) {
	k.enlist(s)
	k.mu.Lock()
	defer k.mu.Unlock()
	if restart != "" {
		k.restarts++
	}
	id := identity{id: k.restarts, guessed: true, at: s.At}
	if s.ProcessStart.Known {
		id = identity{id: s.ProcessStart.V, at: s.At}
	}
	for _, sub := range k.subs {
		if sub != nil {
			sub.identify(id)
		}
	}
}

func (k *keeper) counters() (out []Counters) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.subs {
		if s != nil {
			out = append(out, s.count.snapshot())
		}
	}
	return out
}

// discover asks the engine until it answers once, and again after a restart.
func (k *keeper) discover(ctx context.Context, spec pod.Spec, told chan<- pod.Spec, again <-chan struct{}) {
	var wait backoff
	for {
		try, cancel := context.WithTimeout(ctx, discoverTimeout)
		full, findings, err := Discover(try, k.feed.opts.HTTP, spec)
		cancel()
		if err == nil {
			k.found(findings)
			wait.reset()
			select {
			case told <- full:
			case <-ctx.Done():
				return
			}
			if sleep(ctx, discoverPause) != nil {
				return
			}
			select {
			case <-again:
				continue
			case <-ctx.Done():
				return
			}
		}
		k.log.Debug("engine does not answer yet", "err", err)
		if sleep(ctx, wait.next()) != nil {
			return
		}
	}
}

func (k *keeper) found(findings []Finding) {
	k.mu.Lock()
	k.findings = findings
	k.mu.Unlock()
	for _, f := range findings {
		level := slog.LevelInfo
		switch f.Severity {
		case SeverityError:
			level = slog.LevelError
		case SeverityWarning:
			level = slog.LevelWarn
		}
		k.log.Log(context.Background(), level, "configuration and engine differ", "finding", f.String())
	}
}

// resolve looks the pod's name up for as long as ctx lives.
func (k *keeper) resolve(ctx context.Context, resolved chan<- netip.AddrPort, address string, current netip.AddrPort) {
	var wait backoff
	for {
		try, cancel := context.WithTimeout(ctx, discoverTimeout)
		a, err := Resolve(try, k.feed.opts.Resolver, address, current)
		cancel()
		pause := k.feed.opts.ResolveEvery
		switch {
		case err != nil:
			k.log.Debug("address not resolved", "err", err)
			pause = wait.next()
		default:
			current = a
			wait.reset()
			select {
			case resolved <- a:
			case <-ctx.Done():
			}
		}
		if sleep(ctx, pause) != nil {
			return
		}
	}
}
