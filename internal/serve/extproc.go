package serve

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Processor is the ext_proc service of one listener. Any number of streams run
// at once; each has two goroutines, both ended when Process returns and its
// stream is gone: one receives and answers, the other waits for the pick
// deadline and for the shutdown.
type Processor struct {
	extproc.UnimplementedExternalProcessorServer
	picker *Picker
	forced int // body mode, or followProxy
	ends   *endSignal
	log    *slog.Logger

	closing chan struct{} // closed when streams past their pick are to end
	once    sync.Once
	open    atomic.Int64
	opened  atomic.Int64 // streams ever
	bodies  budget       // request bodies that streams hold
	plans   sync.Map     // plan -> logged
	stalled sync.Once    // it was logged that a body did not come
}

func newProcessor(p *Picker, forced int, ends *endSignal, log *slog.Logger) *Processor {
	return &Processor{picker: p, forced: forced, ends: ends, log: log, closing: make(chan struct{})}
}

// Shutdown ends every stream that is past its pick with OK, which tells Envoy to
// go on without us: in full duplex a stream that breaks instead resets the
// response it accompanies. Streams before their pick get it first.
func (s *Processor) Shutdown() { s.once.Do(func() { close(s.closing) }) }

// Process serves one stream, that is one HTTP request.
func (s *Processor) Process(st extproc.ExternalProcessor_ProcessServer) error {
	s.open.Add(1)
	s.opened.Add(1)
	defer s.open.Add(-1)
	x := newSession(s, st)
	defer x.timer.Stop()
	defer x.forget()
	go x.read()
	closing := s.closing
	for {
		select {
		case err := <-x.done:
			return x.finish(err)
		case <-x.timer.C:
			x.alarm()
		case <-closing:
			closing = nil
			if x.close() {
				return nil
			}
		}
	}
}

// note logs, once per kind of stream, which mode came and what it costs.
func (s *Processor) note(p plan) {
	if _, known := s.plans.LoadOrStore(p, true); !known {
		s.log.Info("ext_proc: mode of this listener", "request_body", p.body.String(), "response_body", p.response.String(),
			"stated", !p.assumed, "observe", p.observe, "note", p.cost())
	}
}

// session ties one stream's machine to its transport. mu guards the machine and
// is held while answers are sent, so that answers keep their order and none is
// sent once closed.
type session struct {
	srv   *Processor
	st    extproc.ExternalProcessor_ProcessServer
	done  chan error // how the stream ended; nil = we close it
	timer *time.Timer

	mu      sync.Mutex
	m       stream
	closing bool
	closed  bool
	headers time.Time // when the response headers were answered
}

func newSession(s *Processor, st extproc.ExternalProcessor_ProcessServer) *session {
	x := &session{srv: s, st: st, done: make(chan error, 1)}
	x.timer = time.NewTimer(time.Hour)
	x.timer.Stop()
	limit := s.picker.requestLimit()
	x.m = stream{
		pick: x.pick, send: x.send, newID: newRequestID, forced: s.forced,
		limit: limit, bodies: &s.bodies, room: roomForBodies(limit),
	}
	return x
}

// read is the receiving goroutine. It ends when Recv fails, at the latest when
// Process has returned.
func (x *session) read() {
	for {
		m, err := x.st.Recv()
		if err != nil {
			x.done <- err
			return
		}
		if !x.handle(m) {
			return
		}
	}
}

// handle steps the machine and reports whether more messages are wanted.
func (x *session) handle(m *extproc.ProcessingRequest) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return false
	}
	first := !x.m.started
	x.guard(func() { x.m.step(m) })
	if first && x.m.started {
		x.srv.note(x.m.plan)
	}
	if x.m.resp.headers && x.headers.IsZero() {
		x.headers = time.Now()
	}
	x.arm()
	if x.closing && x.m.settled() {
		x.done <- nil
		return false
	}
	return true
}

// arm sets the timer while a body is awaited: the pick deadline, counted from the
// last message.
func (x *session) arm() {
	if x.m.waiting() {
		x.timer.Reset(x.srv.picker.deadline())
	} else {
		x.timer.Stop()
	}
}

func (x *session) alarm() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return
	}
	if x.m.waiting() && x.m.plan.assumed {
		x.srv.stalled.Do(func() { // once: any client that is slow can bring it about
			x.srv.log.Warn("ext_proc: no body message came in time, and the proxy did not state its body mode; set --request-body-mode if it is BUFFERED")
		})
	}
	x.guard(x.m.expire)
	if x.closing && (x.m.settled() || !x.m.started) {
		select {
		case x.done <- nil:
		default: // the reader was first
		}
	}
}

// close ends the stream with OK if nothing is lost by it; otherwise the stream
// ends itself after its pick.
func (x *session) close() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closing = true
	if !x.m.started { // opened this moment: its headers are on their way
		x.timer.Reset(x.srv.picker.deadline())
		return false
	}
	if !x.m.settled() {
		return false
	}
	x.end()
	return true
}

// finish draws the conclusion from how the stream ended.
func (x *session) finish(err error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.m.run == nil || x.srv.ends.over(x.ending(err)) {
		x.end()
	} else {
		x.closed = true
		x.srv.ends.linger(x.m.run)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	x.srv.picker.met.streams.WithLabelValues(status.Code(err).String()).Inc()
	return err
}

// end closes the stream for good and counts its request down. mu is held.
func (x *session) end() {
	x.closed = true
	if x.m.run != nil {
		x.m.run.end()
	}
}

// forget gives up what the stream held when it ended before its pick.
func (x *session) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.m.release()
}

func (x *session) ending(err error) ending {
	e := ending{eof: err == nil || errors.Is(err, io.EOF), canceled: status.Code(err) == codes.Canceled && !connLost(x.st.Context()),
		done: x.m.resp.done, headers: x.m.resp.headers, sse: x.m.resp.sse, whole: x.m.resp.whole, beyond: x.m.resp.beyond}
	if e.headers {
		e.after = time.Since(x.headers)
	}
	return e
}

func (x *session) send(r *extproc.ProcessingResponse) {
	// A failed send means a broken stream: Recv will say so.
	_ = x.st.Send(r)
}

// pick runs under the pick deadline, so that no tokenizer can hold a request.
func (x *session) pick(a *ask) (running, *refusal) {
	ctx, cancel := context.WithTimeout(x.st.Context(), x.srv.picker.deadline())
	defer cancel()
	f, no := x.srv.picker.Pick(ctx, a)
	if no != nil {
		return nil, no
	}
	return f, nil
}

// guard turns a panic of ours into an answer to this one client. Where nothing
// can be answered any more the stream just ends with its request.
func (x *session) guard(step func()) {
	defer func() {
		if p := recover(); p != nil {
			x.srv.log.Error("ext_proc: panic", "request_id", x.m.ask.Head.RequestID, "panic", p, "stack", string(debug.Stack()))
			if !x.m.refused {
				x.m.refuse(internalError())
			}
		}
	}()
	step()
}
