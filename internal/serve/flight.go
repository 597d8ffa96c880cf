package serve

import (
	"cmp"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/eppctl/eppctl/internal/core/parity"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

// flight is a routed request until its end. Its methods are the ones of running;
// every one may be called from any goroutine, late and repeatedly: the ledger
// counts each request down once.
type flight struct {
	picker *Picker
	out    answer
	place  *view.Placement
	on     atomic.Pointer[pod.Pod] // the pod that serves it, as far as known
	at     int64                   // ns, of the decision
	due    int64                   // ns, estimated first byte
	stream atomic.Bool             // the answer is an event stream: its first byte means something
	heard  atomic.Bool             // that byte came

	watched *parity.Watched // until its engine has announced it; nil = it is not
	well    atomic.Bool     // its engine, and no other, answered with a status of success
	picked  *pod.Pod
	noting  *noting // nil = nobody records
}

func (f *flight) answer() *answer { return &f.out }

func (f *flight) pod() *pod.Pod { return f.on.Load() }

// served moves the request to the endpoint that the proxy names. Endpoints
// outside the fleet change nothing: their load is nobody's here.
func (f *flight) served(addr netip.AddrPort) {
	if f.on.Load().Addr == addr {
		return
	}
	if p := f.picker.fleet.Pods.Snapshot().ByTarget(addr); p != nil {
		f.watched.End(false, f.picker.now())
		f.place.Move(p, f.picker.now())
		f.on.Store(p)
		f.picker.met.elsewhere.Add(1)
	}
}

// status notes the engine's answer. The headers of an event stream are not its
// first byte: vLLM and SGLang write them before the prompt is computed. Where
// the body is not shown either, the first byte has to be estimated.
func (f *flight) status(r reply) {
	f.noting.answered(r)
	f.stream.Store(r.sse)
	if r.sse && r.unseen {
		f.place.Unseen(f.due)
	}
	switch {
	case r.code == 0:
	case f.picker.byProxy(r):
		f.picker.met.proxied.WithLabelValues(class(r.code)).Inc()
	default:
		f.picker.met.engine.WithLabelValues(f.pod().Spec.Name, class(r.code)).Inc()
		f.place.Status(r.code >= http.StatusInternalServerError, f.picker.now())
		f.well.Store(r.code < http.StatusMultipleChoices)
	}
	if !r.sse {
		f.place.Whole(f.picker.now())
	}
}

// byProxy reports that a proxy made up the answer itself: it says how long the
// engine took in others, and not in this one. A proxy that never says cannot be
// told from its engines.
func (p *Picker) byProxy(r reply) bool {
	if r.timed && !p.timed.Load() {
		p.timed.Store(true)
	}
	return !r.timed && p.timed.Load()
}

func class(code int) string { return strconv.Itoa(min(code/100, 9)) + "xx" }

func (f *flight) content() {
	now := f.picker.now()
	f.noting.content(now)
	if f.stream.Load() && !f.heard.Swap(true) {
		f.picker.met.firstByte.Observe(max(time.Duration(now-f.at), 0).Seconds())
	}
	f.place.FirstByte(now)
}

func (f *flight) spent(u usage) {
	f.noting.spent(u)
	f.picker.met.spent(f.pod().Spec.Name, u)
	f.picker.tallies.spent(f.pod(), u)
}

func (f *flight) end() {
	now := f.picker.now()
	f.place.End(now)
	f.watched.End(f.well.Load(), now)
	elsewhere := ""
	if on := f.pod(); on != f.picked {
		elsewhere = on.Spec.Name
	}
	f.noting.end(elsewhere, now)
}

// presume tells the ledger what the latest scrapes say about first bytes that
// nobody reports. Called a few times a second.
func presume(v view.View, lim telemetry.Limits, now int64) {
	for _, p := range v.Pods.Pods {
		v.Load.Presume(p, scrapeOf(v.Telemetry.Get(p.ID), lim, now), now)
	}
}

// scrapeOf is the pod's queue as far as it is known.
func scrapeOf(e telemetry.Entry, lim telemetry.Limits, now int64) view.Scrape {
	s := e.Sample
	if e.State(now, lim) == telemetry.Unknown || !s.Waiting.Known {
		return view.Scrape{}
	}
	x := view.Scrape{At: cmp.Or(s.Waiting.At, s.At), Waiting: int(min(s.Waiting.V, math.MaxInt32)), Running: -1}
	if s.Running.Known && s.Running.At == s.Waiting.At {
		x.Running = int(min(s.Running.V, math.MaxInt32))
	}
	return x
}
