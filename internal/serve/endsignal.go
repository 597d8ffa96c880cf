package serve

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// endMode is --end-signal.
type endMode uint8

// How the end of a request is learned. An ext_proc stream that Envoy keeps open
// until its HTTP stream ends is the best signal (response_trailer_mode: SEND);
// a proxy with no phase left closes it right after the response headers.
const (
	endAuto    endMode = iota // watch this listener's event streams and decide
	endStream                 // every end of a stream is the end of its request
	endMetrics                // reconcile with the engines' own counts
)

func parseEndSignal(s string) (endMode, error) {
	switch s {
	case "", "auto":
		return endAuto, nil
	case "stream":
		return endStream, nil
	case "metrics":
		return endMetrics, nil
	}
	return 0, fmt.Errorf("end signal %q: want auto, stream or metrics", s)
}

// Constants of the decision. Envoy 1.40.0 measured: without a phase left the
// stream ends within 1 ms of the response-headers answer, with trailers sent it
// ends within 1 ms of the HTTP stream. An event stream of an engine lasts longer
// than earlyEnd unless it is a single token.
const (
	earlyEnd   = 100 * time.Millisecond
	earlyProof = 8 // event streams that all end early: the signal is missing
)

// ending is how a stream ended.
type ending struct {
	eof      bool          // the proxy half-closed, or we closed
	canceled bool          // the proxy reset the stream, on a connection that stands
	done     bool          // the end of the response was seen before
	headers  bool          // response headers had been answered
	sse      bool          // and announced an event stream
	whole    bool          // or told the length of an answer, all of which the engine then has
	beyond   bool          // a body or trailers of the response came behind them
	after    time.Duration // from that answer to the end
}

// endSignal tells a stream that ended with its request from one that ended
// before it. Safe for concurrent use.
type endSignal struct {
	mode endMode
	ttl  time.Duration
	log  *slog.Logger

	headers atomic.Bool  // response headers do come to this listener
	carried atomic.Bool  // a stream lasted as long as its response
	early   atomic.Int32 // event streams that ended early, none lasting

	mu    sync.Mutex
	loose []looseEnd
}

func newEndSignal(mode endMode, ttl time.Duration, log *slog.Logger) *endSignal {
	return &endSignal{mode: mode, ttl: ttl, log: log}
}

// over reports whether the request is over with its stream. When it is not, the
// caller hands the request to linger.
func (e *endSignal) over(x ending) bool {
	if x.headers {
		e.headers.Store(true)
	}
	if e.learn(x) || x.eof || x.done || !x.canceled || e.mode == endStream {
		// Envoy half-closes when the HTTP stream is over. Any other error than a
		// reset means that the connection is lost, and its proxy with it.
		return true
	}
	if !x.headers {
		// Response phases are skipped, unless they have been seen to come.
		return e.headers.Load() && e.mode == endAuto
	}
	return e.mode == endAuto && (x.whole || e.carried.Load())
}

// learn draws conclusions from streams that had response headers and reports that
// this one lasted. Event streams prove it either way. Of other responses, most of
// which are complete with their headers, only one that did not end with them
// proves something.
func (e *endSignal) learn(x ending) (lasted bool) {
	if !x.headers || e.mode != endAuto {
		return false
	}
	if x.after > earlyEnd || x.beyond || x.sse && x.eof {
		if !e.carried.Swap(true) {
			e.log.Info("end signal: streams last as long as their responses")
			e.releaseAll()
		}
		return true
	}
	if x.sse && x.canceled && !x.done && !e.carried.Load() && e.early.Add(1) == earlyProof {
		e.log.Warn("end signal: streams end with the response headers; ends are taken from the engines' metrics; set response_trailer_mode: SEND")
	}
	return false
}
