package serve

import (
	"sync/atomic"
	"time"

	"github.com/eppctl/eppctl/internal/core/recording"
)

// noting watches a recorded decision's request until its end, which it records once.
// A nil one does nothing. Any method may be called from any goroutine, late and
// repeatedly.
type noting struct {
	to *decisions
	n  uint64
	at int64 // ns, of the decision

	streamed atomic.Bool // the answer is an event stream: its first byte means something
	status   atomic.Int32
	first    atomic.Int64 // ns, 0 = not seen
	used     atomic.Pointer[usage]
	over     atomic.Bool
}

func (n *noting) answered(r reply) {
	if n != nil {
		n.status.Store(int32(r.code))
		n.streamed.Store(r.sse)
	}
}

func (n *noting) content(now int64) {
	if n != nil && n.streamed.Load() {
		n.first.CompareAndSwap(0, now)
	}
}

func (n *noting) spent(u usage) {
	if n != nil {
		n.used.Store(&u)
	}
}

// end records the outcome; elsewhere names the pod that served, "" = the picked one.
func (n *noting) end(elsewhere string, now int64) {
	if n == nil || n.over.Swap(true) {
		return
	}
	o := &recording.Outcome{N: n.n, Status: int(n.status.Load()), Pod: elsewhere, TookMs: since(n.at, now)}
	if first := n.first.Load(); first > 0 {
		ms := since(n.at, first)
		o.FirstMs = &ms
	}
	if u := n.used.Load(); u != nil {
		o.Prompt, o.Output = &u.Prompt, &u.Output
		if u.Cached >= 0 {
			o.Cached = &u.Cached
		}
	}
	n.to.put(jotted{at: wall(now).UnixNano(), outcome: o})
}

// since is a time in milliseconds, never below 0.
func since(from, to int64) float64 { return float64(max(to-from, 0)) / float64(time.Millisecond) }
