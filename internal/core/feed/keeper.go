package feed

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/recording"
)

// keeper does everything for one configured pod: its place in the table, its
// address, what its engine tells, its scraper and its subscribers. Its run
// goroutine owns the fields that have no lock.
//
// When the pod turns out to be another one than it was registered as (its name
// moved to another address, its engine serves another model or number of ranks)
// it is taken out and registered anew, so that no block, counter or sample of
// the old one is taken for the new one's. What its engine has told outlives
// that, except where the address is another.
type keeper struct {
	feed       *Feed
	log        *slog.Logger
	configured pod.Spec // Feed.Apply's: only it reads and writes this
	changes    chan pod.Spec
	cancel     context.CancelFunc
	done       chan struct{}

	base  pod.Spec // as configured now
	known told     // by the engine
	spec  pod.Spec // base completed by known
	pod   *pod.Pod // nil while the table has no room for it
	addr  netip.AddrPort
	// confined: the table has no room for the ranks the engine tells, so the pod
	// has those configured and no streams but those.
	confined bool
	// as and said are what a hub hears of the pod: under which name, and what last.
	as   *recording.Pod
	said []byte

	mu       sync.Mutex
	subs     []*subscriber // by rank; nil until an event source is known
	owner    index.Owner
	restarts float64 // guessed from the engine's counters
	inTurn   inTurn
	findings []Finding
}

// keep registers a pod, if there is room, and starts its keeper.
func (f *Feed) keep(spec pod.Spec) *keeper {
	k := &keeper{
		feed: f, log: f.opts.Log.With("pod", spec.Name), configured: spec, base: spec, spec: spec,
		changes: make(chan pod.Spec, 1), done: make(chan struct{}),
	}
	if !isName(spec.Address) { // no look-up, so no waiting
		k.addr, _ = Resolve(f.ctx, f.opts.Resolver, spec.Address, netip.AddrPort{})
	}
	full := k.register()
	if full != nil {
		k.log.Error("pod left out for now", "err", full)
	}
	var ctx context.Context
	ctx, k.cancel = context.WithCancel(f.ctx)
	go k.run(ctx, full != nil)
	return k
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

func (k *keeper) run(ctx context.Context, leftOut bool) {
	defer close(k.done)
	for {
		if leftOut && k.waitForRoom(ctx) != nil {
			return
		}
		k.live(ctx)
		if ctx.Err() != nil {
			return
		}
		err := k.register()
		if leftOut = err != nil; leftOut {
			k.log.Error("pod left out for now", "err", err)
		}
	}
}

// waitForRoom registers the pod as soon as others have made room.
func (k *keeper) waitForRoom(ctx context.Context) error {
	k.found([]Finding{{
		Severity: SeverityError, Code: "fleet-full", Pod: k.base.Name,
		Hint: "there are " + strconv.Itoa(pod.MaxMembers) + " members, counted by rank: this pod gets no requests",
	}})
	var wait backoff
	for {
		if err := sleep(ctx, wait.next()); err != nil {
			return err
		}
		if k.register() == nil {
			k.log.Info("room for the pod")
			k.found(nil)
			return nil
		}
	}
}

// register puts the pod into the table; where its ranks do not fit, with as many
// as are configured: it must not vanish for want of a cache view.
func (k *keeper) register() error {
	p, err := k.feed.fleet.Pods.Add(k.spec, k.addr)
	if err != nil && k.spec.Ranks > k.base.Ranks {
		k.confined = true
		k.complete()
		p, err = k.feed.fleet.Pods.Add(k.spec, k.addr)
	}
	k.pod = p
	if err == nil {
		k.as, k.said = &recording.Pod{Name: k.spec.Name, Addr: k.spec.Address, Ranks: len(p.Members)}, nil
		k.tell()
	}
	return err
}

// tell says what is known of the pod to the hub, if that is news.
func (k *keeper) tell() {
	body, err := encodeSpec(&k.spec, k.addr)
	if err != nil || bytes.Equal(body, k.said) {
		return
	}
	k.said = body
	k.publish(recording.TypeSpec, body)
}

// withdraw tells the hub that the pod leaves.
func (k *keeper) withdraw() {
	k.publish(recording.TypeSpec, []byte("null"))
	if hub := k.feed.opts.Hub; hub != nil {
		hub.Close(k.as)
	}
}

func (k *keeper) publish(t recording.Type, body []byte) {
	if hub := k.feed.opts.Hub; hub != nil {
		hub.Publish(&recording.Record{Type: t, At: Now(), Pod: k.as, Body: body})
	}
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
		k.withdraw()
		for _, m := range k.pod.Members {
			f.Index.Purge(m)
			f.Sync.Drop(m)
		}
		f.Telemetry.Drop(k.pod.ID)
		f.Affinity.Forget(k.pod.ID)
		f.Pods.Free(k.pod)
	}()
	k.mu.Lock()
	k.subs, k.owner = nil, index.Owner{}
	k.mu.Unlock()
	k.enlist(nil)
	work.begin()
	room := time.NewTicker(k.feed.roomEvery)
	defer room.Stop()
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
		case t := <-work.told:
			work.answered()
			k.known.learn(t)
			if k.learned(work) {
				return
			}
			work.absent(waitsFor(&k.spec))
		case err := <-work.silent:
			work.unanswered(err)
		case <-room.C:
			if k.confined && k.learned(work) {
				return
			}
		}
	}
}

// takeOver changes the pod in place.
func (k *keeper) takeOver(s pod.Spec) {
	k.base = s
	k.complete()
	k.feed.fleet.Pods.Update(k.pod.ID, func(p *pod.Pod) { p.Spec = k.spec })
	k.tell()
}

// complete derives the spec and the findings from what is configured and known.
func (k *keeper) complete() {
	if k.known.aboutModels.outcome == unasked {
		k.spec = k.base
		return
	}
	spec, findings := complete(k.base, k.known)
	if k.confined && spec.Ranks > k.base.Ranks {
		findings = append(findings, Finding{
			SeverityWarning, "fleet-full", k.base.Name, "ranks", strconv.Itoa(k.base.Ranks), strconv.Itoa(spec.Ranks),
			"the fleet has no room for the ranks: routed to by load alone until there is",
		})
		spec.Ranks, spec.Events, spec.Replay = k.base.Ranks, k.base.Events, k.base.Replay
	}
	k.spec = spec
	k.found(findings)
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
		k.known, k.confined = told{}, false
		k.complete()
		return true
	}
	k.feed.fleet.Pods.Update(k.pod.ID, func(p *pod.Pod) { p.Addr = a })
	k.tell()
	w.claimAgain()
	return false
}

// learned completes the spec by what is known, and reports whether that makes
// another pod of it than the one registered.
func (k *keeper) learned(w *work) (another bool) {
	old := k.spec
	full, _ := complete(k.base, k.known)
	more := full.Ranks - len(k.pod.Members)
	k.confined = full.Ranks > k.base.Ranks && more > 0 && more > k.feed.room()
	k.complete()
	if old.Ranks != k.spec.Ranks {
		return true
	}
	// Who only looks on needs no model, and would lose what comes meanwhile.
	newModel := old.Model != k.spec.Model && !k.feed.opts.Discard
	if w.streaming() && (newModel || !reflect.DeepEqual(old.Events, k.spec.Events) ||
		old.Engine != k.spec.Engine && old.Engine != pod.EngineUnknown) {
		return true
	}
	k.feed.fleet.Pods.Update(k.pod.ID, func(p *pod.Pod) { p.Spec = k.spec })
	k.tell()
	k.enlist(nil)
	w.advance()
	return false
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

// found replaces the findings and logs those that are new.
func (k *keeper) found(findings []Finding) {
	k.mu.Lock()
	before := k.findings
	k.findings = findings
	k.mu.Unlock()
	for _, f := range findings {
		if slices.Contains(before, f) {
			continue
		}
		level := slog.LevelInfo
		switch f.Severity {
		case SeverityError:
			level = slog.LevelError
		case SeverityWarning:
			level = slog.LevelWarn
		}
		k.log.Log(context.Background(), level, "configuration and engine differ", "finding", f.text())
	}
}
