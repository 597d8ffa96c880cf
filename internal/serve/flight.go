package serve

import (
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
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
	due    time.Time               // estimated first byte
	unseen atomic.Bool
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
		f.place.Move(p, f.picker.now())
		f.on.Store(p)
		f.picker.met.elsewhere.Add(1)
	}
}

// status notes the engine's answer. The headers of an event stream are not its
// first byte: vLLM and SGLang write them before the prompt is computed. Where
// the body is not shown either, the first byte has to be estimated.
func (f *flight) status(code int, sse, blind bool) {
	f.unseen.Store(sse && blind)
	if code > 0 {
		f.picker.met.engine.WithLabelValues(f.pod().Spec.Name, class(code)).Inc()
	}
	if !sse {
		f.content()
	}
}

func class(code int) string { return strconv.Itoa(min(code/100, 9)) + "xx" }

func (f *flight) content() { f.place.FirstByte(f.picker.now()) }

// firstByteDue is when the first byte is estimated to be out, of a stream nobody
// shows us; zero when it is known.
func (f *flight) firstByteDue() time.Time {
	if f.unseen.Load() {
		return f.due
	}
	return time.Time{}
}

func (f *flight) end() { f.place.End(f.picker.now()) }
