package serve

import (
	"time"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/view"
)

// looseEnd is a request whose stream is gone while the request may still run.
type looseEnd struct {
	run   running
	since time.Time // by the feed's clock: it is compared with scrapes
}

// deadAfter is how long a pod's scrapes must fail, after the last good one and the
// stream's end, before its request counts as over: the pod is not picked meanwhile, and whatever it was
// doing nobody will learn the end of.
const deadAfter = 5 * time.Second

// blindTTL is how long a request counts on a pod whose page has no gauge of running
// requests: nothing will ever tell its end, and a pod would seem full of requests
// that were answered minutes ago. Most answers take less.
const blindTTL = 30 * time.Second

// maxLoose bounds the list; beyond it the oldest is counted down at once.
const maxLoose = 1 << 16

// linger keeps a request counted until the engine's own numbers, or the TTL,
// say that it is over.
func (e *endSignal) linger(r running) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.loose) == maxLoose {
		e.loose[0].run.end()
		e.loose = e.loose[1:]
	}
	e.loose = append(e.loose, looseEnd{r, feed.Clock()})
}

// lingering is the number of such requests.
func (e *endSignal) lingering() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.loose)
}

func (e *endSignal) releaseAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.loose {
		l.run.end()
	}
	e.loose = nil
}

// reconcile counts down what is over: requests past the TTL, and of each pod so
// many, oldest first, as a later scrape shows fewer requests in the engine than
// we count there. Requests of other routers on the same pod can only delay this,
// never hasten it. Called a few times a second.
func (e *endSignal) reconcile(v view.View, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.loose) == 0 {
		return
	}
	surplus := map[pod.ID]int{}
	kept := e.loose[:0]
	for _, l := range e.loose {
		if now.Sub(l.since) >= e.ttl || e.gone(v, l, surplus, now) {
			l.run.end()
			continue
		}
		kept = append(kept, l)
	}
	clear(e.loose[len(kept):])
	e.loose = kept
}

// gone reports that one of the pod's requests too many is this one.
func (e *endSignal) gone(v view.View, l looseEnd, surplus map[pod.ID]int, now time.Time) bool {
	p := l.run.pod()
	if v.Pods.ByID(p.ID) == nil || v.Pods.ByID(p.ID).Epoch != p.Epoch {
		return true // the pod is gone, and its requests with it
	}
	t := v.Telemetry.Get(p.ID)
	s, since := t.Sample, l.since.UnixNano()
	lastGood := since
	if s != nil {
		lastGood = max(lastGood, s.At)
	}
	if t.ErrAt-lastGood >= int64(deadAfter) {
		return true // what that last scrape still showed died with the pod
	}
	if s == nil || !s.Running.Known {
		return now.Sub(l.since) >= blindTTL
	}
	if s.At <= since {
		return false
	}
	left, known := surplus[p.ID]
	if !known {
		inEngine := s.Running.Count()
		if s.Waiting.Known {
			inEngine += s.Waiting.Count()
		}
		// Requests placed after the scrape cannot be on it.
		l := v.Load.LoadSince(p, now.UnixNano(), s.At)
		left = l.InFlight - l.Since - inEngine
	}
	surplus[p.ID] = left - 1
	return left > 0
}
